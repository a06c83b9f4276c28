//! Tasks in answers.

use crate::payload::PayloadBody;
use crate::retry::RetryBody;
use crate::terms::PRIORITY_DEFAULT;
use crate::time;
use crate::timeline::MomentBody;
use crate::trace::TraceContext;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Where a live task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// Not due yet. Time makes it ready; its owner may cancel it.
    Scheduled,
    /// Due, and in nobody's hands. A worker leases it; its owner may cancel it.
    Ready,
    /// In a worker's hands. The worker acks, nacks or loses it; its owner may revoke it.
    Leased,
    /// Given up. Its owner may redrive or cancel it; time forgets it.
    Dead,
}

impl TaskState {
    /// Every state, in the order of a task's life.
    pub const ALL: [Self; 4] = [Self::Scheduled, Self::Ready, Self::Leased, Self::Dead];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Leased => "leased",
            Self::Dead => "dead",
        }
    }
}

/// A task as its owner sees it: the answer to GET, and a line of a list.
///
/// As JSON: `queue key id version state due_at payload tags priority group attempt retry expire_at failures dead_at reason timeline traceparent tracestate`, in this order,
/// those of them only that there are, but for the first eight and `attempt`; `payload_base64` and `content_type` in the place of `payload` if that is not JSON. Reading it back needs `serde_json`, which
/// keeps the payload's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskBody {
    /// The queue.
    pub queue: String,
    /// The user's name for the task.
    pub key: String,
    /// The server's number for it.
    pub id: u64,
    /// Grows with every change by the owner; the ETag.
    pub version: u64,
    /// Where it stands.
    pub state: TaskState,
    /// When it is or was due, in ms since 1970.
    pub due_at_ms: i64,
    /// What the worker gets.
    pub payload: PayloadBody,
    /// Words to find the task by.
    pub tags: Vec<String>,
    /// Smaller goes first.
    pub priority: u32,
    /// The group it is in.
    pub group: Option<String>,
    /// Leases begun so far; 0 if it was never leased.
    pub attempt: u32,
    /// How often and how soon it is tried again.
    pub retry: Option<RetryBody>,
    /// When it is given up unless a worker has it then or has finished it, in ms since 1970.
    pub expire_at_ms: Option<i64>,
    /// The attempts that failed last, at most ten, the oldest first.
    pub failures: Vec<FailureBody>,
    /// When and why it was given up, in ms since 1970.
    pub dead: Option<(i64, DeathReason)>,
    /// The instants of its timeline that come after the present one.
    pub timeline: Vec<MomentBody>,
    /// What its put was traced by.
    pub trace: Option<TraceContext>,
}

/// An attempt that failed: `{"at", "attempt", "how", "reason"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureBody {
    /// When it ended, in ms since 1970.
    #[serde(rename = "at", with = "time::rfc3339")]
    pub at_ms: i64,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How it ended.
    pub how: FailureKind,
    /// What its worker said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Its worker gave it back.
    Nacked,
    /// Its lease ran out.
    LeaseEnded,
    /// Its owner took it back.
    Revoked,
    /// Its worker gave the task up.
    Buried,
    /// Its worker went away: its connection closed.
    WorkerGone,
}

/// Why a task was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeathReason {
    /// It had failed as often as its retry policy allows.
    MaxAttempts,
    /// Nobody had finished it by its `expire_at`.
    Expired,
    /// A worker gave it up. It is not forgotten.
    Buried,
}

/// The answer to PUT, POST and PATCH: the task without its payload, which the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAnswer {
    /// The queue.
    pub queue: String,
    /// The user's name for the task, or the server's if the request gave none.
    pub key: String,
    /// The server's number for it.
    pub id: u64,
    /// Its version after the change; the ETag.
    pub version: u64,
    /// Where it stands now.
    pub state: TaskState,
    /// When it is due, in ms since 1970.
    #[serde(rename = "due_at", with = "time::rfc3339")]
    pub due_at_ms: i64,
    /// Words to find the task by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Smaller goes first.
    pub priority: u32,
    /// The group it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Leases begun so far; 0 if it was never leased.
    pub attempt: u32,
}

/// A task in a worker's hands: `key id payload tags priority group due_at attempt token lease_until traceparent tracestate`, `group` and the last two only if there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedTask {
    /// The user's name for the task.
    pub key: String,
    /// The server's number for it.
    pub id: u64,
    /// What to work on.
    pub payload: PayloadBody,
    /// The words its owner gave it.
    pub tags: Vec<String>,
    /// Smaller goes first.
    pub priority: u32,
    /// The group it is in.
    pub group: Option<String>,
    /// When it was due, in ms since 1970.
    pub due_at_ms: i64,
    /// 1 at the first lease.
    pub attempt: u32,
    /// Proves the lease to ack, nack and extend.
    pub token: String,
    /// When the lease ends, in ms since 1970.
    pub lease_until_ms: i64,
    /// What its put was traced by.
    pub trace: Option<TraceContext>,
}

/// The answer to a lease: `{"tasks": [...]}`, empty if nothing was ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeasedTasks {
    /// The tasks, in the order in which they became this worker's.
    pub tasks: Vec<LeasedTask>,
}

/// One page of a list: `{"tasks": [...], "next_cursor": "..."}`. A page may be empty and still have a next
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksPage {
    /// The tasks, in the order of `due_at`.
    pub tasks: Vec<TaskBody>,
    /// What to send as `cursor` for the next page; `null` on the last.
    pub next_cursor: Option<String>,
}

/// The members of [`Terms`](crate::Terms), as answers show them.
fn write_terms<M: SerializeMap>(
    tags: &[String],
    priority: u32,
    group: Option<&str>,
    map: &mut M,
) -> Result<(), M::Error> {
    map.serialize_entry("tags", tags)?;
    map.serialize_entry("priority", &priority)?;
    match group {
        Some(group) => map.serialize_entry("group", group),
        None => Ok(()),
    }
}

fn write_trace<M: SerializeMap>(trace: Option<&TraceContext>, map: &mut M) -> Result<(), M::Error> {
    let Some(TraceContext { traceparent, tracestate }) = trace else { return Ok(()) };
    map.serialize_entry("traceparent", traceparent)?;
    tracestate.iter().try_for_each(|state| map.serialize_entry("tracestate", state))
}

/// For answers of servers that did not say it yet.
fn priority_default() -> u32 {
    PRIORITY_DEFAULT
}

impl Serialize for TaskBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("state", &self.state)?;
        map.serialize_entry("due_at", &time::format(self.due_at_ms))?;
        self.payload.write(&mut map)?;
        write_terms(&self.tags, self.priority, self.group.as_deref(), &mut map)?;
        map.serialize_entry("attempt", &self.attempt)?;
        if let Some(retry) = &self.retry {
            map.serialize_entry("retry", retry)?;
        }
        if let Some(at_ms) = self.expire_at_ms {
            map.serialize_entry("expire_at", &time::format(at_ms))?;
        }
        if !self.failures.is_empty() {
            map.serialize_entry("failures", &self.failures)?;
        }
        if let Some((at_ms, reason)) = &self.dead {
            map.serialize_entry("dead_at", &time::format(*at_ms))?;
            map.serialize_entry("reason", reason)?;
        }
        if !self.timeline.is_empty() {
            map.serialize_entry("timeline", &self.timeline)?;
        }
        write_trace(self.trace.as_ref(), &mut map)?;
        map.end()
    }
}

impl Serialize for LeasedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("id", &self.id)?;
        self.payload.write(&mut map)?;
        write_terms(&self.tags, self.priority, self.group.as_deref(), &mut map)?;
        map.serialize_entry("due_at", &time::format(self.due_at_ms))?;
        map.serialize_entry("attempt", &self.attempt)?;
        map.serialize_entry("token", &self.token)?;
        map.serialize_entry("lease_until", &time::format(self.lease_until_ms))?;
        write_trace(self.trace.as_ref(), &mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for TaskBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            queue: String,
            key: String,
            id: u64,
            version: u64,
            state: TaskState,
            #[serde(with = "time::rfc3339")]
            due_at: i64,
            payload: Option<Box<RawValue>>,
            payload_base64: Option<String>,
            content_type: Option<String>,
            #[serde(default)]
            tags: Vec<String>,
            priority: u32,
            group: Option<String>,
            attempt: u32,
            retry: Option<RetryBody>,
            #[serde(default, with = "time::rfc3339_option")]
            expire_at: Option<i64>,
            #[serde(default)]
            failures: Vec<FailureBody>,
            #[serde(default, with = "time::rfc3339_option")]
            dead_at: Option<i64>,
            reason: Option<DeathReason>,
            #[serde(default)]
            timeline: Vec<MomentBody>,
            traceparent: Option<String>,
            tracestate: Option<String>,
        }
        let wire = Wire::deserialize(deserializer)?;
        let payload = PayloadBody::of_answer(
            wire.payload.as_deref(),
            wire.payload_base64.as_deref(),
            wire.content_type,
        )
        .map_err(D::Error::custom)?;
        Ok(Self {
            queue: wire.queue,
            key: wire.key,
            id: wire.id,
            version: wire.version,
            state: wire.state,
            due_at_ms: wire.due_at,
            payload,
            tags: wire.tags,
            priority: wire.priority,
            group: wire.group,
            attempt: wire.attempt,
            retry: wire.retry,
            expire_at_ms: wire.expire_at,
            failures: wire.failures,
            dead: wire.dead_at.zip(wire.reason),
            timeline: wire.timeline,
            trace: wire
                .traceparent
                .map(|traceparent| TraceContext { traceparent, tracestate: wire.tracestate }),
        })
    }
}

impl<'de> Deserialize<'de> for LeasedTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            key: String,
            id: u64,
            payload: Option<Box<RawValue>>,
            payload_base64: Option<String>,
            content_type: Option<String>,
            #[serde(default)]
            tags: Vec<String>,
            #[serde(default = "priority_default")]
            priority: u32,
            group: Option<String>,
            #[serde(with = "time::rfc3339")]
            due_at: i64,
            attempt: u32,
            token: String,
            #[serde(with = "time::rfc3339")]
            lease_until: i64,
            traceparent: Option<String>,
            tracestate: Option<String>,
        }
        let wire = Wire::deserialize(deserializer)?;
        let payload = PayloadBody::of_answer(
            wire.payload.as_deref(),
            wire.payload_base64.as_deref(),
            wire.content_type,
        )
        .map_err(D::Error::custom)?;
        Ok(Self {
            key: wire.key,
            id: wire.id,
            payload,
            tags: wire.tags,
            priority: wire.priority,
            group: wire.group,
            due_at_ms: wire.due_at,
            attempt: wire.attempt,
            token: wire.token,
            lease_until_ms: wire.lease_until,
            trace: wire
                .traceparent
                .map(|traceparent| TraceContext { traceparent, tracestate: wire.tracestate }),
        })
    }
}
