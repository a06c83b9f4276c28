//! [`Unfired`]: the tasks that a timer gives back when it ends.

use std::fmt;

use super::body::Task;
use crate::Monotonic;

/// The tasks that had not begun when the timer was [shut down](crate::Timer::shutdown), in the order of their deadlines. Tasks with equal
/// deadlines are in no particular order. Dropping this value drops the tasks.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{ManualClock, Timer, TimeoutState};
///
/// let timer = Timer::builder().clock(ManualClock::new()).build()?;
/// let timeout = timer.schedule(Duration::from_secs(60), || println!("closing down")).unwrap();
/// let unfired = timer.shutdown();
/// assert_eq!(unfired.len(), 1);
/// assert_eq!(timeout.state(), TimeoutState::Returned);
/// for task in unfired {
///     // The task runs before its deadline, because this code asks for it.
///     task.run();
/// }
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[must_use = "these tasks will not run; look at them, or drop them knowingly"]
#[derive(Default)]
pub struct Unfired {
    tasks: Vec<UnfiredTask>,
}

/// A task that did not run.
pub struct UnfiredTask {
    deadline: Monotonic,
    task: Task,
}

/// How [`Timer::close`](crate::Timer::close) treats pending tasks. The default is the JDK's: one-shot tasks still run, periodic tasks do
/// not run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnClose {
    /// Tasks that run once, and sleeps.
    pub one_shots: Fate,
    /// Periodic tasks.
    pub periodic: Fate,
}

/// The fate of pending tasks when a timer closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The tasks run when they are due.
    Run,
    /// The tasks are given back to the caller, which may still run them. This includes tasks that an executor has and that have not begun.
    /// (The JDK, if it is told not to run delayed tasks after a shutdown, runs the tasks that the executor has, and drops all others
    /// without giving them back.) A running body ends as usual; if it is periodic, there is no further run, and nothing is given back.
    Return,
}

impl Default for OnClose {
    fn default() -> Self {
        Self { one_shots: Fate::Run, periodic: Fate::Return }
    }
}

impl Unfired {
    pub(super) fn new(tasks: Vec<UnfiredTask>) -> Self {
        Self { tasks }
    }

    /// The number of tasks. Sleeps are not counted: they ended with an error.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

impl UnfiredTask {
    pub(super) fn new(deadline: Monotonic, task: Task) -> Self {
        Self { deadline, task }
    }

    /// The deadline, by the timer's clock, at most 15 ns after the requested one.
    #[must_use]
    pub fn deadline(&self) -> Monotonic {
        self.deadline
    }

    /// Runs the task now, on this thread; a periodic task runs once. A panic passes through.
    pub fn run(self) {
        (self.task)();
    }
}

impl IntoIterator for Unfired {
    type Item = UnfiredTask;
    type IntoIter = std::vec::IntoIter<UnfiredTask>;

    fn into_iter(self) -> Self::IntoIter {
        self.tasks.into_iter()
    }
}

impl fmt::Debug for Unfired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.tasks).finish()
    }
}

impl fmt::Debug for UnfiredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnfiredTask").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
