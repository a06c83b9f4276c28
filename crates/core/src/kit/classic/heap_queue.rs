//! [`HeapQueue`]: the binary heap that most standard libraries use.

use alloc::vec::Vec;
use core::fmt;

use super::deadline::accept;
use super::slab::Slab;
use crate::{Handle, Refused, RescheduleError, TimerQueue};

/// A binary heap in which each entry knows its index, so that it can be cancelled.
///
/// A heap is a tree in an array: the children of index i are at 2i + 1 and 2i + 2, and no entry fires before its parent. So the entry at
/// index 0 fires next, and the array is not sorted completely. Heaps are from 1964 (Williams); the index in the entry is the idea of the
/// JDK's `DelayedWorkQueue` (Java 7, 2011). Without the index, a cancel has to search all n entries, or has to leave a dead entry in the
/// heap until its deadline. Here a cancelled entry leaves at once.
///
/// # Cost
/// n is the number of entries.
///
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline`, `next_wake` | O(1) |
/// | `insert`, `cancel`, `reschedule` | O(log n) |
/// | `advance` | O(log n) for each entry fired, whatever the ticks |
///
/// One insertion into a heap of n entries is O(log n). All n insertions together are O(n log n). Texts often confuse the two.
///
/// `next_wake` is always exact. Deadlines up to `u64::MAX - 1` are stored exactly. The order is decided by comparing (deadline, number of
/// insertion), never by the sign of a difference, so the distance between two deadlines does not matter.
///
/// # What it is not
/// A heap is not independent of n. An operation compares two entries on each level of the tree, and in a big heap each level costs a cache
/// miss. Wheels avoid this cost.
///
/// # The worked example
/// Five entries are inserted from start c, in the order of the columns. A new entry starts at the end and climbs past every parent that
/// fires later:
///
/// | inserted | c+7 | c+2 | c+5 | c+2 | c+9 |
/// |---|---|---|---|---|---|
/// | climbs past | | c+7 | | c+7 | |
/// | the array | 7 | 2 7 | 2 7 5 | 2 **2** 5 7 | 2 2 5 7 9 |
///
/// The second c+2 stops below the first, because it was inserted later.
///
/// ```
/// use tickwheel_core::TimerQueue;
/// use tickwheel_core::classic::HeapQueue;
///
/// for c in [0, 1_000] {
///     let mut heap = HeapQueue::new(c);
///     for (ahead, value) in [(7, 'a'), (2, 'b'), (5, 'c'), (2, 'd'), (9, 'e')] {
///         heap.insert(c + ahead, value).unwrap();
///     }
///     let mut fired = vec![];
///     heap.advance(c + 8, &mut |deadline, value| fired.push((deadline - c, value)));
///     assert_eq!(fired, [(2, 'b'), (2, 'd'), (5, 'c'), (7, 'a')]);
///     assert_eq!(heap.next_wake(), Some(c + 9));
/// }
/// ```
pub struct HeapQueue<T> {
    now: u64,
    slab: Slab<T>,
    /// The places of the entries in the slab. An entry's `home` is its index in this array.
    heap: Vec<u32>,
}

impl<T> HeapQueue<T> {
    /// An empty heap whose time is `start`.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self { now: start, slab: Slab::new(), heap: Vec::new() }
    }

    /// The index of an entry in the array of the heap: 0 for the entry that fires next. `None` if the handle is stale. O(1).
    ///
    /// ```
    /// use tickwheel_core::TimerQueue;
    /// use tickwheel_core::classic::HeapQueue;
    ///
    /// let mut heap = HeapQueue::new(0);
    /// let handles = [7, 2, 5, 2, 9].map(|deadline| heap.insert(deadline, ()).unwrap());
    /// // The second 2 climbed past the 7, and no farther. The array has no order besides that of parents and children.
    /// assert_eq!(handles.map(|handle| heap.index(handle).unwrap()), [3, 0, 2, 1, 4]);
    /// ```
    #[must_use]
    pub fn index(&self, handle: Handle) -> Option<usize> {
        Some(self.slab[self.slab.find(handle)?].home)
    }

    /// Takes an entry out of the heap. The last entry of the array fills the gap.
    fn take_out(&mut self, place: u32) -> T {
        let index = self.slab[place].home;
        self.heap.swap_remove(index);
        if let Some(&moved) = self.heap.get(index) {
            self.slab[moved].home = index;
            self.settle(index);
        }
        self.slab.remove(place)
    }

    /// Moves the entry at `index` up or down until it is in order with its parent and its children.
    fn settle(&mut self, index: usize) {
        let index = self.climb(index);
        self.sink(index);
    }

    fn climb(&mut self, mut index: usize) -> usize {
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.order(parent) < self.order(index) {
                break;
            }
            self.swap(index, parent);
            index = parent;
        }
        index
    }

    fn sink(&mut self, mut index: usize) {
        loop {
            let (left, right) = (2 * index + 1, 2 * index + 2);
            let mut first = index;
            for child in [left, right] {
                if child < self.heap.len() && self.order(child) < self.order(first) {
                    first = child;
                }
            }
            if first == index {
                break;
            }
            self.swap(index, first);
            index = first;
        }
    }

    fn order(&self, index: usize) -> (u64, u64) {
        self.slab[self.heap[index]].order()
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for index in [a, b] {
            self.slab[self.heap[index]].home = index;
        }
    }
}

impl<T> TimerQueue<T> for HeapQueue<T> {
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
                let index = self.heap.len();
                self.slab[handle.place()].home = index;
                self.heap.push(handle.place());
                self.climb(index);
                Ok(handle)
            }
            Err(objection) => Err(objection.refuse(value)),
        }
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let place = self.slab.find(handle)?;
        Some(self.take_out(place))
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let place = self.slab.find(handle).ok_or(RescheduleError::Stale)?;
        self.slab[place].deadline = accept(deadline, self.now, 1)?;
        self.settle(self.slab[place].home);
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        Some(self.slab[self.slab.find(handle)?].deadline)
    }

    fn next_wake(&self) -> Option<u64> {
        self.heap.first().map(|&place| self.slab[place].deadline)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        let mut fired = 0;
        while let Some(&place) = self.heap.first()
            && self.slab[place].deadline <= now
        {
            let deadline = self.slab[place].deadline;
            // While entries with this deadline are handed out, time stands just before the deadline. So after a panic in `fire`, the
            // entries that were not handed out yet are still in the future.
            self.now = deadline - 1;
            let value = self.take_out(place);
            fired += 1;
            fire(deadline, value);
        }
        self.now = self.now.max(now);
        fired
    }
}

impl<T> fmt::Debug for HeapQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapQueue")
            .field("now", &self.now)
            .field("len", &self.slab.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no entry fires before its parent, and that each entry has its own index.
    fn assert_sound(queue: &HeapQueue<u64>) {
        assert_eq!(queue.heap.len(), queue.slab.len(), "a dead entry is in the heap");
        for index in 0..queue.heap.len() {
            assert_eq!(queue.slab[queue.heap[index]].home, index);
            if let Some(above) = index.checked_sub(1) {
                assert!(queue.order(above / 2) < queue.order(index), "index {index} is out of order");
            }
        }
    }

    /// C23: an entry that is cancelled at the root, in the middle or at the end leaves at once, and the entry that fills its gap climbs or
    /// sinks.
    #[test]
    fn c23_a_cancelled_entry_leaves_the_heap_at_once() {
        // The last entry, 12, is in another branch than 20 to 22, so it has to climb when it fills a gap there.
        let deadlines = [1, 20, 10, 21, 22, 11, 12];
        for leaving in 0..deadlines.len() {
            let mut queue = HeapQueue::new(0);
            let mut handles = Vec::new();
            for deadline in deadlines {
                handles.push(queue.insert(deadline, deadline).expect("it is ahead"));
                assert_sound(&queue);
            }
            assert_eq!(queue.cancel(handles[leaving]), Some(deadlines[leaving]));
            assert_eq!(queue.heap.len(), 6);
            assert_sound(&queue);
            for (index, &handle) in handles.iter().enumerate().filter(|(index, _)| *index != leaving) {
                let to = 23 - deadlines[index];
                queue.reschedule(handle, to).expect("it is pending");
                assert_sound(&queue);
            }
        }
    }
}
