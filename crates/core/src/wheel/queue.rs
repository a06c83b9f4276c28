//! [`Wheel`], the public type.

use alloc::vec::Vec;
use core::fmt;

use super::chunk::Chunks;
use super::id::{CHUNK_PLACES, Due};
use super::list::Blocks;
use super::number::Number;
use super::tree::Tree;
use crate::refusal::Objection;
use crate::{Handle, Refusal, Refused, RescheduleError, TimerQueue};

/// The [`TimerQueue`] to use: a hierarchical timing wheel for all 64 bits of time.
///
/// The wheel has rings of 256 slots; the highest byte in which a deadline differs from now chooses the ring. This is the idea of Varghese
/// and Lauck (1987), with levels aligned to bytes. New is where the entries are stored: in chunks of 64 that belong to the slot in which
/// the entries are due. Until the slot is opened, no links connect the entries. Deadlines up to `u64::MAX - 1` are exact; there is no
/// maximal distance and no loop over single ticks.
///
/// # Cost
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline`, `next_wake` | O(1); `next_wake` is O(log h) if no deadline has the high word of now, with entries in h other high words |
/// | `insert`, `cancel`, `reschedule` | O(1); O(log h) for a deadline with another high word than now; amortised over the growth of the memory |
/// | `advance` | O(1) for each entry fired, for each tick in which one fires, and for each move of an entry to a finer slot. An entry moves at most 4 times, and 4 more times for each slot in which it was rescheduled to later. O(k log k) for the k entries of a tick if they are not in order, because some of them reused free places |
/// | `advance` over any length of time in which nothing is due | O(1), and the opening of slots described below |
///
/// On each of 4 levels, the slot that comes next is opened in 256 equal parts while time comes nearer to it. So no call has to open a whole
/// slot, if earlier calls could open parts of it. A call therefore examines a bounded number of places, in addition to those of the entries
/// that it fires or jumps over. The number is 4,200 for each tick that passes, and 4,200 more for each 256 ticks, for each 65,536 and for
/// each 2^24; twice this number at the begin of a slot; and a few in an idle wheel. A call that advances by an hour does the work of all
/// ticks of this hour. A caller that needs short calls advances in small steps between one `next_wake` and the next. A cancel may return a
/// chunk, which examines 64 places. Any call may have to allocate memory. [`with_capacity`](Self::with_capacity) allocates the memory of
/// the entries in advance, which is nearly all memory, but not the lists of open slots.
///
/// # Memory
/// An entry takes 8 bytes and its value, but at least 12 bytes, aligned like the value: 12 bytes with a `u32`, 16 bytes with a `u64`. The
/// places of entries are allocated in chunks of 64, and each slot with entries has some free places: a wheel with one entry has 63 of them.
/// So put large values into a `Box`. An entry takes 16 bytes more if its slot has at most 16 entries, or is open because its time is near.
/// Each ring in use takes 10 KB, and so does each open slot. A new wheel has no heap memory.
///
/// The place of a cancelled entry is free at once, and the next entry of the same slot takes it. In an open slot this is different: the 64
/// places of a chunk become free together, when the last entry of the chunk is gone. A chunk without entries goes to the next slot that
/// needs one. So a single entry can keep a chunk of 64 places in use. But if there are more than 65,536 places plus 16 for each entry, new
/// entries of any slot first take the free places of such chunks. The memory follows the highest need that there was, and is freed when the
/// wheel is dropped. There may be 2^32 - 64 places.
///
/// # How exact `next_wake` is
/// `next_wake` is exactly the nearest deadline as long as no entry was cancelled or rescheduled. After a cancel or a reschedule of the
/// nearest entry of a slot, it may be too early, but never before `now + 1`; one extra stop makes it exact again. So a driver that stops at
/// each `next_wake` makes at most one stop for each deadline, and one for each cancel or reschedule.
///
/// # Rescheduling to a later tick
/// A reschedule to a later tick is one store for an entry that is in a chunk of its slot. The entry stays at its place after any number of
/// such reschedules, and goes to its new slot when the old slot is opened. An entry in a slot that is open, because it is due soon, is
/// moved at once. So is an entry that is rescheduled to an earlier tick.
///
/// # Order
/// Entries of one tick fire in the order of their insertion; the number of insertions has no limit in practice.
///
/// # Handles
/// `reschedule` may move the entry and returns the handle that is valid from then on. A generation is the low word of the count of
/// insertions. So a stale handle finds nothing, with one exception: it is kept until exactly a multiple of 2^32 - 1 insertions later, and
/// the last of those insertions takes the same place.
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
    /// A vector that is empty between calls; it is kept so that its memory is used again.
    pub(super) due: Vec<Due>,
}

impl<T> Wheel<T> {
    /// An empty wheel whose time is `start`. This function allocates nothing.
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

    /// An empty wheel with memory for `capacity` entries. The wheel can grow beyond it. Slots and lists allocate more memory when they need
    /// it.
    ///
    /// # Panics
    /// If `capacity` is more than 2^32 - 64. If the system does not have enough memory, the process ends, as with a `Vec`. Any other call
    /// that needs memory ends the process in the same way.
    #[must_use]
    pub fn with_capacity(start: u64, capacity: usize) -> Self {
        let mut wheel = Self::new(start);
        let chunks = capacity.div_ceil(CHUNK_PLACES);
        assert!(chunks <= Chunks::<T>::LIMIT, "a wheel has 2^32 - 64 places at the most, not {capacity}");
        wheel.chunks.reserve(chunks);
        wheel
    }

    /// The heap memory of the wheel (bytes). The heap memory of the values and the map of the high words are not counted. O(1).
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
    /// If `fire` panics, as for [`advance`](TimerQueue::advance). The other entries of that tick are filed again, one by one.
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
            // While the entries of the stop are handed out, time stands just before it. So after a panic in `fire`, the entries that were
            // not handed out yet are still in the future.
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

    /// The reason to refuse a deadline; `None` if the deadline is valid.
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
