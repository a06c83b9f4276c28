//! [`Family`]: what the suite has to know about the queue under test.

use alloc::vec::Vec;

use crate::TimerQueue;

/// A kind of queue, for any type of value.
pub trait Family {
    /// The queue under test.
    type Queue<T>: TimerQueue<T>;

    /// `next_wake` is the nearest deadline, exactly, while nothing is cancelled or rescheduled. If
    /// not, it may ask for stops on the way.
    const EXACT_WAKE: bool = true;

    /// An empty queue whose time is `start`.
    fn start<T>(start: u64) -> Self::Queue<T>;

    /// The memory the queue holds, in bytes, if it can tell. The checks of memory then hold it to
    /// that number.
    fn heap_bytes<T>(queue: &Self::Queue<T>) -> Option<usize> {
        let _ = queue;
        None
    }
}

/// Calls a closure and says whether it panicked: `std::panic::catch_unwind`, which this crate
/// cannot name.
pub type Catch = fn(&mut dyn FnMut()) -> bool;

/// Advances a queue and returns what fired, after checking that the count is right.
pub(super) fn fired<T>(queue: &mut impl TimerQueue<T>, now: u64) -> Vec<(u64, T)> {
    let mut fired = Vec::new();
    let before = queue.len();
    let count = queue.advance(now, &mut |deadline, value| fired.push((deadline, value)));
    assert_eq!(count, fired.len(), "advance({now}) miscounted what it fired");
    assert_eq!(queue.len(), before - count, "advance({now}) left a wrong len");
    fired
}

/// Follows `next_wake` by one stop and returns it with what fired there; `None` when nothing is
/// pending. A wake that is not after now would lead nowhere, for ever.
pub(super) fn follow<T>(queue: &mut impl TimerQueue<T>) -> Option<(u64, Vec<(u64, T)>)> {
    let wake = queue.next_wake()?;
    assert!(wake > queue.now(), "the wake, {wake}, is not after now, {}", queue.now());
    Some((wake, fired(queue, wake)))
}
