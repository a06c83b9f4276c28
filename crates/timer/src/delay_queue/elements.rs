//! [`Elements`]: the elements of a queue, in the order in which they will be taken.

use std::collections::BTreeMap;

use super::handle::DelayHandle;
use crate::Monotonic;

/// A sorted map from (deadline, number of the push) to value.
///
/// The map is a B-tree and not an indexed heap, for three reasons. First, with many elements, a push and a take need half of the time of a
/// heap that stores the index of each entry, and two thirds of its memory; only a push that is removed again costs more. Second, removed
/// elements free their memory. Third, an element is found by its number, so no handle is used twice.
pub(super) struct Elements<T> {
    waiting: BTreeMap<(Monotonic, u64), T>,
    /// The deadlines of elements that were rescheduled, by number. All other elements have the deadline of their handle.
    moved: BTreeMap<u64, Monotonic>,
    pushed: u64,
}

impl<T> Elements<T> {
    pub(super) const fn new() -> Self {
        Self { waiting: BTreeMap::new(), moved: BTreeMap::new(), pushed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The deadline of the head.
    pub(super) fn head(&self) -> Option<Monotonic> {
        self.waiting.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    /// The handle of the head.
    pub(super) fn head_handle(&self) -> Option<DelayHandle> {
        self.waiting.first_key_value().map(|(&(deadline, number), _)| DelayHandle { number, deadline })
    }

    /// The deadline of an element; `None` if the handle is stale.
    pub(super) fn deadline(&self, handle: DelayHandle) -> Option<Monotonic> {
        let (deadline, _) = self.key(handle)?;
        Some(deadline)
    }

    pub(super) fn push(&mut self, deadline: Monotonic, value: T) -> DelayHandle {
        let number = self.pushed;
        // The number cannot overflow: 2^64 pushes, at one per nanosecond, take 584 years.
        self.pushed += 1;
        self.waiting.insert((deadline, number), value);
        DelayHandle { number, deadline }
    }

    /// Takes the head out if its deadline has passed at `now`.
    pub(super) fn take_due(&mut self, now: Monotonic) -> Option<T> {
        let head = self.waiting.first_entry().filter(|head| head.key().0.has_come(now))?;
        let ((_, number), value) = head.remove_entry();
        self.moved.remove(&number);
        Some(value)
    }

    /// Takes the elements whose deadline has passed at `now`, in order, at most `max`.
    pub(super) fn take_all_due(&mut self, now: Monotonic, max: usize) -> Vec<T> {
        std::iter::from_fn(|| self.take_due(now)).take(max).collect()
    }

    pub(super) fn remove(&mut self, handle: DelayHandle) -> Option<T> {
        let key = self.key(handle)?;
        self.moved.remove(&key.1);
        self.waiting.remove(&key)
    }

    /// Gives an element another deadline. Elements with equal deadlines stay in the order of their pushes. False if the handle is stale.
    pub(super) fn reschedule(&mut self, handle: DelayHandle, deadline: Monotonic) -> bool {
        let Some(key) = self.key(handle) else { return false };
        if let Some(value) = self.waiting.remove(&key) {
            self.waiting.insert((deadline, key.1), value);
            self.moved.insert(key.1, deadline);
        }
        true
    }

    /// Takes all elements, in order. All handles become stale.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.moved.clear();
        std::mem::take(&mut self.waiting).into_values()
    }

    /// Moves all elements into as few nodes as possible.
    pub(super) fn compact(&mut self) {
        self.waiting = std::mem::take(&mut self.waiting).into_iter().collect();
        self.moved = std::mem::take(&mut self.moved).into_iter().collect();
    }

    /// The key of the element in the map; `None` if the handle is stale.
    fn key(&self, handle: DelayHandle) -> Option<(Monotonic, u64)> {
        let deadline = self.moved.get(&handle.number).copied().unwrap_or(handle.deadline);
        let key = (deadline, handle.number);
        self.waiting.contains_key(&key).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Monotonic {
        Monotonic::from_nanos(nanos)
    }

    #[test]
    fn a_handle_that_was_made_before_a_move_and_one_made_after_it_are_one() {
        let mut elements = Elements::new();
        let pushed = elements.push(at(5), 'a');
        assert!(elements.reschedule(pushed, at(9)));
        let peeked = elements.head_handle().expect("it waits");
        assert_eq!((peeked, peeked.deadline), (pushed, at(9)));
        // Reschedules through either handle: to the old deadline, to another one, and back.
        for (handle, to) in [(peeked, 5), (pushed, 7), (peeked, 5)] {
            assert!(elements.reschedule(handle, at(to)));
            assert_eq!((elements.deadline(pushed), elements.deadline(peeked)), (Some(at(to)), Some(at(to))));
        }
        assert_eq!(elements.remove(peeked), Some('a'));
        assert_eq!((elements.deadline(pushed), elements.remove(pushed)), (None, None));
    }

    #[test]
    fn nothing_is_remembered_of_what_was_moved_and_has_left() {
        let mut elements = Elements::new();
        for leave in 0..3 {
            let handle = elements.push(at(5), leave);
            assert!(elements.reschedule(handle, at(6)));
            match leave {
                0 => assert_eq!(elements.take_due(at(6)), Some(0)),
                1 => assert_eq!(elements.remove(handle), Some(1)),
                _ => assert_eq!(elements.take_all().collect::<Vec<_>>(), [2]),
            }
            assert!(elements.moved.is_empty() && elements.is_empty());
            assert!(!elements.reschedule(handle, at(7)));
        }
    }
}
