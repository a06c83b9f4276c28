//! Calls that name a task by its id.

use std::sync::Arc;

use super::lease::Leased;
use super::redrive::RedriveError;
use super::task_view::TaskView;
use super::unavailable::Unavailable;
use crate::time::Seq;

/// Returns the task that has an id, or acts on that task. The task may be in any queue and in any state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ById {
    /// The id of the task.
    pub id: u64,
    /// The action.
    pub act: Act,
    /// The start of the name of the task's queue. If the queue's name begins otherwise, the answer is [`ByIdError::NotFound`]. `None`: any
    /// queue.
    pub within: Option<Arc<str>>,
    /// The version that the task must have. If the task has another version, the answer is [`ByIdError::NotFound`]. `None`: any version.
    pub if_version: Option<Seq>,
    /// The name of the worker that takes the task, for [`Act::Lease`].
    pub worker: Option<Arc<str>>,
}

/// An action on a task that its id names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// Return the task.
    Get,
    /// End the task, live or dead, unless a worker has it.
    Cancel,
    /// Make a scheduled task due at once, or make a dead task live again.
    Run,
    /// Lease the task, unless a worker has it. The task may be scheduled or dead, and is made ready first. The pause, the rate and the
    /// in-flight limits of its queue do not apply.
    Lease {
        /// The length of the lease (ms), as in [`Lease`](crate::Lease::lease_ms).
        lease_ms: Option<u64>,
    },
}

/// The result of a call that names a task by its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acted {
    /// The answer to [`Act::Get`] and [`Act::Run`]: the task after the action.
    Task(Box<TaskView>),
    /// The task was cancelled. No delivery of the task starts after the cancel.
    Cancelled,
    /// The caller has leased the task.
    Leased(Box<Leased>),
}

/// Why a call that names a task by its id failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is
/// unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ByIdError {
    /// No task has this id, or the task has another queue or version than the call asks for.
    #[error("no task has this id")]
    NotFound,
    /// A worker has the task.
    #[error("the task is leased")]
    Leased,
    /// The action is [`Act::Run`], and the task is ready already.
    #[error("the task is ready")]
    Ready,
    /// The task is dead and cannot live again, because a live task has its key now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// The task is dead and cannot live again, because its queue is being drained.
    #[error("the queue is being drained: no dead task becomes live until it is resumed")]
    Draining,
    /// The task is dead and cannot live again, because its queue has reached its limit of live tasks.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<RedriveError> for ByIdError {
    fn from(error: RedriveError) -> Self {
        match error {
            RedriveError::NotFound => Self::NotFound,
            RedriveError::Live { id, version } => Self::Live { id, version },
            RedriveError::Draining => Self::Draining,
            RedriveError::BacklogFull { limit } => Self::BacklogFull { limit },
            RedriveError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}
