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
    /// What to do if it is leased.
    pub on_lease: OnLease,
}

impl Cancel {
    /// Cancels the task of this key unless a worker has it.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key, if_version: None, on_lease: OnLease::Refuse }
    }

    /// Takes it back from the worker that may have it.
    #[must_use]
    pub fn revoke(self) -> Self {
        Self { on_lease: OnLease::Revoke, ..self }
    }
}

/// A task was cancelled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// No delivery of it starts from now on.
    Cancelled,
    /// A worker had it; its token answers `revoked` from now on.
    Revoked,
}

/// Why a cancel did not end the task. None leaves a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CancelError {
    /// No live task, and none that was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked: the cancel came too late.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task: a delivery began first.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The version is another.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The live task's version.
        current: Option<Seq>,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
