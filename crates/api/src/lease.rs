//! The body that asks for tasks to work on.

use crate::bad_request::BadRequest;
use crate::json::{self, Members, Shape};
use crate::value;
use serde::Serialize;

/// The shortest lease: 1 s. A shorter one would end before its answer has reached a worker over a slow line.
pub const LEASE_MS_MIN: u64 = 1_000;
/// The longest lease: 12 h. A worker that needs longer extends it, so that a dead one is noticed the same
/// day.
pub const LEASE_MS_MAX: u64 = 12 * 3_600_000;
/// 1,000 tasks in one answer: beyond that a round trip costs nothing beside the work.
pub const LEASE_TASKS_MAX: u64 = 1_000;
/// The longest wait for a task: 60 s, below the idle limit of most proxies.
pub const WAIT_MS_MAX: u64 = 60_000;

pub(crate) const SHAPE: Shape = Shape {
    known: &["max", "lease", "wait"],
    later: &["group", "tags"],
    elsewhere: &[("queue", "it stands in the path: POST /v1/queues/{q}/lease")],
};

/// The body of `POST /v1/queues/{q}/lease`: `{"max": 10, "lease": "30s", "wait": "20s"}`, every member
/// optional.
///
/// An empty body asks for one task, without waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaseBody {
    /// At most so many tasks: 1 to 1,000, by default 1.
    pub max: usize,
    /// How long the lease holds, in ms: 1 s to 12 h, by default as the queue's settings say, else 30 s.
    #[serde(rename = "lease", skip_serializing_if = "Option::is_none", with = "crate::duration::option")]
    pub lease_ms: Option<u64>,
    /// How long the call waits for the first task, in ms of real time: 0 to 60 s, by default 0.
    #[serde(rename = "wait", with = "crate::duration::text")]
    pub wait_ms: u64,
}

impl Default for LeaseBody {
    fn default() -> Self {
        Self { max: 1, lease_ms: None, wait_ms: 0 }
    }
}

impl LeaseBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; unknown or repeated members; values of the wrong kind or outside their
    /// limits.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &SHAPE)?;
        let mut body = Self::default();
        if let Some(raw) = members.get("max") {
            let max = value::integer("max", raw, 1..=LEASE_TASKS_MAX)?;
            body.max = usize::try_from(max).expect("1,000 fits");
        }
        if let Some(raw) = members.get("lease") {
            body.lease_ms = Some(value::duration_ms_within("lease", raw, LEASE_MS_MIN..=LEASE_MS_MAX)?);
        }
        if let Some(raw) = members.get("wait") {
            body.wait_ms = value::duration_ms_within("wait", raw, 0..=WAIT_MS_MAX)?;
        }
        Ok(body)
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}
