//! The bodies that make and change a task.

use crate::bad_request::BadRequest;
use crate::due::Due;
use crate::json::{self, Members, Shape};
use crate::payload::PayloadBody;
use crate::query::PutMode;
use crate::terms::{Terms, TermsPatch};
use crate::timeline::{self, MomentBody, timeline};
use crate::{duration, value};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Members of a task that the documents promise and this version does not have yet.
pub(crate) const LATER: [&str; 0] = [];

/// Where members stand that people look for in the body.
pub(crate) const ELSEWHERE: [(&str, &str); 6] = [
    ("mode", "it is a query parameter: `?mode=create`"),
    ("revoke", "it is a query parameter: `?revoke=true`"),
    ("if_match", "it is a header: `If-Match: \"41\"`"),
    ("key", "it stands in the path: PUT /v1/queues/{q}/tasks/{key}"),
    ("queue", "it stands in the path: /v1/queues/{q}/"),
    ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
];

pub(crate) const PATCH_SHAPE: Shape = Shape {
    known: SHAPE.known.split_at(SHAPE.known.len() - 1).0,
    later: SHAPE.later,
    elsewhere: SHAPE.elsewhere,
};

/// The last is a put's alone.
pub(crate) const SHAPE: Shape = Shape {
    known: &[
        "delay",
        "at",
        "at_ms",
        "level",
        "timeline",
        "payload",
        "payload_base64",
        "content_type",
        "tags",
        "priority",
        "group",
        "retry",
        "expire_after",
        "max_wait",
    ],
    later: &LATER,
    elsewhere: &ELSEWHERE,
};

/// The body of `PUT /v1/queues/{q}/tasks/{key}` and of `POST /v1/queues/{q}/tasks`.
///
/// `{"delay": "30m" | "at": "2017-10-02T11:26:33Z" | "at_ms": 1506943593000 | "level": 3, "payload": any JSON, "tags": ["vip"], "priority": 1024,
/// "group": "user:7", "retry": {...}, "expire_after": "1h"}`, every member optional and at most one of the four that say a time. In place of time and payload there may be a `timeline`: `[{"at": ..., "payload": ...}, ...]`. Instead of `payload` there may be
/// `payload_base64` with `content_type`. An empty body is an empty object: due now, with the payload `null`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutBody {
    /// When the task is to become due.
    pub due: Due,
    /// What the worker gets; with a timeline each instant has its own.
    pub payload: PayloadBody,
    /// The instants at which the task is due, one after the other; empty if it is due once.
    pub timeline: Vec<MomentBody>,
    /// Tags, priority, group.
    pub terms: Terms,
    /// Of a debounced put: the task is due so many ms after the first put of the row at the latest (`max_wait`).
    pub max_wait_ms: Option<u64>,
}

impl PutBody {
    /// Refuses payloads that not all readers take. See [`PayloadBody::check_portable`].
    ///
    /// # Errors
    ///
    /// Names the first such place.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        self.payload.check_portable()?;
        timeline::check_portable(&self.timeline)
    }

    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object or nests deeper than 64 levels; members that are unknown, given twice, not
    /// supported yet or of the wrong kind; two members that say a time; an instant before 1970 or a negative
    /// delay.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        Self::of(&Members::read(bytes, &SHAPE)?)
    }

    pub(crate) fn of(members: &Members<'_>) -> Result<Self, BadRequest> {
        let (due, payload, timeline) = what(members)?;
        Ok(Self {
            due: due.unwrap_or_default(),
            payload: payload.unwrap_or_default(),
            timeline: timeline.unwrap_or_default(),
            terms: Terms::of(members)?,
            max_wait_ms: members
                .get("max_wait")
                .map(|raw| value::duration_ms("max_wait", raw))
                .transpose()?,
        })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    /// Whether its members go with this mode.
    ///
    /// # Errors
    ///
    /// A `max_wait` in a put that is not debounced.
    pub fn check(&self, mode: PutMode) -> Result<(), BadRequest> {
        if !self.timeline.is_empty() && self.max_wait_ms.is_some() {
            let hint = "a timeline says itself when the task is due";
            return Err(BadRequest::member("max_wait", "means nothing beside a `timeline`", hint));
        }
        if self.max_wait_ms.is_none() || mode == PutMode::Debounce {
            return Ok(());
        }
        let what = format!("means nothing to a put of the mode `{}`", mode.name());
        Err(BadRequest::member("max_wait", what, "leave it out, or put with the mode `debounce`"))
    }

    pub(crate) fn write_max_wait<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.max_wait_ms.map_or(Ok(()), |ms| map.serialize_entry("max_wait", &duration::format(ms)))
    }

    /// Writes the member that says the time, if there is one to write.
    pub(crate) fn write_due<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if self.due == Due::Now || !self.timeline.is_empty() { Ok(()) } else { self.due.write(map) }
    }
}

/// When and what: a time and a payload, or a timeline, which has both.
type What = (Option<Due>, Option<PayloadBody>, Option<Vec<MomentBody>>);

fn what(members: &Members<'_>) -> Result<What, BadRequest> {
    let (due, payload) = (Due::of(members)?, PayloadBody::of(members)?);
    let timeline = members.get("timeline").map(timeline).transpose()?;
    if timeline.is_some() && (due.is_some() || payload.is_some()) {
        let what = if due.is_some() { "a second time" } else { "a second payload" };
        return Err(BadRequest::member(
            "timeline",
            format!("stands beside {what}"),
            "each instant of a timeline has its time and its payload: leave the others out",
        ));
    }
    Ok((due, payload, timeline))
}

impl Serialize for PutBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_due(&mut map)?;
        if self.timeline.is_empty() {
            self.payload.write(&mut map)?;
        } else {
            map.serialize_entry("timeline", &self.timeline)?;
        }
        self.write_max_wait(&mut map)?;
        self.terms.write(&mut map)?;
        map.end()
    }
}

/// The body of `PATCH /v1/queues/{q}/tasks/{key}`: the members of [`PutBody`]; what is absent stays as it is.
///
/// An empty patch is refused: it would raise the task's version and change nothing, which nobody means to ask
/// for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchBody {
    /// When the task is to become due from now on. `delay` counts from the receipt of the patch.
    pub due: Option<Due>,
    /// What the worker gets from now on.
    pub payload: Option<PayloadBody>,
    /// Another timeline, from its first instant on.
    pub timeline: Option<Vec<MomentBody>>,
    /// Tags, priority, group from now on.
    pub terms: TermsPatch,
}

impl PatchBody {
    /// Refuses payloads that not all readers take. See [`PayloadBody::check_portable`].
    ///
    /// # Errors
    ///
    /// Names the first such place.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        self.payload.as_ref().map_or(Ok(()), PayloadBody::check_portable)?;
        timeline::check_portable(self.timeline.as_deref().unwrap_or(&[]))
    }

    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// As [`PutBody::parse`], and a patch without any member.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        Self::of(&Members::read(bytes, &PATCH_SHAPE)?)
    }

    pub(crate) fn of(members: &Members<'_>) -> Result<Self, BadRequest> {
        let (due, payload, timeline) = what(members)?;
        let patch = Self { due, payload, timeline, terms: TermsPatch::of(members)? };
        if patch == Self::default() {
            return Err(BadRequest::body(
                "changes nothing",
                "name a time (`delay`, `at`, `at_ms` or `level`; `\"delay\": \"0s\"` for now), a `payload`, a `timeline`, `tags`, a `priority`, a `group`, `retry` or `expire_after`",
            ));
        }
        Ok(patch)
    }

    /// The body as [`parse`](Self::parse) reads it. [`Due::Now`] is written as a delay of 0 and read as that.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    /// Writes the member that says the time, if there is one to write.
    pub(crate) fn write_due<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.due.map_or(Ok(()), |due| due.write(map))
    }
}

impl Serialize for PatchBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_due(&mut map)?;
        if let Some(payload) = &self.payload {
            payload.write(&mut map)?;
        }
        if let Some(timeline) = &self.timeline {
            map.serialize_entry("timeline", timeline)?;
        }
        self.terms.write(&mut map)?;
        map.end()
    }
}
