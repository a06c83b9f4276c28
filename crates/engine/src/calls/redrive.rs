//! Redriving a dead task.

use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::time::Seq;

/// Gives a dead task another life. The task is due at once, and its attempts count from 0 again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// The queue.
    pub queue: QueueName,
    /// The id of the dead task. Another task may have its key by now.
    pub id: u64,
}

/// Why a redrive was refused. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedriveError {
    /// No dead task of this queue has this id.
    #[error("no dead task has this id")]
    NotFound,
    /// A live task has the key of the dead one by now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// The queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
