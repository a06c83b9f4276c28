//! The call that makes a task, or replaces the live task of a key.

use core::time::Duration;
use std::sync::Arc;

use super::task_view::TaskView;
use super::unavailable::Unavailable;
use crate::name::{Key, QueueName};
use crate::task::{Body, Terms};
use crate::time::{Seq, Timestamp};

/// When a task is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// The given time after the call is received.
    After {
        /// The delay (ms).
        ms: u64,
    },
    /// At this instant, which is kept exactly. If it is in the past, the task is due at once.
    At(Timestamp),
}

/// The rule if the key has a live task, or has none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PutMode {
    /// Replace the live task. If there is none, make a new task.
    #[default]
    Upsert,
    /// Make a new task. If there is a live task, refuse the put.
    Create,
    /// Replace the live task. If there is none, refuse the put.
    Replace,
    /// Make a task only if the key has no live task, no dead task, and no acked task that the engine remembers. A live or dead task is
    /// returned unchanged. An acked task is answered with [`PutError::Done`]. So a caller that got no answer may put again.
    Once,
    /// Replace the live task, or make a new one, and make the task due at the latest `max_wait_ms` after the first put of the row, so that
    /// repeated puts cannot delay the task without end. A row begins with a put that finds no live task, with a put that finds a task that its
    /// owner has redriven or run before its time, or with the last put of another mode. A timeline is not limited: each of its instants is kept.
    Debounce {
        /// The longest time from the first put of the row until the task is due (ms); `None`: no limit.
        max_wait_ms: Option<u64>,
    },
}

/// The rule if a worker has the task.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum OnLease {
    /// Refuse the call. The worker keeps the task.
    #[default]
    Refuse,
    /// Take the task from the worker. Later calls with the token of the worker's lease get the answer `revoked`.
    Revoke,
}

/// Makes a task, or replaces the live task of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put {
    /// The queue. Its first use creates it.
    pub queue: QueueName,
    /// The user's name for the task; `None`: the key is the id of the task in decimal.
    pub key: Option<Key>,
    /// When the task is due. If the body has a timeline, the timeline says when, and this field is ignored.
    pub due: Due,
    /// When the caller asked for the put at the latest, see [`Now::latest`](crate::Now::latest); `None`, or later than now: now. The expiry and
    /// the longest wait of a debounce count from this instant. A delay in `due` counts from now instead, so a caller that sets this field should use [`Due::At`].
    pub asked_at: Option<Timestamp>,
    /// The payload, content type and tags that the worker gets.
    pub body: Body,
    /// The priority, group, retries and expiry of the task.
    pub terms: Terms,
    /// The length of a lease if the worker names none (ms); `None`: as the queue's settings say.
    pub ttr_ms: Option<u64>,
    /// The trace context by which a tracing system finds the put. Workers get it unchanged. A context of more than [`TRACE_BYTES_MAX`]
    /// bytes is left out.
    pub trace: Option<Arc<str>>,
    /// The rule if the key has a live task, or has none.
    pub mode: PutMode,
    /// The version that the live task must have; `None`: any version, or no live task. [`PutMode::Once`] returns a task of the key without
    /// this check.
    pub if_version: Option<Seq>,
    /// The rule if a worker has the live task.
    pub on_lease: OnLease,
    /// Whether the put may add a task if the key has no live task. A caller that may not add tasks may still replace live tasks.
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

/// The largest size of a trace context (bytes). A `traceparent` and a `tracestate` of the W3C fit into this size.
pub const TRACE_BYTES_MAX: usize = 640;

impl Due {
    /// Returns the due time this long after the call is received. The delay is rounded up to a whole millisecond, so that the task is never
    /// early.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self::After { ms: ms_up(delay) }
    }
}

impl Put {
    /// Makes a put of `key` that is due at once, has no payload, and replaces a live task of the key.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { key: Some(key), ..Self::without_key(queue) }
    }

    /// Makes a put without a key. The key becomes the id of the task in decimal.
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

    /// Makes the task due this long after the put is received.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { due: Due::after(delay), ..self }
    }

    /// Makes the task due at this instant.
    #[must_use]
    pub fn at(self, due_at: Timestamp) -> Self {
        Self { due: Due::At(due_at), ..self }
    }

    /// Gives the task these bytes as its payload, of the type `application/octet-stream`.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { body: Body::bytes(payload), ..self }
    }
}

impl Payload {
    /// Makes a payload of these bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), content_type: "application/octet-stream".into() }
    }
}

pub(super) fn ms_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The result of a put that was not refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Whether the task is new. If not, the put replaced the live task, or, with [`PutMode::Once`], found the task and did not change it.
    pub created: bool,
    /// The task after the put.
    pub task: TaskView,
}

/// Why a put failed. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutError {
    /// The mode is [`PutMode::Create`], and a live task has the key.
    #[error("a live task has this key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// The mode is [`PutMode::Replace`], and no live task has the key.
    #[error("no live task has this key")]
    NotFound,
    /// The mode is [`PutMode::Once`], and the last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task, and the put does not revoke leases.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The put may not add a task, and the key has no live task.
    #[error("no live task has this key, and none may be added")]
    WouldAdd,
    /// The put has an `if_version`, and the live task has another version or no live task has the key.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The version of the live task; `None`: no live task has the key.
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
    /// The task would be given up at or before the instant at which a worker could first get it.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When the task would be given up.
        expire_at: Timestamp,
        /// When the task would be due.
        due_at: Timestamp,
    },
    /// The queue is being drained, and the put would add a task.
    #[error("the queue is being drained: no task is added until it is resumed")]
    Draining,
    /// The queue has reached its limit of live tasks, and the put would add a task.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The version of a task, as text for an error.
pub(super) fn version_prose(current: &Option<Seq>) -> String {
    match current {
        Some(version) => format!("the live task has version {version}"),
        None => "no live task has this key".to_owned(),
    }
}
