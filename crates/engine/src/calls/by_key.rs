//! Something is done to the live task of a key: it runs now, or is taken from its worker.

use crate::calls::Unavailable;
use crate::name::{Key, QueueName};
use crate::time::Seq;

/// Does something to the live task of a key, and leaves all else of it as it is.
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

/// What to do to the live task of a key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum KeyAct {
    /// Make it due at once, if it is scheduled. A task with a timeline is due at its present moment, and the later ones stay. One that is ready stays as
    /// it is; one that a worker has is refused.
    Run,
    /// Take it from its worker: it is ready at once, the attempt counts, and the token of the lease answers `revoked`.
    Release,
}

/// Why nothing was done to the task of a key. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ByKeyError {
    /// No live task, and none that was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The task was given up: it has to be redriven first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// It was to run, and a worker has it.
    #[error("the task is leased; release it or wait for the worker")]
    Leased,
    /// It was to be taken from its worker, and nobody has it.
    #[error("nobody has the task")]
    NotLeased,
    /// The version is another.
    #[error("the version is not the one given: the live task has version {current}")]
    VersionMismatch {
        /// The live task's version.
        current: Seq,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
