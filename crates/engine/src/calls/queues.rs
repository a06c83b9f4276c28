//! Queues: their settings, their list.

use std::sync::Arc;

use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::settings::{QueueRecord, QueueSettings};

/// Lays down how a queue hands its tasks out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeQueue {
    /// The queue. It need not have tasks.
    pub queue: QueueName,
    /// What is laid down.
    pub change: QueueChange,
}

/// What is laid down about a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// These settings, all of them, in place of those before.
    Settings(QueueSettings),
    /// Nothing is leased from now on. What is in workers' hands may be finished, and puts are taken.
    Pause {
        /// For so long, milliseconds; 0: a pause ends. `None`: until it is resumed.
        ms: Option<u64>,
    },
    /// No task is added from now on: those that are there are worked off.
    Drain,
    /// Ends a pause and a drain.
    Resume,
    /// Forgets the queue: its settings, a pause and a drain are gone, and it is listed no longer. Refused while it has tasks or schedules.
    Delete,
    /// This record of another store, all of it: settings, pause and drain.
    Restore(QueueRecord),
}

/// A page of queues holds 500 at most: other calls are served between two pages.
pub const QUEUES_PAGE_MAX: usize = 500;

/// Which queues a list names.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum WhichQueues {
    /// Those that have tasks, settings, or a call that waits on them, and those that had a task or settings within the last hour, of which 10,000
    /// are remembered, until the next start.
    #[default]
    Listed,
    /// Those that have tasks, settings, or a call that waits on them, and those that a client of beanstalkd uses.
    InUse,
}

/// Looks at one queue. One that was never used has no tasks and no settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue(
    /// Its name.
    pub QueueName,
);

/// Pages through the queues in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListQueues {
    /// Which of them.
    pub which: WhichQueues,
    /// Those whose name begins with this.
    pub prefix: Arc<str>,
    /// Those behind this one.
    pub after: Option<QueueName>,
    /// The list looks at no more queues than this, 1 to [`QUEUES_PAGE_MAX`]: a page may hold fewer, though more follow.
    pub max: usize,
}

impl Default for ListQueues {
    /// The first of all that are listed.
    fn default() -> Self {
        Self { which: WhichQueues::Listed, prefix: "".into(), after: None, max: QUEUES_PAGE_MAX }
    }
}

/// Why a queue was not changed. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueueError {
    /// The settings have something that cannot be.
    #[error("{what} cannot be")]
    Invalid {
        /// What.
        what: &'static str,
    },
    /// So many queues have settings, or are held, that no more can be.
    #[error("{limit} queues have settings of their own, and no more can have")]
    TooMany {
        /// How many can have.
        limit: usize,
    },
    /// It cannot be deleted: it has something that would be lost with it.
    #[error("the queue is not empty: live tasks {live}, dead tasks {dead}, schedules {schedules}")]
    NotEmpty {
        /// Its live tasks.
        live: u64,
        /// Its dead tasks.
        dead: u64,
        /// Its schedules.
        schedules: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
