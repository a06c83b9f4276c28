//! [`SimpleWheel`]: a ring of slots for one turn; later deadlines are refused.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::deadline::accept;
use super::list::List;
use super::slab::Slab;
use crate::refusal::Objection;
use crate::{Handle, Refused, RescheduleError, TimerQueue};

/// A ring of s slots, one for each of the next s ticks: a clock face with one hand.
///
/// The hand stands at now, and an entry with a deadline n ticks ahead is n slots ahead of the hand. Nothing is compared and nothing is
/// searched. This is scheme 4 of Varghese and Lauck (1987); logic simulators used it before.
///
/// # Cost
/// s is the number of slots.
///
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline` | O(1) |
/// | `insert`, `cancel` | O(1) |
/// | `reschedule` | O(1), and O(entries of the new slot that were inserted later), to keep the order of insertion |
/// | `next_wake` | O(ticks until then), so O(s) |
/// | `advance` | O(1) for each entry fired and each tick passed, but at most s of those |
///
/// `next_wake` is always exact.
///
/// # How far it reaches
/// With s slots, the farthest deadline is s - 1 ticks ahead; a deadline s ticks ahead would be in the slot of now. So a deadline s or more
/// ticks ahead is refused as [`TooFar`](crate::Refusal::TooFar), and the value is given back. Such an entry is never filed one turn too
/// early. A wheel of one slot refuses everything.
///
/// # What it is not
/// This wheel is not for delays of very different lengths: an hour in ticks of a millisecond needs 3.6 million slots. The
/// [`HashedWheel`](super::HashedWheel) and the [`HierarchicalWheel`](super::HierarchicalWheel) are two solutions.
///
/// # The worked table: tick 1, three slots, start c
/// Slots are counted from the start. Each row is one value of now; *spent* marks the slot of now, which has fired and stays empty.
///
/// | now | slot 0 | slot 1 | slot 2 | refused |
/// |---|---|---|---|---|
/// | c | spent | c+1 | c+2 | c+3 and on |
/// | c+1 | c+3 | spent | c+2 | c+4 and on |
/// | c+2 | c+3 | c+4 | spent | c+5 and on |
/// | c+3 | spent | c+4 | c+5 | c+6 and on |
///
/// ```
/// use tickwheel_core::classic::SimpleWheel;
/// use tickwheel_core::{Refusal, TimerQueue};
///
/// for c in [0, 1, 1_000] {
///     let mut wheel = SimpleWheel::new(c, 3);
///     for now in c..c + 30 {
///         wheel.advance(now, &mut |_, _| ());
///         for ahead in 1..=2 {
///             let handle = wheel.insert(now + ahead, "in this turn").unwrap();
///             assert_eq!(wheel.slot(handle), Some((now + ahead - c) as usize % 3));
///         }
///         let refused = wheel.insert(now + 3, "in the next").unwrap_err();
///         assert_eq!((refused.why, refused.value), (Refusal::TooFar, "in the next"));
///     }
/// }
/// ```
pub struct SimpleWheel<T> {
    start: u64,
    now: u64,
    slots: Vec<List>,
    slab: Slab<T>,
}

impl<T> SimpleWheel<T> {
    /// An empty wheel whose time is `start`, for deadlines less than `slots` ticks ahead. `slots` may be any positive number.
    ///
    /// # Panics
    /// If `slots` is 0.
    #[must_use]
    pub fn new(start: u64, slots: usize) -> Self {
        assert!(slots > 0, "a simple wheel needs at least one slot, and was given 0");
        Self { start, now: start, slots: vec![List::EMPTY; slots], slab: Slab::new() }
    }

    /// The slot of an entry, counted from 0. `None` if the handle is stale. O(1).
    #[must_use]
    pub fn slot(&self, handle: Handle) -> Option<usize> {
        Some(self.slot_of(self.deadline(handle)?))
    }

    fn slot_of(&self, deadline: u64) -> usize {
        ((deadline - self.start) % self.slots.len() as u64) as usize
    }

    fn accept(&self, deadline: u64) -> Result<u64, Objection> {
        let deadline = accept(deadline, self.now, 1)?;
        if deadline - self.now < self.slots.len() as u64 { Ok(deadline) } else { Err(Objection::TooFar) }
    }

    fn link(&mut self, place: u32) {
        let slot = self.slot_of(self.slab[place].deadline);
        self.slots[slot].insert_in_order(&mut self.slab, place);
    }

    fn unlink(&mut self, place: u32) {
        let slot = self.slot_of(self.slab[place].deadline);
        self.slots[slot].unlink(&mut self.slab, place);
    }
}

impl<T> TimerQueue<T> for SimpleWheel<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        match self.accept(deadline) {
            Ok(deadline) => {
                let handle = self.slab.insert(deadline, value)?;
                self.link(handle.place());
                Ok(handle)
            }
            Err(objection) => Err(objection.refuse(value)),
        }
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let place = self.slab.find(handle)?;
        self.unlink(place);
        Some(self.slab.remove(place))
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let place = self.slab.find(handle).ok_or(RescheduleError::Stale)?;
        let deadline = self.accept(deadline)?;
        self.unlink(place);
        self.slab[place].deadline = deadline;
        self.link(place);
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        Some(self.slab[self.slab.find(handle)?].deadline)
    }

    fn next_wake(&self) -> Option<u64> {
        if self.len() == 0 {
            return None;
        }
        // An entry is pending, so the hand meets it within one turn.
        (self.now + 1..u64::MAX).find(|&tick| !self.slots[self.slot_of(tick)].is_empty())
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        let mut fired = 0;
        while self.now < now && self.len() > 0 {
            let tick = self.now + 1;
            let slot = self.slot_of(tick);
            // While entries are handed out, time stands just before the tick. So after a panic in `fire`, the entries that were not handed
            // out yet are still in the future.
            while let Some(place) = self.slots[slot].first() {
                self.unlink(place);
                let value = self.slab.remove(place);
                fired += 1;
                fire(tick, value);
            }
            self.now = tick;
        }
        self.now = self.now.max(now);
        fired
    }
}

impl<T> fmt::Debug for SimpleWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimpleWheel")
            .field("now", &self.now)
            .field("len", &self.slab.len())
            .field("slots", &self.slots.len())
            .finish_non_exhaustive()
    }
}
