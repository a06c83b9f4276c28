//! Cancelling a task.

use super::put::OnLease;
use super::unavailable::Unavailable;
use super::version::version_prose;
use crate::name::{Key, QueueName};
use crate::time::Seq;

/// Ends a task that no worker has finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// The rule for a task that is leased.
    pub on_lease: OnLease,
}

impl Cancel {
    /// Cancels the task of this key unless a worker has it.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key, if_version: None, on_lease: OnLease::Refuse }
    }

    /// Takes the task back from the worker that may have it.
    #[must_use]
    pub fn revoke(self) -> Self {
        Self { on_lease: OnLease::Revoke, ..self }
    }
}

/// A task was cancelled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// No delivery of the task starts from now on.
    Cancelled,
    /// A worker had the task. The token of the lease answers `revoked` from now on.
    Revoked,
}

/// Why a cancel did not end the task. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CancelError {
    /// No live or dead task has this key, and no task of this key was done lately.
    #[error("no task has this key")]
    NotFound,
    /// The last task of this key was acked: the cancel came too late.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task: a delivery began first.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The task has another version.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The version of the task.
        current: Option<Seq>,
    },
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
