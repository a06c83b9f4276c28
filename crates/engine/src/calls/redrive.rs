//! The call that makes a dead task live again.

use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::time::Seq;

/// Makes a dead task live again. The task is due at once, does not expire any more, and its attempts count from 0 again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// The queue of the dead task.
    pub queue: QueueName,
    /// The id of the dead task. The key is not enough, because another task may have it now.
    pub id: u64,
}

/// Why a redrive failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedriveError {
    /// No dead task of this queue has this id.
    #[error("no dead task has this id")]
    NotFound,
    /// A live task has the key of the dead task now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// The queue is being drained.
    #[error("the queue is being drained: no dead task becomes live until it is resumed")]
    Draining,
    /// The queue has reached its limit of live tasks.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
