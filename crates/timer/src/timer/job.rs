//! [`Job`]: a due task for an executor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::entry::AnyEntry;
use super::firing::fire;
use super::word::Phase;

/// The time after which a task that an executor dropped is handed over again.
const RETRY: Duration = Duration::from_millis(100);

/// A task that is due, for an [`Executor`](crate::Executor).
///
/// Until [`run`](Self::run) has begun, the task can still be cancelled or moved; `run` then does nothing. It also does nothing after the
/// timer is shut down. Dropping a job without running it means that the executor refuses it: the task is not lost, because the timer hands
/// it over again 100 ms later.
#[must_use = "a job that is dropped comes again in 100 ms"]
pub struct Job {
    /// `None` once the job has been run.
    entry: Option<Arc<AnyEntry>>,
}

impl Job {
    pub(super) fn new(entry: Arc<AnyEntry>) -> Self {
        Self { entry: Some(entry) }
    }

    /// Runs the task on this thread. If the task panics, the timer catches and counts the panic.
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
