//! [`Family`]: what the suite has to know about the queue under test.

use alloc::vec::Vec;

use crate::TimerQueue;

/// A kind of queue, for any type of value.
pub trait Family {
    /// The queue under test.
    type Queue<T>: TimerQueue<T>;

    /// Whether `next_wake` is exactly the nearest deadline while nothing is cancelled or
    /// rescheduled. If not, it may ask for stops on the way.
    const EXACT_WAKE: bool = true;

    /// How many ticks ahead a deadline may be (at least 60). The queue accepts every deadline up to
    /// this distance, at any time, and refuses every one that is more than twice as far. The checks
    /// stay within the distance.
    const REACH: u64 = u64::MAX;

    /// The length of a tick: deadlines are rounded up to a multiple of it. Scripts accept any tick,
    /// the checks need 1.
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

/// The distance `ahead`, cut off at the queue's reach.
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
