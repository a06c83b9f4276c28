//! Cancelling a task.

use super::put::OnLease;
use super::put::version_prose;
use super::unavailable::Unavailable;
use crate::name::{Key, QueueName};
use crate::time::Seq;

/// Ends a live or dead task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The version that the task must have; `None`: any version.
    pub if_version: Option<Seq>,
    /// The rule if a worker has the task.
    pub on_lease: OnLease,
}

impl Cancel {
    /// Makes a cancel of the task of this key. If a worker has the task, the cancel is refused.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key, if_version: None, on_lease: OnLease::Refuse }
    }

    /// Makes the cancel also end a task that a worker has. The lease is revoked then.
    #[must_use]
    pub fn revoke(self) -> Self {
        Self { on_lease: OnLease::Revoke, ..self }
    }
}

/// How a cancel ended the task.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// No worker had the task. No delivery of the task starts after the cancel.
    Cancelled,
    /// A worker had the task. Later calls with the token of the worker's lease get the answer `revoked`.
    Revoked,
}

/// Why a cancel failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CancelError {
    /// No live or dead task has this key, and the engine remembers no acked task of this key.
    #[error("no task has this key")]
    NotFound,
    /// The last task of this key was acked, so the cancel came too late.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task, and the cancel does not revoke leases.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The task has another version than `if_version`.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The version of the task.
        current: Option<Seq>,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
