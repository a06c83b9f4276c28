//! [`Job`]: a due task on its way to an executor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::entry::AnyEntry;
use super::firing::fire;
use super::word::Phase;

/// After this time a task that an executor dropped is handed over again.
const RETRY: Duration = Duration::from_millis(100);

/// A task whose time has come, on its way to an [`Executor`](crate::Executor).
///
/// Until [`run`](Self::run) has begun the task can still be cancelled or moved, and `run` then does
/// nothing; it also does nothing once the timer is shut down. A job that is dropped without being
/// run was refused by the executor: its task is not lost, the timer hands it over again 100 ms
/// later.
#[must_use = "a job that is dropped comes again in 100 ms"]
pub struct Job {
    /// `None` once the job has been run.
    entry: Option<Arc<AnyEntry>>,
}

impl Job {
    pub(super) fn new(entry: Arc<AnyEntry>) -> Self {
        Self { entry: Some(entry) }
    }

    /// Runs the task on this thread. The timer catches and counts its panic.
    pub fn run(mut self) {
        if let Some(entry) = self.entry.take() {
            fire(&entry);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take()
            && entry.word.look().phase() == Phase::Due
        {
            let later = entry.home.common.now().saturating_add(RETRY);
            entry.home.revive(&entry, later);
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}
