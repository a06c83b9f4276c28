//! [`Wheel`], the public type.

use alloc::vec::Vec;
use core::fmt;

use super::chunk::{CHUNK_PLACES, Chunks};
use super::firing::Due;
use super::list::Blocks;
use super::number::Number;
use super::tree::Tree;
use crate::refusal::Objection;
use crate::{Handle, Refusal, Refused, RescheduleError, TimerQueue};

/// The [`TimerQueue`] to use: a hierarchical wheel over all 64 bits of time, with homed entries.
///
/// Rings of 256 slots, chosen by the highest byte in which the deadline differs from now; the idea
/// of Varghese and Lauck (1987), with the levels aligned to bytes. What is new is where the entries are: in chunks of 64 that belong to the slot in which
/// they are due, where nothing links them, until the slot is opened. Deadlines up to
/// `u64::MAX - 1` are exact; there is no horizon and no tick-by-tick loop.
///
/// # Cost
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline`, `next_wake` | O(1), but for `next_wake` where nothing is due in the high word of now: O(log h), with entries in h other ones |
/// | `insert`, `cancel`, `reschedule` | O(1), and O(log h) for a deadline with another high word than now; amortised over the growth of the memory |
/// | `advance` | O(1) for each entry fired, for each tick in which one fires, and for each entry that moves to a finer slot, which is at most 4 times, and 4 times more for each slot in which it was put off; O(k log k) for the k entries of a tick that are not in order, because some took the places of others |
/// | `advance` over time in which nothing is due, of any length | O(1), and what is said below |
///
/// No call opens a slot at once that could have been opened before. The slot that comes next on
/// each of 4 levels is opened in 256 equal parts while time comes nearer to it. A call therefore
/// looks at a bounded number of places, beyond the entries that it fires or jumps over: 4,200 for
/// each tick that it lets pass, 4,200 more for each 256 ticks, for each 65,536 and for each 2^24,
/// twice that number where a slot begins, and a few in an idle wheel. A call that lets an hour pass
/// does the work of all its ticks in one go. A caller that needs short calls advances in small
/// steps between one `next_wake` and the next. A cancel may give back a chunk, which looks at 64
/// places. Any call may have to grow the memory. [`with_capacity`](Self::with_capacity) allocates
/// it beforehand for the entries, which are nearly all of it, but not for the lists of open slots.
///
/// # Memory
/// An entry takes 8 bytes and its value, but at least 12 bytes, aligned like the value: 12 bytes with a
/// `u32`, 16 bytes with a `u64`. The places of entries are allocated in chunks of 64, and each slot with
/// entries has some free places: a wheel with one entry has 63 of them. So put large values into a
/// `Box`. An entry takes 16 bytes more if its slot has at most 16 entries, or is open because its time
/// is near. Each ring that is needed takes 10 KB, and so does each open slot. A new wheel has no memory
/// on the heap.
///
/// A cancelled entry's place is free at once and is the next one to be taken in its slot; but once the
/// slot is open, the 64 places of a chunk are free together, when the last of its entries has gone. A
/// chunk without entries goes to whichever slot needs one next. So one entry can hold a chunk if the 63
/// that came beside it are gone. But once there are more than 65,536 places and 16 for each entry, the
/// free ones of such chunks are taken first, by entries of any slot. The memory follows the highest need there was
/// and is given back when the wheel is dropped. There may be 2^32 - 64 places.
///
/// # How exact `next_wake` is
/// `next_wake` is exactly the nearest deadline as long as nothing was cancelled or rescheduled. A
/// cancel or a reschedule of the nearest entry of a slot leaves a tick that is too early, but never
/// before `now + 1`; one extra stop makes it exact again. So following `next_wake` takes at most
/// one stop for each deadline, and one for each such change.
///
/// # Rescheduling to a later tick
/// A reschedule to a later tick is one store for an entry that is in a chunk of its slot. The entry
/// stays where it is, however often it is put off, and goes to its new slot when the old slot
/// opens. An entry that is due soon, in a slot that is open, is moved at once, like one that is
/// rescheduled to an earlier tick.
///
/// # Order
/// Entries of one tick fire in the order of their insertion, however many insertions there were.
///
/// # Handles
/// `reschedule` may move the entry and returns the handle that is good from then on. A generation is
/// the low word of the count of insertions. So a stale handle finds nothing, unless it is kept until
/// exactly a multiple of 2^32 - 1 insertions later, and the last of those takes the very same place.
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
    pub(super) now: u64,
    pub(super) len: usize,
    /// The number of the next insertion.
    pub(super) next: Number,
    pub(super) chunks: Chunks<T>,
    /// The slots. The base of the tree is `now + 1`.
    pub(super) tree: Tree,
    pub(super) blocks: Blocks,
    /// Always empty between calls; kept to reuse its memory.
    pub(super) due: Vec<Due>,
}

impl<T> Wheel<T> {
    /// An empty wheel whose time is `start`. Allocates nothing.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self {
            now: start,
            len: 0,
            next: Number::FIRST,
            chunks: Chunks::new(),
            tree: Tree::new(start.saturating_add(1)),
            blocks: Blocks::new(),
            due: Vec::new(),
        }
    }

    /// An empty wheel with memory for `capacity` entries. It is no limit: the wheel grows beyond.
    /// Slots and lists take more, as they are needed.
    ///
    /// # Panics
    /// If `capacity` is more than 2^32 - 64. If it is less, but the system does not have that much
    /// memory, the process ends, as it does with a `Vec`; any other call that needs memory ends it
    /// in the same way.
    #[must_use]
    pub fn with_capacity(start: u64, capacity: usize) -> Self {
        let mut wheel = Self::new(start);
        let chunks = capacity.div_ceil(CHUNK_PLACES);
        assert!(chunks <= Chunks::<T>::LIMIT, "a wheel has 2^32 - 64 places at the most, not {capacity}");
        wheel.chunks.reserve(chunks);
        wheel
    }

    /// The memory that the wheel holds on the heap, in bytes. The heap memory of the values and the
    /// map of the high words are not counted. O(1).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.chunks.heap_bytes()
            + self.tree.heap_bytes()
            + self.blocks.heap_bytes()
            + self.due.capacity() * size_of::<Due>()
    }

    /// [`advance`](TimerQueue::advance) without a virtual call for each entry.
    ///
    /// # Panics
    /// If `fire` panics, as [`advance`](TimerQueue::advance) says. The other entries of that tick are
    /// filed again, at the cost of each of them.
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
        let passed = now - self.now;
        let (mut fired, mut last) = (0, None);
        while let Some(stop) = self.tree.nearest()
            && stop <= now
        {
            assert!(last < Some(stop), "what is due at {stop} cannot be reached");
            last = Some(stop);
            // Time stands just before the stop while its entries are handed out, so that a panic
            // leaves the others in the future.
            self.now = stop - 1;
            self.move_base(stop);
            fired += self.fire_tick(&mut fire);
            if stop == now {
                break;
            }
        }
        self.now = now;
        self.move_base(now.saturating_add(1));
        self.open_ahead(passed);
        fired
    }

    /// The fault of a deadline; `None` if it is good.
    #[inline]
    fn objection(&self, deadline: u64) -> Option<Objection> {
        if deadline > self.now && deadline < u64::MAX {
            None
        } else if deadline == u64::MAX {
            Some(Objection::TooFar)
        } else {
            Some(Objection::Elapsed)
        }
    }
}

impl<T> TimerQueue<T> for Wheel<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        if let Some(objection) = self.objection(deadline) {
            return Err(objection.refuse(value));
        }
        let deadline = match crate::planted::is("u32-deadline-wrap") {
            true => self.now + 1 + u64::from((deadline - self.now - 1) as u32),
            false => deadline,
        };
        match self.take_in(self.next, deadline, value) {
            Ok(handle) => {
                self.next = self.next.next();
                Ok(handle)
            }
            Err(value) => Err(Refused { value, why: Refusal::Full }),
        }
    }

    #[inline]
    fn cancel(&mut self, handle: Handle) -> Option<T> {
        self.take_out(handle)
    }

    #[inline]
    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        match self.objection(deadline) {
            None => self.move_to(handle, deadline).ok_or(RescheduleError::Stale),
            Some(_) if self.chunks.find(handle).is_none() => Err(RescheduleError::Stale),
            Some(objection) => Err(objection.into()),
        }
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        self.chunks.find(handle).map(|place| self.deadline_at(place))
    }

    fn next_wake(&self) -> Option<u64> {
        self.tree.nearest()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        self.advance_with(now, fire)
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now)
            .field("len", &self.len)
            .field("next_wake", &self.tree.nearest())
            .finish_non_exhaustive()
    }
}
