//! [`Job`]: a due task for an executor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::entry::AnyEntry;
use super::firing::fire;
use super::word::Phase;

/// The time after which work that an executor dropped is handed over again.
pub(super) const RETRY: Duration = Duration::from_millis(100);

/// Work of the timer for an [`Executor`](crate::Executor): a task that is due, or an attempt of a [`Purgatory`](crate::Purgatory).
///
/// Until [`run`](Self::run) has begun, the task can still be cancelled or moved; `run` then does nothing. It also does nothing after the
/// timer is shut down. Dropping a job without running it means that the executor refuses it: the work is not lost, because the timer hands
/// it over again 100 ms later.
#[must_use = "a job that is dropped comes again in 100 ms"]
pub struct Job {
    /// `None` once the job has been run.
    work: Option<Work>,
}

enum Work {
    Task(Arc<AnyEntry>),
    Errand(Box<dyn Errand>),
}

/// Work that is no task of the timer and has no deadline.
pub(crate) trait Errand: Send + Sync {
    /// Does the work. It does not panic.
    fn run(self: Box<Self>);

    /// The executor dropped the job. The errand has to come again.
    fn refused(self: Box<Self>);
}

impl Job {
    pub(super) fn new(entry: Arc<AnyEntry>) -> Self {
        Self { work: Some(Work::Task(entry)) }
    }

    pub(crate) fn errand(errand: Box<dyn Errand>) -> Self {
        Self { work: Some(Work::Errand(errand)) }
    }

    /// Runs the task or the attempt on this thread. If it panics, the timer catches and counts the panic.
    pub fn run(mut self) {
        match self.work.take() {
            Some(Work::Task(entry)) => fire(&entry),
            Some(Work::Errand(errand)) => errand.run(),
            None => {}
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        match self.work.take() {
            Some(Work::Task(entry)) if entry.word.look().phase() == Phase::Due => {
                let later = entry.home.common.now().saturating_add(RETRY);
                entry.home.revive(&entry, later);
            }
            Some(Work::Errand(errand)) => errand.refused(),
            Some(Work::Task(_)) | None => {}
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}
