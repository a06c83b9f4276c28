//! [`Closed`]: the error of a push into a closed queue.

use std::error::Error;
use std::fmt;

/// The queue is closed and did not take the value; the value is given back.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Closed, DelayQueue, ManualClock, Timer};
///
/// let timer = Timer::builder().clock(ManualClock::new()).build()?;
/// let queue = DelayQueue::new(&timer);
/// assert!(queue.close().is_empty());
/// assert_eq!(queue.push("late", Duration::ZERO), Err(Closed("late")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(
    /// The value of the push.
    pub T,
);

// A hand-written impl without the bound `T: Debug`, so that the refusal of any `T` can be reported and unwrapped.
impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Closed").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the delay queue is closed and takes nothing more")
    }
}

impl<T> Error for Closed<T> {}
