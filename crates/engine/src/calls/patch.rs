//! Rescheduling a task or changing its body.

use core::time::Duration;

use super::put::{Due, OnLease, Payload};
use super::unavailable::Unavailable;
use super::version::version_prose;
use crate::name::{Group, Key, QueueName, Tag};
use crate::task::{Moment, Retry};
use crate::time::{Seq, Timestamp};

/// Changes a live task and keeps what is not named.
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
    /// Another timeline in place of the one it has, or of its instant: at least one moment.
    pub timeline: Option<Vec<Moment>>,
    /// Other tags, all of them.
    pub tags: Option<Vec<Tag>>,
    /// Another priority.
    pub priority: Option<u32>,
    /// Another group, or none.
    pub group: Option<Option<Group>>,
    /// Another retry policy, or none.
    pub retry: Option<Option<Retry>>,
    /// Given up so many milliseconds after the patch, or never.
    pub expire_after_ms: Option<Option<u64>>,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// What to do if it is leased.
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

    /// Due so long after the patch is received.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { due: Some(Due::after(delay)), ..self }
    }

    /// Due at this instant.
    #[must_use]
    pub fn at(self, due_at: Timestamp) -> Self {
        Self { due: Some(Due::At(due_at)), ..self }
    }

    /// With these bytes from now on, of the type `application/octet-stream`.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Some(Payload::bytes(payload)), ..self }
    }
}

/// Why a patch was refused. None leaves a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatchError {
    /// No live task, and none that was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The task was given up: it has to be redriven first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// A worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The version is another.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The live task's version.
        current: Option<Seq>,
    },
    /// Due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest allowed, milliseconds from now.
        limit_ms: u64,
    },
    /// The instants of a timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// Which one, from 0.
        index: usize,
    },
    /// It has a timeline, which is replaced as a whole.
    #[error("the task has a timeline: it is replaced as a whole")]
    Timeline,
    /// Given up before it is due.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When it would be given up.
        expire_at: Timestamp,
        /// When it would be due.
        due_at: Timestamp,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
