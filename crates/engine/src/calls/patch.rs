//! The call that changes the due time, the body or the settings of a task.

use core::time::Duration;

use super::put::version_prose;
use super::put::{Due, OnLease, Payload};
use super::unavailable::Unavailable;
use crate::name::{Group, Key, QueueName, Tag};
use crate::task::{Moment, Retry};
use crate::time::{Seq, Timestamp};

/// Changes a live task. A field that is `None` leaves that part of the task as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The new due time.
    pub due: Option<Due>,
    /// The new payload.
    pub payload: Option<Payload>,
    /// The new timeline, at least one moment. It replaces the old timeline, or the due time of a task without a timeline. The task begins
    /// at the first moment.
    pub timeline: Option<Vec<Moment>>,
    /// The new tags. They replace all tags of the task.
    pub tags: Option<Vec<Tag>>,
    /// The new priority.
    pub priority: Option<u32>,
    /// The new group; `Some(None)`: no group.
    pub group: Option<Option<Group>>,
    /// The new retry policy; `Some(None)`: the policy of the queue.
    pub retry: Option<Option<Retry>>,
    /// The time from the patch until the task is given up (ms); `Some(None)`: the task never expires.
    pub expire_after_ms: Option<Option<u64>>,
    /// The version that the live task must have; `None`: any version.
    pub if_version: Option<Seq>,
    /// The rule if a worker has the task.
    pub on_lease: OnLease,
}

impl Patch {
    /// Makes a patch without a change.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self {
            queue: queue.clone(),
            key,
            due: None,
            payload: None,
            timeline: None,
            tags: None,
            priority: None,
            group: None,
            retry: None,
            expire_after_ms: None,
            if_version: None,
            on_lease: OnLease::Refuse,
        }
    }

    /// Makes the task due this long after the patch is received, rounded up to a whole millisecond.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { due: Some(Due::after(delay)), ..self }
    }

    /// Makes the task due at this instant.
    #[must_use]
    pub fn at(self, due_at: Timestamp) -> Self {
        Self { due: Some(Due::At(due_at)), ..self }
    }

    /// Gives the task these bytes as its payload, of the type `application/octet-stream`.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Some(Payload::bytes(payload)), ..self }
    }
}

/// Why a patch failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatchError {
    /// No live or dead task has this key, and the engine remembers no acked task of this key.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The task is dead. A redrive has to come first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// A worker has the task, and the patch does not revoke leases.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The live task has another version than `if_version`.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The version of the live task.
        current: Option<Seq>,
    },
    /// The task, or the last instant of its timeline, would be due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest due time allowed (ms from now).
        limit_ms: u64,
    },
    /// The instants of the timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// The index of the first instant that does not rise, from 0.
        index: usize,
    },
    /// The task has a timeline, and the patch names a due time or a payload, but no new timeline. A timeline can only be replaced as a
    /// whole.
    #[error("the task has a timeline: it is replaced as a whole")]
    Timeline,
    /// The task would be given up at or before the instant at which a worker could first get it.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When the task would be given up.
        expire_at: Timestamp,
        /// When the task would be due.
        due_at: Timestamp,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
