//! [`Refused`]: gives a task back that the timer did not accept.

use std::error::Error;
use std::fmt;

/// A task that a timer did not accept, and the reason. The task is not counted as pending.
///
/// A `Refused` is `Send` and `Sync` if its task is. A caller that does not need the task converts the value into a [`Refusal`], which is a
/// plain error:
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{ManualClock, Refusal, Timer};
///
/// let timer = Timer::builder().clock(ManualClock::new()).max_pending(1).build().unwrap();
/// let schedule = || -> Result<(), Refusal> {
///     timer.schedule(Duration::from_secs(1), || ())?;
///     Ok(())
/// };
/// assert_eq!(schedule(), Ok(()));
/// assert_eq!(schedule(), Err(Refusal::Full));
/// // For `Box<dyn Error>` and similar types: .map_err(Refusal::from)
/// ```
pub struct Refused<F> {
    /// The task, as it was given.
    pub task: F,
    /// The reason for the refusal.
    pub why: Refusal,
}

/// The reason why a timer refused a task or a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The number of pending tasks is [`max_pending`](crate::TimerBuilder::max_pending).
    Full,
    /// The timer was shut down, or closed.
    ShutDown,
    /// The period or the fixed delay is zero.
    NoPeriod,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => {
                "as many tasks are pending as `max_pending` allows; cancel some, wait, or allow more"
            }
            Self::ShutDown => "the timer is shut down; make another one",
            Self::NoPeriod => {
                "a period of zero has no next run; the least is a nanosecond, and a tick is sensible"
            }
        })
    }
}

impl Error for Refusal {}

impl<F> fmt::Debug for Refused<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Refused<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task was refused: {}", self.why)
    }
}

impl<F> Error for Refused<F> {}

impl<F> From<Refused<F>> for Refusal {
    /// Drops the task and keeps the reason.
    fn from(refused: Refused<F>) -> Self {
        refused.why
    }
}
