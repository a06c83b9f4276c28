//! Calls that name a task by its id.

use std::sync::Arc;

use super::lease::Leased;
use super::redrive::RedriveError;
use super::task_view::TaskView;
use super::unavailable::Unavailable;
use crate::time::Seq;

/// Looks at a task, or does something to it, that is known by its id: in any queue, in any state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ById {
    /// The id.
    pub id: u64,
    /// The action.
    pub act: Act,
    /// Only if the name of its queue begins with this; else there is no such task.
    pub within: Option<Arc<str>>,
    /// Only in this version; else there is no such task.
    pub if_version: Option<Seq>,
    /// The name of the worker that takes it.
    pub worker: Option<Arc<str>>,
}

/// An action on a task that its id names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// Look at it.
    Get,
    /// End it, unless a worker has it.
    Cancel,
    /// Make it due at once, if it is scheduled; give it another life, if it is dead.
    Run,
    /// Take it to work on, unless a worker has it: also if it is not due or was given up, and whatever its queue holds up.
    Lease {
        /// As in [`Lease`](crate::Lease).
        lease_ms: Option<u64>,
    },
}

/// Something was done to a task that is known by its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acted {
    /// The task as it is now.
    Task(Box<TaskView>),
    /// No delivery of it starts from now on.
    Cancelled,
    /// The caller has leased the task.
    Leased(Box<Leased>),
}

/// Why nothing was done to a task that is known by its id. A refusal leaves no trace.
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
    /// The task is dead, and its key belongs to a live one by now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// That task's id.
        id: u64,
        /// That task's version.
        version: Seq,
    },
    /// The task is dead, and its queue has as many live ones as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many it may have.
        limit: u64,
    },
    /// Not the caller's mistake.
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
