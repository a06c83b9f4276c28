//! Lines of `tickwheel replay` as NDJSON: the input has operations with their times, and the output has deliveries.

use crate::declare::{
    Mapped, RawMembers, body, duration, has, instant, key, may, named, one_of, or_made, role, text,
};
use crate::text::bad_request::BadRequest;
use crate::values::due::Due;
use crate::values::payload::{PayloadBody, kept_payload, payload};

body! {
    /// One operation of a replay.
    pub(crate) struct LineMembers: line_members {
        /// The instant of the operation.
        at: i64 = has(instant());
        /// The operation.
        op: Op = has(one_of(OPS));
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The task's key.
        key: String = has(key("order:1"));
        /// The delay of the task, counted from `at`.
        delay: Option<u64> = may(duration());
        /// The due time of the task.
        due_at: Option<i64> = may(instant());
        /// The payload of the task.
        payload: Option<PayloadBody> = may(payload());
    }
    elsewhere: &[
        ("at_ms", "write `at`, in RFC 3339"),
        ("mode", "a put in a replay always replaces"),
        ("revoke", "nothing is leased in a replay"),
    ];
}

/// The operation of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Put,
    Cancel,
}

const OPS: &[(&str, Op)] = &[("put", Op::Put), ("cancel", Op::Cancel)];

/// The members of a cancel.
const OF_CANCEL: [&str; 4] = ["at", "op", "queue", "key"];

/// One operation: `{"at": "2017-10-02T10:56:33Z", "op": "put", "queue": "close", "key": "order:1", "delay":
/// "30m", "payload": {}}`.
///
/// `at` is the instant of the operation. `delay` (counted from `at`) or `due_at` is the due time of the task; a put
/// with neither is due at `at`. Instead of `payload` there may be `payload_base64` with `content_type`, as in a
/// [`PutBody`](crate::PutBody). A cancel has no due time and no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayLine {
    /// The instant of the operation (ms since 1970). The lines must be in this order; the caller checks it.
    pub at_ms: i64,
    /// The queue.
    pub queue: String,
    /// The task's key.
    pub key: String,
    /// The operation.
    pub op: ReplayOp,
}

/// The operation of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOp {
    /// Put a task, or replace the live task of that key.
    Put {
        /// The due time. A delay counts from the line's `at`.
        due: Due,
        /// The payload of the task.
        payload: PayloadBody,
    },
    /// Cancel the task of that key.
    Cancel,
}

impl Mapped for ReplayLine {
    type Members = LineMembers;

    fn from_members(
        members: LineMembers,
        _: Option<Self>,
        raw: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let LineMembers { at: at_ms, op, queue, key, delay, due_at, payload } = members;
        if op == Op::Cancel {
            let other = named::<LineMembers>(raw).into_iter().find(|name| !OF_CANCEL.contains(name));
            return other.map_or(Ok(Self { at_ms, queue, key, op: ReplayOp::Cancel }), |name| {
                Err(BadRequest::member(name, "means nothing to a cancel", "leave it out"))
            });
        }
        if delay.is_some() && due_at.is_some() {
            let what = "`delay` and `due_at` both say when the task is due";
            return Err(BadRequest::member("due_at", what, "keep one of them"));
        }
        let due = delay.map(Due::After).or(due_at.map(Due::At)).unwrap_or_default();
        let op = ReplayOp::Put { due, payload: payload.unwrap_or_default() };
        Ok(Self { at_ms, queue, key, op })
    }

    fn to_members(&self) -> LineMembers {
        let Self { at_ms: at, queue, key, op } = self.clone();
        let (op, due, payload) = match op {
            ReplayOp::Put { due, payload } => (Op::Put, due, Some(payload)),
            ReplayOp::Cancel => (Op::Cancel, Due::Now, None),
        };
        let (delay, due_at) = match due {
            Due::After(ms) => (Some(ms), None),
            Due::At(ms) => (None, Some(ms)),
            // A line of a replay has no delay levels.
            Due::Now | Due::Level(_) => (None, None),
        };
        LineMembers { at, op, queue, key, delay, due_at, payload }
    }
}

role!(functions line ReplayLine);

body! {
    /// One delivery of a replay.
    pub struct ReplayDelivery: row {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The task's key.
        key: String = has(key("order:1"));
        /// When the task was due (ms since 1970).
        due_at_ms as "due_at": i64 = has(instant());
        /// When the task was delivered, by the virtual clock (ms since 1970).
        fired_at_ms as "fired_at": i64 = has(instant());
        /// The payload of the task.
        payload: PayloadBody = or_made(PayloadBody::default, kept_payload());
    }
}
