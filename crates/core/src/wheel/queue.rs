//! [`Wheel`], the public face of the hierarchy and the slab.

use core::fmt;

use super::hierarchy::Hierarchy;
use super::slab::Slab;
use crate::{Handle, Refusal, Refused, RescheduleError, TimerQueue};

/// The [`TimerQueue`] to use: a hierarchical wheel over all 64 bits of time.
///
/// Eight levels of 256 slots, chosen by the highest byte in which the deadline differs from now,
/// with bitmaps of the occupied slots; the idea of Varghese and Lauck (1987), with the levels
/// aligned to bytes as in the Linux kernel's first wheel. Deadlines up to `u64::MAX - 1` are exact;
/// there is no horizon, no overflow list and no tick-by-tick loop.
///
/// # Cost
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline`, `next_wake` | O(1) |
/// | `insert` | O(1), amortised over the growth of the memory |
/// | `cancel`, `reschedule` | O(1); up to 64 neighbours are looked at if the entry was the nearest of its slot |
/// | `advance` | O(1) for each entry fired, for each tick in which one fires, and for each entry that moves to a finer level, which is at most 7 times in its life; O(k log k) for the k entries of a tick in which one was rescheduled to |
/// | `advance` over time in which nothing is due, of any length | O(1) and the opening of one slot |
///
/// A slot opens all at once: a call that enters a slot with a million entries moves a million
/// entries.
///
/// # Memory
/// 28 bytes and the value for each entry, rounded up to 8: 32 bytes with a `u32`, 40 with a `u64`.
/// Besides, 4 KB for each level that was ever needed, 33 KB for all eight. A new wheel holds no
/// memory on the heap. A cancelled entry's place is free at once and is the next one to be taken;
/// the memory follows the highest `len` there was and is given back when the wheel is dropped.
/// There may be 2^32 - 1 entries.
///
/// # How exact `next_wake` is
/// It is the nearest deadline, exactly, as long as nothing was cancelled or rescheduled. A cancel
/// or a reschedule of the nearest entry of a slot in which more than 64 are left may leave a tick
/// that is too early, but never before `now + 1`; the extra stop there makes it exact again.
/// So following `next_wake` takes at most one stop for each deadline, and one for each such
/// change.
///
/// # Handles
/// A place never has the same generation twice: after 2^32 - 1 tenants it is left alone. So a
/// stale handle is stale for ever. `reschedule` returns the handle that it got.
///
/// ```
/// use tickwheel_core::{TimerQueue, Wheel};
///
/// let mut wheel = Wheel::new(1_000);
/// let close = wheel.insert(31_000, "close the order").unwrap();
/// wheel.insert(2_000, "send the mail").unwrap();
/// assert_eq!(wheel.next_wake(), Some(2_000));
///
/// let mut fired = vec![];
/// assert_eq!(wheel.advance_with(2_500, |deadline, value| fired.push((deadline, value))), 1);
/// assert_eq!(fired, [(2_000, "send the mail")]);
///
/// assert_eq!(wheel.cancel(close), Some("close the order"));
/// assert_eq!(wheel.cancel(close), None);
/// assert_eq!(wheel.next_wake(), None);
/// ```
pub struct Wheel<T> {
    now: u64,
    inserted: u64,
    slab: Slab<T>,
    /// Its base is `now`, or `now + 1` after a panic in `fire` left entries due at `now + 1`.
    hierarchy: Hierarchy,
}

impl<T> Wheel<T> {
    /// An empty wheel whose time is `start`. Allocates nothing.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self { now: start, inserted: 0, slab: Slab::new(), hierarchy: Hierarchy::new(start) }
    }

    /// An empty wheel with memory for `capacity` entries. It is no limit: the wheel grows beyond.
    ///
    /// # Panics
    /// If so much memory cannot be had.
    #[must_use]
    pub fn with_capacity(start: u64, capacity: usize) -> Self {
        Self { slab: Slab::with_capacity(capacity), ..Self::new(start) }
    }

    /// The memory that the wheel holds on the heap, in bytes, without what the values own there.
    /// O(1).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.slab.heap_bytes() + self.hierarchy.heap_bytes()
    }

    /// [`advance`](TimerQueue::advance) without a virtual call for each entry.
    ///
    /// # Panics
    /// If `fire` panics, as [`advance`](TimerQueue::advance) says.
    ///
    /// ```
    /// use tickwheel_core::{TimerQueue, Wheel};
    ///
    /// let mut wheel = Wheel::new(0);
    /// for value in 0..3 {
    ///     wheel.insert(7, value).unwrap();
    /// }
    /// let mut sum = 0;
    /// assert_eq!(wheel.advance_with(6, |_, value| sum += value), 0); // never early
    /// assert_eq!(wheel.advance_with(7, |_, value| sum += value), 3);
    /// assert_eq!(wheel.advance_with(6, |_, value| sum += value), 0); // time never runs back
    /// assert_eq!((wheel.now(), sum), (7, 3));
    /// ```
    pub fn advance_with<F: FnMut(u64, T)>(&mut self, now: u64, mut fire: F) -> usize {
        if now <= self.now {
            return 0;
        }
        let mut fired = 0;
        while let Some(stop) = self.hierarchy.nearest()
            && stop <= now
        {
            // Time stands just before the stop while its entries are handed out, so that a panic
            // leaves the others in the future.
            self.now = stop - 1;
            self.hierarchy.move_base(&mut self.slab, stop);
            self.hierarchy.put_due_in_order(&mut self.slab);
            while let Some(place) = self.hierarchy.pop_due(&mut self.slab) {
                let (deadline, value) = self.slab.remove(place);
                assert_eq!(deadline, stop, "an entry of another tick was in the slot of this one");
                fired += 1;
                fire(deadline, value);
            }
        }
        self.hierarchy.move_base(&mut self.slab, now);
        self.now = now;
        fired
    }

    /// What is wrong with a deadline, if anything.
    fn objection(&self, deadline: u64) -> Option<Objection> {
        if deadline == u64::MAX {
            Some(Objection::TooFar)
        } else if deadline <= self.now {
            Some(Objection::Elapsed)
        } else {
            debug_assert!(
                deadline >= self.hierarchy.base(),
                "deadline {deadline} is after now, {}, but before the base, {}",
                self.now,
                self.hierarchy.base()
            );
            None
        }
    }
}

enum Objection {
    Elapsed,
    TooFar,
}

impl From<Objection> for Refusal {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Elapsed => Self::Elapsed,
            Objection::TooFar => Self::TooFar,
        }
    }
}

impl From<Objection> for RescheduleError {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Elapsed => Self::Elapsed,
            Objection::TooFar => Self::TooFar,
        }
    }
}

impl<T> TimerQueue<T> for Wheel<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        if let Some(objection) = self.objection(deadline) {
            let why = objection.into();
            return Err(Refused { value, why });
        }
        match self.slab.insert(deadline, self.inserted, value) {
            Ok(handle) => {
                // 2^64 insertions, one each nanosecond, take 584 years.
                self.inserted += 1;
                self.hierarchy.link(&mut self.slab, handle.place());
                Ok(handle)
            }
            Err(value) => {
                let why = Refusal::Full;
                Err(Refused { value, why })
            }
        }
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let place = self.slab.find(handle)?;
        self.hierarchy.unlink(&mut self.slab, place);
        let (_, value) = self.slab.remove(place);
        Some(value)
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let place = self.slab.find(handle).ok_or(RescheduleError::Stale)?;
        if let Some(objection) = self.objection(deadline) {
            return Err(objection.into());
        }
        self.hierarchy.relink(&mut self.slab, place, deadline);
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        let place = self.slab.find(handle)?;
        Some(self.slab.entry(place).deadline)
    }

    fn next_wake(&self) -> Option<u64> {
        self.hierarchy.nearest()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        self.advance_with(now, fire)
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now)
            .field("len", &self.slab.len())
            .field("next_wake", &self.hierarchy.nearest())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_wheel_gives_the_value_back_and_goes_on() {
        let mut wheel = Wheel { slab: Slab::with_limit(2), ..Wheel::new(0) };
        let first = wheel.insert(5, 'a').expect("there is room");
        wheel.insert(5, 'b').expect("there is room");
        let refused = wheel.insert(5, 'c').expect_err("there are two places");
        assert_eq!((refused.why, refused.value), (Refusal::Full, 'c'));
        // What is wrong with the deadline is said first: making room would not help.
        let refused = wheel.insert(0, 'd').expect_err("it has elapsed");
        assert_eq!(refused.why, Refusal::Elapsed);

        assert_eq!(wheel.cancel(first), Some('a'));
        wheel.insert(5, 'e').expect("a place was freed");
        let mut fired = alloc::vec![];
        assert_eq!(wheel.advance_with(5, |_, value| fired.push(value)), 2);
        assert_eq!(fired, ['b', 'e']);
    }
}
