//! Queues: their settings, their list.

use std::sync::Arc;

use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::settings::{QueueRecord, QueueSettings};

/// Configures how a queue hands its tasks out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeQueue {
    /// The queue. It need not have tasks.
    pub queue: QueueName,
    /// The change.
    pub change: QueueChange,
}

/// A change of a queue's configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// These settings, all of them, in place of those before.
    Settings(QueueSettings),
    /// Nothing is leased from now on. What is in workers' hands may be finished, and puts are taken.
    Pause {
        /// The length of the pause (ms); 0: a pause ends. `None`: until it is resumed.
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
    /// Queues that have tasks, settings, or a call that waits on them, and queues that had a task or settings within the last hour. The
    /// last 10,000 of these are remembered, until the next start.
    #[default]
    Listed,
    /// Queues that have tasks, settings, or a call that waits on them, and queues that a client of beanstalkd uses.
    InUse,
}

/// Looks at one queue. A queue that was never used has no tasks and no settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue(
    /// The name of the queue.
    pub QueueName,
);

/// Pages through the queues in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListQueues {
    /// Which of them.
    pub which: WhichQueues,
    /// Only queues with names that begin with this.
    pub prefix: Arc<str>,
    /// Only queues behind this one.
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
        /// The setting that is not allowed.
        what: &'static str,
    },
    /// The limit of queues that have settings, or are held, is reached.
    #[error("{limit} queues have settings of their own, and no more can have")]
    TooMany {
        /// How many can have.
        limit: usize,
    },
    /// The queue cannot be deleted: it has tasks or schedules that would be lost with it.
    #[error("the queue is not empty: live tasks {live}, dead tasks {dead}, schedules {schedules}")]
    NotEmpty {
        /// The queue's live tasks.
        live: u64,
        /// The queue's dead tasks.
        dead: u64,
        /// The queue's schedules.
        schedules: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
