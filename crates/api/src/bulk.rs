//! What is done to many tasks at once: a cancel, a move, a purge.

use crate::bad_request::{BadRequest, Place, inside};
use crate::due::{at, at_ms};
use crate::duration;
use crate::filter::{TaskFilter, instant, tag};
use crate::json::{self, Members, Shape};
use crate::task::TaskState;
use crate::value;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A call does up to this many tasks while its caller waits. If there are more, or if finding them takes long, a job does it.
pub const BULK_MAX: usize = 10_000;

pub(crate) const CANCEL: Shape = Shape {
    known: &["filter", "dry_run", "revoke"],
    later: &[],
    elsewhere: &[
        ("state", "it stands in `filter`"),
        ("tag", "it stands in `filter`"),
        ("due_from", "it stands in `filter`"),
        ("due_to", "it stands in `filter`"),
        ("key", "one task is cancelled with DELETE /v1/queues/{q}/tasks/{key}"),
    ],
};

pub(crate) const MOVE: Shape = Shape {
    known: &["filter", "delay", "at", "at_ms", "by", "dry_run", "revoke"],
    later: &[],
    elsewhere: &[
        ("state", "it stands in `filter`"),
        ("tag", "it stands in `filter`"),
        ("due_from", "it stands in `filter`"),
        ("due_to", "it stands in `filter`"),
        ("level", "write the delay itself as `delay`"),
        ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
        ("key", "one task is moved with PATCH /v1/queues/{q}/tasks/{key}"),
    ],
};

pub(crate) const PURGE: Shape = Shape {
    known: &["dry_run", "revoke"],
    later: &[],
    elsewhere: &[
        ("filter", "a purge takes all tasks; POST /v1/queues/{q}/cancel takes a filter"),
        ("state", "a purge takes all tasks; POST /v1/queues/{q}/cancel takes a filter"),
        ("tag", "a purge takes all tasks; POST /v1/queues/{q}/cancel takes a filter"),
    ],
};

pub(crate) const FILTER: Shape = Shape {
    known: &["state", "due_from", "due_to", "tag"],
    later: &["group", "key_prefix"],
    elsewhere: &[("tags", "write one `tag`"), ("queue", "it stands in the path")],
};

/// The body of `POST /v1/queues/{q}/cancel`: `{"filter": {"tag": "vip", "due_to": "2030-01-01T00:00:00Z"}, "dry_run": true}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkCancelBody {
    /// Which tasks; `{}` is every task that is not dead, and has to be written.
    pub filter: TaskFilter,
    /// Say only how many there are.
    pub dry_run: bool,
    /// Take those out of workers' hands that are leased.
    pub revoke: bool,
}

impl BulkCancelBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; no `filter`; unknown or repeated members; values of the wrong kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &CANCEL)?;
        let filter = filter_of(&members)?;
        let Flags { dry_run, revoke } = Flags::read(&members)?;
        Ok(Self { filter, dry_run, revoke })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl Serialize for BulkCancelBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("filter", &written(&self.filter))?;
        Flags { dry_run: self.dry_run, revoke: self.revoke }.write(&mut map)?;
        map.end()
    }
}

/// Where tasks are moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveTo {
    /// All to one instant: this many milliseconds after the server received the call (`delay`).
    After(u64),
    /// All to this instant, in milliseconds since 1970 (`at` or `at_ms`). The past is now.
    At(i64),
    /// Each from its own time by this many milliseconds: later, or earlier if the number is negative (`by`). None becomes due before now.
    By(i64),
}

/// The body of `POST /v1/queues/{q}/move`: `{"filter": {"tag": "vip"}, "by": "1h", "dry_run": true}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkMoveBody {
    /// Which tasks; `{}` is every task that is not dead, and has to be written. Dead tasks do not move.
    pub filter: TaskFilter,
    /// Where to.
    pub to: MoveTo,
    /// Say only how many there are.
    pub dry_run: bool,
    /// Take those out of workers' hands that are leased.
    pub revoke: bool,
}

impl BulkMoveBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// As [`BulkCancelBody::parse`]; no time, two of them, or a filter for dead tasks.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &MOVE)?;
        let filter = filter_of(&members)?;
        if filter.state == Some(TaskState::Dead) {
            let hint = "give dead tasks another life first: POST /v1/queues/{q}/dead/redrive";
            return Err(BadRequest::member("filter.state", "`dead` tasks have no time to move", hint));
        }
        let to = MoveTo::of(&members)?;
        let Flags { dry_run, revoke } = Flags::read(&members)?;
        Ok(Self { filter, to, dry_run, revoke })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl Serialize for BulkMoveBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("filter", &written(&self.filter))?;
        match self.to {
            MoveTo::After(ms) => map.serialize_entry("delay", &duration::format(ms))?,
            MoveTo::At(ms) => map.serialize_entry("at_ms", &ms)?,
            MoveTo::By(ms) => map.serialize_entry("by", &duration::format_signed(ms))?,
        }
        Flags { dry_run: self.dry_run, revoke: self.revoke }.write(&mut map)?;
        map.end()
    }
}

impl MoveTo {
    fn of(members: &Members<'_>) -> Result<Self, BadRequest> {
        let mut named = members.names().filter(|name| ["delay", "at", "at_ms", "by"].contains(name));
        let (first, second) = (named.next(), named.next());
        let Some(first) = first else {
            let hint = "name one of `delay`, `at` and `at_ms`, one instant for all, or `by`, which moves each from its own time";
            return Err(BadRequest::body("says no time", hint));
        };
        if let Some(second) = second {
            let what = format!("`{first}` and `{second}` both say where the tasks are moved to");
            return Err(BadRequest::member(second, what, "keep one of them"));
        }
        let raw = members.get(first).expect("the name was found among the members");
        Ok(match first {
            "delay" => Self::After(value::duration_ms(first, raw)?),
            "at" => Self::At(at(first, raw)?),
            "at_ms" => Self::At(at_ms(first, raw)?),
            _ => Self::By(by(first, raw)?),
        })
    }
}

/// A duration that may be negative, and is not zero.
fn by(name: &'static str, raw: &RawValue) -> Result<i64, BadRequest> {
    let text = value::text(name, raw, "1h")?;
    match duration::parse_signed(&text) {
        Ok(0) => {
            let hint = "write how much later, such as `1h`, or how much earlier, such as `-1h`";
            Err(BadRequest::member(name, "moves nothing", hint))
        }
        Ok(ms) => Ok(ms),
        Err(error) => Err(BadRequest::member(name, error.to_string(), error.hint())),
    }
}

/// The body of `POST /v1/queues/{q}/purge`: `{"dry_run": true}`; no body at all is a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PurgeBody {
    /// Say only how many tasks there are.
    pub dry_run: bool,
    /// Take those out of workers' hands that are leased.
    pub revoke: bool,
}

impl PurgeBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; unknown or repeated members; values of the wrong kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &PURGE)?;
        let Flags { dry_run, revoke } = Flags::read(&members)?;
        Ok(Self { dry_run, revoke })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl Serialize for PurgeBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        Flags { dry_run: self.dry_run, revoke: self.revoke }.write(&mut map)?;
        map.end()
    }
}

/// A filter as [`filter_of`] reads it.
fn written(filter: &TaskFilter) -> BTreeMap<&'static str, String> {
    filter.parameters().into_iter().collect()
}

/// The members that all these bodies have.
struct Flags {
    dry_run: bool,
    revoke: bool,
}

impl Flags {
    fn read(members: &Members<'_>) -> Result<Self, BadRequest> {
        let flag = |name| members.get(name).map_or(Ok(false), |raw| value::boolean(name, raw));
        Ok(Self { dry_run: flag("dry_run")?, revoke: flag("revoke")? })
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("dry_run", &self.dry_run)?;
        map.serialize_entry("revoke", &self.revoke)
    }
}

fn filter_of(members: &Members<'_>) -> Result<TaskFilter, BadRequest> {
    let raw = members.required("filter", r#""filter": {"tag": "vip"}"#)?;
    filter(raw).map_err(|refused| inside("filter", as_member(refused)))
}

fn filter(raw: &RawValue) -> Result<TaskFilter, BadRequest> {
    let hint = "write an object, for example `{\"tag\": \"vip\"}`, or `{}` for every task that is not dead";
    let members = Members::of_value(raw, &FILTER, hint)?;
    let words = TaskState::ALL.map(|state| (state.name(), state));
    let time = |name: &'static str| {
        // As in a query: RFC 3339, or milliseconds since 1970 as a number.
        let given = members.get(name).map(|raw| match raw.get().starts_with('"') {
            true => value::text(name, raw, "2030-01-01T00:00:00Z"),
            false => Ok(value::whole(raw.get()).to_owned()),
        });
        given.map(|text| text.and_then(|text| instant(name, &text))).transpose()
    };
    let wanted = members.get("tag").map(|raw| value::text("tag", raw, "vip").and_then(|text| tag(&text)));
    let filter = TaskFilter {
        state: members.get("state").map(|raw| value::word("state", raw, &words)).transpose()?,
        due_from_ms: time("due_from")?,
        due_to_ms: time("due_to")?,
        tag: wanted.transpose()?,
    };
    filter.check()
}

/// What was said of a parameter of a query is said of a member.
fn as_member(refused: BadRequest) -> BadRequest {
    let place = match refused.place {
        Place::Parameter(name) => Place::Member(name),
        other => other,
    };
    BadRequest { place, ..refused }
}

/// The answer to a cancel of many: `{"matched": 3, "cancelled": 3}`; a dry run cancels none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCancelAnswer {
    /// How many tasks the filter found.
    pub matched: u64,
    /// How many of them were cancelled or revoked. The others were leased, or somebody changed them meanwhile.
    pub cancelled: u64,
}

/// The answer to a move of many: `{"matched": 3, "moved": 3}`; a dry run moves none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkMoveAnswer {
    /// How many tasks the filter found.
    pub matched: u64,
    /// How many of them were moved.
    pub moved: u64,
    /// Why the others were not.
    #[serde(default, skip_serializing_if = "SkippedBody::is_empty")]
    pub skipped: SkippedBody,
}

/// The answer to a purge: `{"matched": 3, "purged": 3}`; a dry run purges none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeAnswer {
    /// How many tasks the queue had, live and dead.
    pub matched: u64,
    /// How many of them were removed.
    pub purged: u64,
    /// Why the others were not.
    #[serde(default, skip_serializing_if = "SkippedBody::is_empty")]
    pub skipped: SkippedBody,
}

/// Why tasks that were found were left as they are, and how many for each reason. A reason without tasks is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SkippedBody {
    /// A worker had them, and the request has no `revoke`.
    #[serde(skip_serializing_if = "is_zero")]
    pub leased: u64,
    /// They were changed, or ended, after they were found.
    #[serde(skip_serializing_if = "is_zero")]
    pub changed: u64,
    /// They have a timeline, which is replaced as a whole.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeline: u64,
    /// They would have expired before the new time.
    #[serde(skip_serializing_if = "is_zero")]
    pub expires_first: u64,
    /// The new time is later than the server, or the token, allows.
    #[serde(skip_serializing_if = "is_zero")]
    pub too_far: u64,
}

impl SkippedBody {
    /// Whether nothing was skipped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reasons that have tasks, by their names on the wire.
    #[must_use]
    pub fn reasons(&self) -> Vec<(&'static str, u64)> {
        let Self { leased, changed, timeline, expires_first, too_far } = *self;
        let all = [
            ("leased", leased),
            ("changed", changed),
            ("timeline", timeline),
            ("expires_first", expires_first),
            ("too_far", too_far),
        ];
        all.into_iter().filter(|(_, tasks)| *tasks > 0).collect()
    }

    /// Adds those of another part of the same work.
    pub fn add(&mut self, other: Self) {
        let Self { leased, changed, timeline, expires_first, too_far } = other;
        self.leased += leased;
        self.changed += changed;
        self.timeline += timeline;
        self.expires_first += expires_first;
        self.too_far += too_far;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_read_and_written() {
        for (text, to) in [
            (r#"{"filter":{},"delay":"30m"}"#, MoveTo::After(1_800_000)),
            (r#"{"filter":{},"at":"1970-01-01T00:00:05Z"}"#, MoveTo::At(5_000)),
            (r#"{"filter":{},"at_ms":7}"#, MoveTo::At(7)),
            (r#"{"filter":{},"by":"1h30m"}"#, MoveTo::By(5_400_000)),
            (r#"{"filter":{},"by":"-1.5s"}"#, MoveTo::By(-1_500)),
        ] {
            let body = BulkMoveBody::parse(text.as_bytes()).expect(text);
            assert_eq!((body.to, body.dry_run, body.revoke), (to, false, false), "{text}");
            assert_eq!(BulkMoveBody::parse(&body.to_json()), Ok(body));
        }
        for (text, what) in [
            (r#"{"by":"1h"}"#, "`filter`: is missing"),
            (r#"{"filter":{}}"#, "the body: says no time"),
            (r#"{"filter":{},"by":"1h","delay":"1h"}"#, "`delay`: `by` and `delay` both say where"),
            (r#"{"filter":{},"by":"0s"}"#, "`by`: moves nothing"),
            (r#"{"filter":{},"by":"-"}"#, "`by`: is empty"),
            (r#"{"filter":{},"by":"--1h"}"#, "`by`: `-1h` is negative"),
            (r#"{"filter":{},"by":3600}"#, "`by`: expected a string"),
            (r#"{"filter":{},"delay":"-1h"}"#, "`delay`: `-1h` is negative"),
            (r#"{"filter":{},"level":3}"#, "`level`: is not a member of this request"),
            (r#"{"filter":{"state":"dead"},"by":"1h"}"#, "`filter.state`: `dead` tasks have no time"),
        ] {
            let refused = BulkMoveBody::parse(text.as_bytes()).expect_err(text).to_string();
            assert!(refused.starts_with(what), "{refused} instead of {what}");
        }
    }

    #[test]
    fn purges_are_read_and_written() {
        assert_eq!(PurgeBody::parse(b""), Ok(PurgeBody::default()));
        let body = PurgeBody::parse(br#"{"dry_run":true,"revoke":true}"#).expect("a body");
        assert_eq!((body.dry_run, body.revoke), (true, true));
        assert_eq!(PurgeBody::parse(&body.to_json()), Ok(body));
        let refused = PurgeBody::parse(br#"{"filter":{"tag":"vip"}}"#).expect_err("a filter");
        assert!(refused.hint.contains("/cancel takes a filter"), "{refused} {}", refused.hint);
    }

    #[test]
    fn what_was_skipped_is_shown_by_reason() {
        let answer = BulkMoveAnswer { matched: 3, moved: 3, skipped: SkippedBody::default() };
        assert_eq!(serde_json::to_string(&answer).expect("JSON"), r#"{"matched":3,"moved":3}"#);
        let mut skipped = SkippedBody { leased: 1, ..SkippedBody::default() };
        skipped.add(SkippedBody { leased: 1, too_far: 2, ..SkippedBody::default() });
        let text = serde_json::to_string(&PurgeAnswer { matched: 9, purged: 5, skipped }).expect("JSON");
        assert_eq!(text, r#"{"matched":9,"purged":5,"skipped":{"leased":2,"too_far":2}}"#);
        assert_eq!(skipped.reasons(), [("leased", 2), ("too_far", 2)]);
    }

    #[test]
    fn bodies_are_read_and_written() {
        let text = r#"{"filter":{"state":"ready","due_from":"2017-10-02T11:26:33Z","due_to":1506943593001,"tag":"vip"},"dry_run":true}"#;
        let body = BulkCancelBody::parse(text.as_bytes()).expect("a body");
        assert_eq!(body.filter.due_from_ms, Some(1_506_943_593_000));
        assert_eq!(
            (body.filter.due_to_ms, body.dry_run, body.revoke),
            (Some(1_506_943_593_001), true, false)
        );
        assert_eq!(BulkCancelBody::parse(&body.to_json()), Ok(body));
        assert_eq!(BulkCancelBody::parse(br#"{"filter":{}}"#), Ok(BulkCancelBody::default()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, what) in [
            ("", "`filter`: is missing"),
            (r#"{"tag":"vip"}"#, "`tag`: is not a member of this request"),
            (r#"{"filter":7}"#, "`filter`: expected an object, got the number 7"),
            (r#"{"filter":{"state":"odd"}}"#, "`filter.state`: `odd` is not known"),
            (r#"{"filter":{"tag":""}}"#, "`filter.tag`: `` is no tag"),
            (r#"{"filter":{"due_from":"soon"}}"#, "`filter.due_from`: `soon` is not an RFC 3339 time"),
            (
                r#"{"filter":{"due_from":9,"due_to":8}}"#,
                "`filter.due_to`: 1970-01-01T00:00:00.008Z is before `due_from`, 1970-01-01T00:00:00.009Z",
            ),
            (r#"{"filter":{},"dry_run":1}"#, "`dry_run`: expected true or false, got the number 1"),
        ] {
            let refused = BulkCancelBody::parse(text.as_bytes()).expect_err(text).to_string();
            assert!(refused.starts_with(what), "{refused} instead of {what}");
        }
    }
}
