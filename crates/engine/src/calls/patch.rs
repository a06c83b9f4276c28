//! Rescheduling a task or changing its body.

use core::time::Duration;

use super::put::{Due, OnLease, Payload};
use super::unavailable::Unavailable;
use super::version::version_prose;
use crate::name::{Group, Key, QueueName, Tag};
use crate::task::{Moment, Retry};
use crate::time::{Seq, Timestamp};

/// Changes a live task. Everything that the patch does not name stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// A new instant.
    pub due: Option<Due>,
    /// A new payload.
    pub payload: Option<Payload>,
    /// A new timeline in place of the old one, or in place of the task's instant: at least one moment.
    pub timeline: Option<Vec<Moment>>,
    /// New tags. They replace all tags of the task.
    pub tags: Option<Vec<Tag>>,
    /// Another priority.
    pub priority: Option<u32>,
    /// Another group, or none.
    pub group: Option<Option<Group>>,
    /// Another retry policy, or none.
    pub retry: Option<Option<Retry>>,
    /// The time from the patch until the task is given up (ms), or never.
    pub expire_after_ms: Option<Option<u64>>,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// The rule for a task that is leased.
    pub on_lease: OnLease,
}

impl Patch {
    /// A patch that changes nothing yet.
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

    /// Makes the task due this long after the patch is received.
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

/// Why a patch was refused. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatchError {
    /// No live task has this key, and no task of this key was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The task is dead: it has to be redriven first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// A worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The live task has another version.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The version of the live task.
        current: Option<Seq>,
    },
    /// The task would be due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest due time allowed (ms from now).
        limit_ms: u64,
    },
    /// The instants of a timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// The instant that does not rise, counted from 0.
        index: usize,
    },
    /// The task has a timeline, which can be replaced only as a whole: the patch may not name an instant or a payload alone.
    #[error("the task has a timeline: it is replaced as a whole")]
    Timeline,
    /// The task would be given up before it is due.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When the task would be given up.
        expire_at: Timestamp,
        /// When the task would be due.
        due_at: Timestamp,
    },
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
