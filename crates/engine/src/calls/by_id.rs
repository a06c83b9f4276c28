//! Calls that name a task by its id.

use std::sync::Arc;

use super::lease::Leased;
use super::redrive::RedriveError;
use super::task_view::TaskView;
use super::unavailable::Unavailable;
use crate::time::Seq;

/// Looks at a task, or acts on it. The id names the task, in any queue and in any state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ById {
    /// The id.
    pub id: u64,
    /// The action.
    pub act: Act,
    /// Only if the name of the task's queue begins with this; else there is no such task.
    pub within: Option<Arc<str>>,
    /// Only if the task has this version; else there is no such task.
    pub if_version: Option<Seq>,
    /// The name of the worker that takes the task.
    pub worker: Option<Arc<str>>,
}

/// An action on a task that its id names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// Look at the task.
    Get,
    /// End the task, unless a worker has it.
    Cancel,
    /// Make a scheduled task due at once; give a dead task another life.
    Run,
    /// Take the task to work on, unless a worker has it. The task need not be due and may be dead, and no setting of its queue holds it up.
    Lease {
        /// As in [`Lease`](crate::Lease).
        lease_ms: Option<u64>,
    },
}

/// The result of a call that names a task by its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acted {
    /// The task as it is now.
    Task(Box<TaskView>),
    /// No delivery of the task starts from now on.
    Cancelled,
    /// The caller has leased the task.
    Leased(Box<Leased>),
}

/// Why a call that names a task by its id did nothing. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ByIdError {
    /// No task has this id.
    #[error("no task has this id")]
    NotFound,
    /// A worker has the task.
    #[error("the task is leased")]
    Leased,
    /// The task is ready already, so nothing has to be done.
    #[error("the task is ready")]
    Ready,
    /// The task is dead, and a live task has its key by now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// The task is dead, and its queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<RedriveError> for ByIdError {
    fn from(error: RedriveError) -> Self {
        match error {
            RedriveError::NotFound => Self::NotFound,
            RedriveError::Live { id, version } => Self::Live { id, version },
            RedriveError::BacklogFull { limit } => Self::BacklogFull { limit },
            RedriveError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}
