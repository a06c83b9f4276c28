//! Redriving a dead task.

use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::time::Seq;

/// Gives a dead task another life: it is due at once, with all its attempts before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// The queue.
    pub queue: QueueName,
    /// Its id; its key may be another's by now.
    pub id: u64,
}

/// Why a redrive was refused. It leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedriveError {
    /// No dead task of this queue has this id.
    #[error("no dead task has this id")]
    NotFound,
    /// Its key belongs to a live task by now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// That task's id.
        id: u64,
        /// That task's version.
        version: Seq,
    },
    /// The queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many it may have.
        limit: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
