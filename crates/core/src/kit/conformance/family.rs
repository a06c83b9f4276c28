//! [`Family`]: the description of the queue under test for the suite.

use alloc::vec::Vec;

use crate::TimerQueue;

/// A type of queue, for values of any type.
pub trait Family {
    /// The queue under test.
    type Queue<T>: TimerQueue<T>;

    /// Whether `next_wake` is exactly the nearest deadline as long as no entry was cancelled or rescheduled. If `false`, the queue may ask
    /// for earlier stops.
    const EXACT_WAKE: bool = true;

    /// The distance up to which the queue accepts every deadline, at any time (in ticks, at least 60). The queue refuses every deadline
    /// that is more than twice as far. The checks use deadlines within this distance.
    const REACH: u64 = u64::MAX;

    /// The length of a tick: the queue rounds deadlines up to a multiple of it. Scripts work with any tick; the checks need 1.
    const TICK: u64 = 1;

    /// An empty queue whose time is `start`.
    fn start<T>(start: u64) -> Self::Queue<T>;

    /// The memory that the queue holds (bytes); `None` if the queue does not know it. The checks of memory use this number.
    fn heap_bytes<T>(queue: &Self::Queue<T>) -> Option<usize> {
        let _ = queue;
        None
    }
}

/// Calls a closure and returns whether it panicked. The function is `std::panic::catch_unwind`, which this crate cannot use because it has
/// no standard library.
pub type Catch = fn(&mut dyn FnMut()) -> bool;

/// The distance `ahead`, or the reach of the queue if that is smaller.
pub(super) fn within<F: Family>(ahead: u64) -> u64 {
    ahead.min(F::REACH)
}

/// Advances a queue and returns what fired. Checks that the returned count is right.
pub(super) fn fired<T>(queue: &mut impl TimerQueue<T>, now: u64) -> Vec<(u64, T)> {
    let mut fired = Vec::new();
    let before = queue.len();
    let count = queue.advance(now, &mut |deadline, value| fired.push((deadline, value)));
    assert_eq!(count, fired.len(), "advance({now}) miscounted what it fired");
    assert_eq!(queue.len(), before - count, "advance({now}) left a wrong len");
    fired
}

/// Advances to `next_wake` and returns that tick with what fired; `None` if nothing is pending. Panics if the wake is not after now,
/// because a driver would then loop for ever.
pub(super) fn follow<T>(queue: &mut impl TimerQueue<T>) -> Option<(u64, Vec<(u64, T)>)> {
    let wake = queue.next_wake()?;
    assert!(wake > queue.now(), "the wake, {wake}, is not after now, {}", queue.now());
    Some((wake, fired(queue, wake)))
}
