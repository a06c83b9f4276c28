//! [`Timeout`]: the handle of a scheduled task.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::entry::AnyEntry;
use super::word::Phase;
use crate::Monotonic;

/// The handle of a task that was scheduled: cancel it, move it, ask what became of it.
///
/// Clones are handles of the same task. Dropping a handle does nothing: the task runs when it is
/// due. Each method costs some tens of nanoseconds, and none waits.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{ManualClock, Timer, TimeoutState};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let timeout = timer.schedule(Duration::from_secs(30), || println!("no answer")).unwrap();
///
/// // Another 30 seconds from now, then the answer arrives.
/// clock.advance(Duration::from_secs(20));
/// assert!(timeout.reschedule(Duration::from_secs(30)));
/// clock.advance(Duration::from_secs(20));
/// assert_eq!(timeout.state(), TimeoutState::Pending);
/// assert!(timeout.cancel());
/// assert!(!timeout.cancel(), "a second time there is nothing to cancel");
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Timeout {
    entry: Arc<AnyEntry>,
}

/// What a scheduled task is going through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeoutState {
    /// It waits; its body has not begun. Left by its deadline, `cancel` or `shutdown`.
    Pending,
    /// Its body runs. Left when the body ends; a periodic task is pending again then.
    Firing,
    /// Its body has run, or has panicked. Final.
    Fired,
    /// A `cancel` said yes. Final.
    Cancelled,
    /// `shutdown` or `close` gave it back. Final.
    Returned,
}

impl Timeout {
    pub(super) fn new(entry: Arc<AnyEntry>) -> Self {
        Self { entry }
    }

    /// Cancels the task, if its body has not begun, and drops it. True once, for one caller: then it
    /// has not run and will not.
    ///
    /// False says that it runs, has run, was cancelled before or was given back by `shutdown`. A
    /// periodic task that runs just now is cancelled by true: it does not run again.
    ///
    /// The task, with all it captured, is dropped on this thread before the call returns. If the driver had seen it, the 100 bytes
    /// of its entry follow when the driver next runs.
    pub fn cancel(&self) -> bool {
        self.entry.cancel()
    }

    /// Moves the task to `delay` from now, earlier or later; false if its body has begun, or it is
    /// over. After true the old deadline never fires.
    ///
    /// To a later deadline it is one compare-and-set: the driver finds it at the old one and files
    /// it anew. A periodic task goes on with its period from the new deadline; while it runs it cannot be moved, and false
    /// does not mean that it is over.
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.reschedule_at(self.entry.home.common.now().saturating_add(delay))
    }

    /// As [`reschedule`](Self::reschedule), to a reading of the timer's clock; one in the past is
    /// now, and [`Monotonic::MAX`] is never. For a task at a fixed rate the runs between an instant of the past and now are missed ones:
    /// with [`Missed::Burst`](crate::Missed::Burst) all of them come at once.
    pub fn reschedule_at(&self, deadline: Monotonic) -> bool {
        self.entry.reschedule(deadline)
    }

    /// What the task is going through. By the time you look at it, it may have gone on.
    #[must_use]
    pub fn state(&self) -> TimeoutState {
        match self.entry.word.look().phase() {
            Phase::Pending | Phase::Due => TimeoutState::Pending,
            Phase::Firing | Phase::Stopping => TimeoutState::Firing,
            Phase::Fired => TimeoutState::Fired,
            Phase::Cancelled => TimeoutState::Cancelled,
            Phase::Returned => TimeoutState::Returned,
        }
    }

    /// Whether it was kept from running: by `cancel`, or by `shutdown`, which gave it back.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.state(), TimeoutState::Cancelled | TimeoutState::Returned)
    }

    /// When it is due, or was, by the timer's clock: at most 15 ns after what was asked for.
    #[must_use]
    pub fn deadline(&self) -> Monotonic {
        self.entry.word.look().deadline()
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("state", &self.state())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}
