//! Calls on the live task of a key: it runs now, or is taken from its worker.

use crate::calls::Unavailable;
use crate::name::{Key, QueueName};
use crate::time::Seq;

/// Acts on the live task of a key, and leaves everything else of the task as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByKey {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The action.
    pub act: KeyAct,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
}

/// The action on the live task of a key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum KeyAct {
    /// Make a scheduled task due at once. A task with a timeline is due at its present moment, and the later moments stay. A ready task
    /// stays as it is. A task that a worker has is refused.
    Run,
    /// Take the task from its worker. The task is ready at once, the attempt counts, and the token of the lease answers `revoked`.
    Release,
}

/// Why nothing was done to the task of a key. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ByKeyError {
    /// No live task has this key, and no task of this key was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The task is dead: it has to be redriven first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// A `Run` found the task with a worker.
    #[error("the task is leased; release it or wait for the worker")]
    Leased,
    /// A `Release` found the task with no worker.
    #[error("nobody has the task")]
    NotLeased,
    /// The live task has another version.
    #[error("the version is not the one given: the live task has version {current}")]
    VersionMismatch {
        /// The version of the live task.
        current: Seq,
    },
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
