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

    /// How far ahead a deadline may be: every one that is at most so many ticks after now is taken,
    /// at any time, and none more than twice as far. The checks keep within it. At least 60.
    const REACH: u64 = u64::MAX;

    /// Deadlines are rounded up to a multiple of it. Scripts take any, the checks need 1.
    const TICK: u64 = 1;

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

/// So many ticks ahead, or as many as the queue reaches.
pub(super) fn within<F: Family>(ahead: u64) -> u64 {
    ahead.min(F::REACH)
}

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
