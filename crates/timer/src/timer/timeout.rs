//! [`Timeout`]: the handle of a scheduled task.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::entry::AnyEntry;
use super::word::Phase;
use crate::Monotonic;

/// The handle of a scheduled task, to cancel it, to move it, or to ask for its state.
///
/// Clones are handles of the same task. Dropping a handle does nothing: the task runs when it is due. Each method costs some tens of
/// nanoseconds, and none waits.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{ManualClock, Timer, TimeoutState};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let timeout = timer.schedule(Duration::from_secs(30), || println!("no answer")).unwrap();
///
/// // The deadline moves to 30 seconds from now; then the answer arrives.
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

/// The state of a scheduled task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeoutState {
    /// The task waits; its body has not begun. The deadline, `cancel`, `shutdown` or `close` ends this state.
    Pending,
    /// The body runs. When it ends, the task is fired, or pending again if it is periodic.
    Firing,
    /// The body has run, or has panicked. Final.
    Fired,
    /// A `cancel` returned true. Final.
    Cancelled,
    /// `shutdown` or `close` gave the task back. Final.
    Returned,
}

impl Timeout {
    pub(super) fn new(entry: Arc<AnyEntry>) -> Self {
        Self { entry }
    }

    /// Cancels the task if its body has not begun, and drops it. True for one caller only: it means that the task has not run and will not
    /// run.
    ///
    /// False means that the task is running, has run, was cancelled before, or was given back by `shutdown` or `close`. For a periodic task
    /// that is running, true means that it will not run again.
    ///
    /// The task, with all values that it captured, is dropped on this thread before the call returns. If the driver has filed the task, the
    /// 100 bytes of its entry are freed when the driver next runs.
    pub fn cancel(&self) -> bool {
        self.entry.cancel()
    }

    /// Moves the task to `delay` from now, earlier or later. False if its body has begun, or if it has ended. After true, the task never
    /// fires at the old deadline.
    ///
    /// A move to a later deadline is one compare-and-swap: the driver finds the task at the old deadline and files it again. A periodic
    /// task continues with its period from the new deadline. A periodic task cannot be moved while it runs; in this case false does not
    /// mean that it has ended.
    pub fn reschedule(&self, delay: Duration) -> bool {
        self.reschedule_at(self.entry.home.common.now().saturating_add(delay))
    }

    /// Like [`reschedule`](Self::reschedule), to a reading of the timer's clock. A reading in the past counts as now; with
    /// [`Monotonic::MAX`], the task never runs. For a task at a fixed rate, the runs between a reading in the past and now are missed: with
    /// [`Missed::Burst`](crate::Missed::Burst) all of them take place at once.
    pub fn reschedule_at(&self, deadline: Monotonic) -> bool {
        self.entry.reschedule(deadline)
    }

    /// The state of the task. It may have changed when the call returns.
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

    /// Whether the task will not run, because of `cancel`, `shutdown` or `close`.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.state(), TimeoutState::Cancelled | TimeoutState::Returned)
    }

    /// The deadline, by the timer's clock: at most 15 ns after the requested one. The first deadline of a periodic task that begins at once is up to
    /// 15 ns before it.
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
