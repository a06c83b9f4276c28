//! Putting a task, and the terms of its life.

use core::time::Duration;
use std::sync::Arc;

use super::task_view::TaskView;
use super::unavailable::Unavailable;
use super::version::version_prose;
use crate::name::{Key, QueueName};
use crate::task::{Body, Terms};
use crate::time::{Seq, Timestamp};

/// When a task is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// The given time after the put is received.
    After {
        /// The delay, milliseconds.
        ms: u64,
    },
    /// At this instant, kept exactly. In the past: at once.
    At(Timestamp),
}

/// The rule for a live task of the same key.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PutMode {
    /// Replace it, or make a new one.
    #[default]
    Upsert,
    /// Refuse: there must be none.
    Create,
    /// There must be one.
    Replace,
    /// Make one unless this put, or another under this key, has made one before: the live or the dead task of the key is shown as it stands, and
    /// one that is done is not made again for as long as that is remembered. So a caller who got no answer may ask again.
    Once,
    /// Replace it, or make a new one; but it is due at the latest this long after the first put of the row. So a caller that puts again and
    /// again cannot put it off for ever. A row begins with a put that finds no live task, or with the last put of another mode.
    Debounce {
        /// The longest wait, milliseconds; `None`: for ever.
        max_wait_ms: Option<u64>,
    },
}

/// The rule for a task that a worker has.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum OnLease {
    /// Leave it there and say so.
    #[default]
    Refuse,
    /// Take it back: the token of that lease answers `revoked` from then on.
    Revoke,
}

/// Schedules a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put {
    /// The queue. It appears on first use.
    pub queue: QueueName,
    /// The user's name for the task; `None`: the server's id in decimal.
    pub key: Option<Key>,
    /// When; of a body with a timeline the timeline says it.
    pub due: Due,
    /// When it was asked for, by the believed wall clock; `None`: when its turn comes. What is counted from the put is counted from here, but for a delay:
    /// who says a moment here says an instant in `due`.
    pub asked_at: Option<Timestamp>,
    /// The payload, content type and tags that the worker gets.
    pub body: Body,
    /// Priority, group, retries and expiry.
    pub terms: Terms,
    /// The lease duration if the worker names none (ms); `None`: as the queue's settings say.
    pub ttr_ms: Option<u64>,
    /// The trace context by which a tracing system finds the put. It is kept as it is and given to the worker. A context of more than
    /// [`TRACE_BYTES_MAX`] is left out.
    pub trace: Option<Arc<str>>,
    /// The rule for a live task of that key.
    pub mode: PutMode,
    /// Only if the live task has this version.
    pub if_version: Option<Seq>,
    /// The rule if that task is leased.
    pub on_lease: OnLease,
    /// Whether the put may make a task where there is none. A caller that may not add tasks may still change those that are there.
    pub may_add: bool,
}

/// The bytes that a worker gets, and their type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The content type of the bytes.
    pub content_type: Arc<str>,
}

/// The largest size of a trace context (bytes): a `traceparent` and a `tracestate` of the W3C.
pub const TRACE_BYTES_MAX: usize = 640;

impl Due {
    /// Due this long after the put, rounded up to the millisecond: never early.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self::After { ms: ms_up(delay) }
    }
}

impl Put {
    /// A put of `key`, due at once, without payload, replacing a live task of that key.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { key: Some(key), ..Self::without_key(queue) }
    }

    /// A put whose key the server makes: the id in decimal.
    #[must_use]
    pub fn without_key(queue: &QueueName) -> Self {
        Self {
            queue: queue.clone(),
            key: None,
            due: Due::Now,
            body: Body::default(),
            terms: Terms::default(),
            ttr_ms: None,
            trace: None,
            mode: PutMode::Upsert,
            if_version: None,
            on_lease: OnLease::Refuse,
            may_add: true,
            asked_at: None,
        }
    }

    /// Due this long after the put is received.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { due: Due::after(delay), ..self }
    }

    /// Due at this instant.
    #[must_use]
    pub fn at(self, due_at: Timestamp) -> Self {
        Self { due: Due::At(due_at), ..self }
    }

    /// With these bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { body: Body::bytes(payload), ..self }
    }
}

impl Payload {
    /// Plain bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), content_type: "application/octet-stream".into() }
    }
}

pub(super) fn ms_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A put was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Whether the task is new; else it replaced the live one of that key.
    pub created: bool,
    /// The task.
    pub task: TaskView,
}

/// Why a put was refused. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutError {
    /// `Create`, and the key is live.
    #[error("a live task has this key (id {id}, version {version})")]
    Live {
        /// The live task's id.
        id: u64,
        /// The live task's version.
        version: Seq,
    },
    /// `Replace`, and no live task has the key.
    #[error("no live task has this key")]
    NotFound,
    /// `Once`, and the last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The put may not add a task, and there is none to change.
    #[error("no live task has this key, and none may be added")]
    WouldAdd,
    /// The version is another, or there is none.
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
    /// Given up before it is due.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When it would be given up.
        expire_at: Timestamp,
        /// When it would be due.
        due_at: Timestamp,
    },
    /// The queue is being drained: no task is added.
    #[error("the queue is being drained: no task is added until it is resumed")]
    Draining,
    /// The queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many it may have.
        limit: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
