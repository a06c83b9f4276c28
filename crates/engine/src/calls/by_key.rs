//! Calls that make the live task of a key due now, or take the task from its worker.

use crate::calls::Unavailable;
use crate::name::{Key, QueueName};
use crate::time::Seq;

/// Makes the live task of a key due now, or takes the task from its worker. The body and the settings of the task stay as they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByKey {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The action.
    pub act: KeyAct,
    /// The version that the live task must have; `None`: any version.
    pub if_version: Option<Seq>,
}

/// The action on the live task of a key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum KeyAct {
    /// Make a scheduled task due at once. If the task has a timeline, only its present moment becomes due now, and the later moments stay.
    /// A ready task stays as it is. A run of a leased task is refused.
    Run,
    /// Take the task from its worker. The task is ready at once, or dead if it has expired. The lease counts as an attempt. Later calls
    /// with the lease's token get the answer `revoked`.
    Release,
}

/// Why a call on the task of a key failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ByKeyError {
    /// No live or dead task has this key, and the engine remembers no acked task of this key.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The action is [`KeyAct::Run`], and the task is dead. A redrive has to come first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// The action is [`KeyAct::Run`], and a worker has the task.
    #[error("the task is leased; release it or wait for the worker")]
    Leased,
    /// The action is [`KeyAct::Release`], and no worker has the task. The task may also be dead.
    #[error("nobody has the task")]
    NotLeased,
    /// The live task has another version than `if_version`.
    #[error("the version is not the one given: the live task has version {current}")]
    VersionMismatch {
        /// The version of the live task.
        current: Seq,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
