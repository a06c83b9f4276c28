//! Lines of `tickwheel replay`: timestamped operations in, deliveries out, as NDJSON.

use crate::bad_request::BadRequest;
use crate::due::Due;
use crate::json::{self, Members, Shape};
use crate::payload::PayloadBody;
use crate::put::LATER;
use crate::{time, value};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

const SHAPE: Shape = Shape {
    known: &["at", "op", "queue", "key", "delay", "due_at", "payload", "payload_base64", "content_type"],
    later: &LATER,
    elsewhere: &[
        ("at_ms", "write `at`, in RFC 3339"),
        ("mode", "a put in a replay always replaces"),
        ("revoke", "nothing is leased in a replay"),
    ],
};

/// Members that a cancel has.
const OF_CANCEL: [&str; 4] = ["at", "op", "queue", "key"];

/// One operation: `{"at": "2017-10-02T10:56:33Z", "op": "put", "queue": "close", "key": "order:1", "delay":
/// "30m", "payload": {}}`.
///
/// Here `at` is when the operation happens; when the task is due is said by `delay` (from `at` on) or
/// `due_at`. A put with neither is due at `at`. Instead of `payload` there may be `payload_base64` with
/// `content_type`, as in a [`PutBody`](crate::PutBody). A cancel has neither of them and no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayLine {
    /// When the operation happens, in ms since 1970. Lines must be in this order, which is the caller's to
    /// check.
    pub at_ms: i64,
    /// The queue.
    pub queue: String,
    /// The task's key.
    pub key: String,
    /// What happens.
    pub op: ReplayOp,
}

/// The operation of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOp {
    /// Schedule a task, or replace the live one of that key.
    Put {
        /// When, counted from the line's `at`.
        due: Due,
        /// What is delivered.
        payload: PayloadBody,
    },
    /// Cancel the task of that key.
    Cancel,
}

impl ReplayLine {
    /// Reads one line, without its line end. Blank lines are the caller's to skip, and the refusal does not
    /// know the line's number.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object or nests deeper than 64 levels; members that are unknown, given twice,
    /// missing or of the wrong kind; both `delay` and `due_at`; a cancel with either, or with a payload.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &SHAPE)?;
        let at = members.required("at", r#""at": "2017-10-02T10:56:33Z""#)?;
        let is_put = value::word(
            "op",
            members.required("op", r#""op": "put""#)?,
            &[("put", true), ("cancel", false)],
        )?;
        Ok(Self {
            at_ms: value::instant_ms("at", at)?,
            queue: value::text("queue", members.required("queue", r#""queue": "close""#)?, "close")?,
            key: value::text("key", members.required("key", r#""key": "order:1""#)?, "order:1")?,
            op: if is_put { put(&members)? } else { cancel(&members)? },
        })
    }

    /// The line as [`parse`](Self::parse) reads it, without a line end.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

fn put(members: &Members<'_>) -> Result<ReplayOp, BadRequest> {
    let due = match (members.get("delay"), members.get("due_at")) {
        (Some(_), Some(_)) => {
            return Err(BadRequest::member(
                "due_at",
                "`delay` and `due_at` both say when the task is due",
                "keep one of them",
            ));
        }
        (Some(delay), None) => Due::After(value::duration_ms("delay", delay)?),
        (None, Some(due_at)) => Due::At(value::instant_ms("due_at", due_at)?),
        (None, None) => Due::Now,
    };
    Ok(ReplayOp::Put { due, payload: PayloadBody::of(members)?.unwrap_or_default() })
}

fn cancel(members: &Members<'_>) -> Result<ReplayOp, BadRequest> {
    match members.names().find(|name| !OF_CANCEL.contains(name)) {
        None => Ok(ReplayOp::Cancel),
        Some(name) => Err(BadRequest::member(name, "means nothing to a cancel", "leave it out")),
    }
}

impl Serialize for ReplayLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &time::format(self.at_ms))?;
        map.serialize_entry("op", if self.op == ReplayOp::Cancel { "cancel" } else { "put" })?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("key", &self.key)?;
        if let ReplayOp::Put { due, payload } = &self.op {
            match due {
                Due::Now => {}
                Due::After(_) | Due::Level(_) => due.write(&mut map)?,
                Due::At(ms) => map.serialize_entry("due_at", &time::format(*ms))?,
            }
            payload.write_on_one_line(&mut map)?;
        }
        map.end()
    }
}

/// One delivery: `{"queue", "key", "due_at", "fired_at", "payload"}`, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayDelivery {
    /// The queue.
    pub queue: String,
    /// The task's key.
    pub key: String,
    /// When it was due, in ms since 1970.
    pub due_at_ms: i64,
    /// When it fired on the virtual clock, in ms since 1970.
    pub fired_at_ms: i64,
    /// What was put.
    pub payload: PayloadBody,
}

impl ReplayDelivery {
    /// The line, with its line end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = json::write(self);
        line.push(b'\n');
        line
    }
}

impl Serialize for ReplayDelivery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("due_at", &time::format(self.due_at_ms))?;
        map.serialize_entry("fired_at", &time::format(self.fired_at_ms))?;
        self.payload.write_on_one_line(&mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ReplayDelivery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            queue: String,
            key: String,
            #[serde(with = "time::rfc3339")]
            due_at: i64,
            #[serde(with = "time::rfc3339")]
            fired_at: i64,
            payload: Option<Box<RawValue>>,
            payload_base64: Option<String>,
            content_type: Option<String>,
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
            due_at_ms: wire.due_at,
            fired_at_ms: wire.fired_at,
            payload,
        })
    }
}
