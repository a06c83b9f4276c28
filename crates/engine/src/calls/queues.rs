//! The calls that change a queue, get one queue, and list queues.

use std::sync::Arc;

use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::settings::{QueueRecord, QueueSettings};
use crate::target::TargetRecord;

/// Changes the configuration of a queue, or deletes the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeQueue {
    /// The queue. A queue without tasks can be configured, too.
    pub queue: QueueName,
    /// The change.
    pub change: QueueChange,
}

/// A change of the configuration of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// Replaces all settings of the queue by these settings.
    Settings(QueueSettings),
    /// During the pause, lease calls get no task of the queue. Workers may finish the tasks that they have, and puts are taken. A lease of
    /// a task by its id is not held up.
    Pause {
        /// The length of the pause (ms); 0: a pause ends. `None`: until a `Resume`.
        ms: Option<u64>,
    },
    /// Until a `Resume`, puts and schedules add no task to the queue. Workers may finish the tasks that are in the queue.
    Drain,
    /// Ends a pause and a drain.
    Resume,
    /// Gives the queue this target, or removes the target of the queue (`None`). All else that is configured stays. No other change except
    /// `Delete` touches the target. A first target needs room in the store for its value. A change of a target needs room only if the
    /// value gets more than 1,024 bytes longer, so that an owner can stop or redirect a target although the disk is full.
    Target(Option<TargetRecord>),
    /// Removes the settings, the pause, the drain and the target of the queue. The queue leaves the lists of queues, unless a call waits on it. Refused
    /// while the queue has tasks or schedules.
    Delete,
    /// Replaces settings, pause and drain of the queue by this record from another store. The queue keeps the target that it has, or stays
    /// without one: the target in the record is ignored. An export has no targets, because they have secrets, so an import must not
    /// remove one.
    Restore(QueueRecord),
}

/// The largest number of queues that a page looks at. Other calls are served between two pages.
pub const QUEUES_PAGE_MAX: usize = 500;

/// Which queues a list names.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum WhichQueues {
    /// Queues that have tasks, a configuration, or a call that waits on them, and queues that had a task or a configuration, became empty
    /// within the last hour, and were not deleted. Of the empty queues, the engine remembers only the 10,000 that became empty last, and
    /// only until its next start. A configuration is settings, a pause, a drain or a target.
    #[default]
    Listed,
    /// Queues that have tasks, a configuration, or a call that waits on them, and queues that a client of beanstalkd uses.
    InUse,
}

/// Returns one queue. A queue that does not exist is returned without tasks and settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue(
    /// The name of the queue.
    pub QueueName,
);

/// Returns the targets of all queues that have one, at most [`TARGETS_MAX`](crate::TARGETS_MAX), in the order of the names of the queues.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ListTargets;

/// Pages through the queues in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListQueues {
    /// Which queues the list names.
    pub which: WhichQueues,
    /// Only queues with names that begin with this text.
    pub prefix: Arc<str>,
    /// Only queues behind this one, in the order of the names; `None`: the first page.
    pub after: Option<QueueName>,
    /// The largest number of queues that the page looks at, 1 to [`QUEUES_PAGE_MAX`]. A page may hold fewer, though more pages follow.
    pub max: usize,
}

impl Default for ListQueues {
    /// Returns the call for the first page of the listed queues.
    fn default() -> Self {
        Self { which: WhichQueues::Listed, prefix: "".into(), after: None, max: QUEUES_PAGE_MAX }
    }
}

/// Why a change of a queue failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueueError {
    /// A setting has a value that is not allowed.
    #[error("{what} cannot be")]
    Invalid {
        /// The value that is not allowed.
        what: &'static str,
    },
    /// The largest number of queues with a configuration (settings, a pause, a drain or a target) is reached.
    #[error("{limit} queues have settings of their own, and no more can have")]
    TooMany {
        /// The largest number of queues that may have a configuration.
        limit: usize,
    },
    /// The largest number of queues with a target is reached.
    #[error("{limit} queues have a target, and no more can have one")]
    TooManyTargets {
        /// The largest number of queues that may have a target.
        limit: usize,
    },
    /// The value of the target is too long.
    #[error("the value of a target has at most {limit} bytes")]
    TargetTooLong {
        /// The longest value that is allowed (bytes).
        limit: usize,
    },
    /// The queue cannot be deleted, because its tasks or schedules would be lost.
    #[error("the queue is not empty: live tasks {live}, dead tasks {dead}, schedules {schedules}")]
    NotEmpty {
        /// The number of live tasks in the queue.
        live: u64,
        /// The number of dead tasks in the queue.
        dead: u64,
        /// The number of schedules of the queue.
        schedules: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
