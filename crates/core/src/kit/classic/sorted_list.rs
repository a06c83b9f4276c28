//! [`SortedList`]: the simplest queue, and a good one for few entries.

use core::fmt;

use super::deadline::accept;
use super::list::List;
use super::slab::Slab;
use crate::{Handle, Refused, RescheduleError, TimerQueue};

/// A list in order of deadline: the entry that fires next is at the front.
///
/// Early operating systems used this list; it is scheme 2 of Varghese and Lauck (1987). The search for the position of a new entry starts
/// at the end. So a program whose timeouts all have the same length pays O(1) for each, because the newest entry has the latest deadline.
/// With different lengths, the search passes over many entries.
///
/// # Cost
/// n is the number of entries.
///
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline`, `next_wake` | O(1) |
/// | `insert`, `reschedule` | O(entries that fire later), so O(n) |
/// | `cancel` | O(1) |
/// | `advance` | O(1) for each entry fired, whatever the ticks |
///
/// `next_wake` is always exact. Deadlines up to `u64::MAX - 1` are stored exactly.
///
/// # What it is not
/// A sorted list is not a wheel. It has no slots, and time that passes costs nothing. The work is done at the insertion, by comparing
/// deadlines; a wheel does not compare deadlines at all.
///
/// # The worked example
/// Five entries are inserted from start c, in the order of the columns:
///
/// | inserted | c+7 | c+2 | c+5 | c+2 | c+9 |
/// |---|---|---|---|---|---|
/// | walks past | | c+7 | c+7 | c+7, c+5 | |
/// | the list | 7 | 2 7 | 2 5 7 | 2 **2** 5 7 | 2 2 5 7 9 |
///
/// ```
/// use tickwheel_core::TimerQueue;
/// use tickwheel_core::classic::SortedList;
///
/// for c in [0, 1_000] {
///     let mut list = SortedList::new(c);
///     for (ahead, value) in [(7, 'a'), (2, 'b'), (5, 'c'), (2, 'd'), (9, 'e')] {
///         list.insert(c + ahead, value).unwrap();
///     }
///     let mut fired = vec![];
///     list.advance(c + 8, &mut |deadline, value| fired.push((deadline - c, value)));
///     assert_eq!(fired, [(2, 'b'), (2, 'd'), (5, 'c'), (7, 'a')]);
///     assert_eq!(list.next_wake(), Some(c + 9));
/// }
/// ```
pub struct SortedList<T> {
    now: u64,
    slab: Slab<T>,
    list: List,
}

impl<T> SortedList<T> {
    /// An empty list whose time is `start`.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self { now: start, slab: Slab::new(), list: List::EMPTY }
    }

    /// The number of entries in front of an entry: 0 for the entry that fires next. `None` if the handle is stale. O(that number).
    ///
    /// ```
    /// use tickwheel_core::TimerQueue;
    /// use tickwheel_core::classic::SortedList;
    ///
    /// let mut list = SortedList::new(0);
    /// let later = list.insert(7, ()).unwrap();
    /// let sooner = list.insert(2, ()).unwrap();
    /// assert_eq!((list.position(sooner), list.position(later)), (Some(0), Some(1)));
    /// list.cancel(sooner);
    /// assert_eq!((list.position(sooner), list.position(later)), (None, Some(0)));
    /// ```
    #[must_use]
    pub fn position(&self, handle: Handle) -> Option<usize> {
        let place = self.slab.find(handle)?;
        self.list.places(&self.slab).position(|other| other == place)
    }
}

impl<T> TimerQueue<T> for SortedList<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        match accept(deadline, self.now, 1) {
            Ok(deadline) => {
                let handle = self.slab.insert(deadline, value)?;
                self.list.insert_in_order(&mut self.slab, handle.place());
                Ok(handle)
            }
            Err(objection) => Err(objection.refuse(value)),
        }
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let place = self.slab.find(handle)?;
        self.list.unlink(&mut self.slab, place);
        Some(self.slab.remove(place))
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let place = self.slab.find(handle).ok_or(RescheduleError::Stale)?;
        let deadline = accept(deadline, self.now, 1)?;
        self.list.unlink(&mut self.slab, place);
        self.slab[place].deadline = deadline;
        self.list.insert_in_order(&mut self.slab, place);
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        Some(self.slab[self.slab.find(handle)?].deadline)
    }

    fn next_wake(&self) -> Option<u64> {
        self.list.first().map(|place| self.slab[place].deadline)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        let mut fired = 0;
        while let Some(place) = self.list.first()
            && self.slab[place].deadline <= now
        {
            let deadline = self.slab[place].deadline;
            // While entries with this deadline are handed out, time stands just before the deadline. So after a panic in `fire`, the
            // entries that were not handed out yet are still in the future.
            self.now = deadline - 1;
            self.list.unlink(&mut self.slab, place);
            let value = self.slab.remove(place);
            fired += 1;
            fire(deadline, value);
        }
        self.now = self.now.max(now);
        fired
    }
}

impl<T> fmt::Debug for SortedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedList")
            .field("now", &self.now)
            .field("len", &self.slab.len())
            .finish_non_exhaustive()
    }
}
