//! Cancelling many tasks at once.

use crate::bad_request::{BadRequest, Place, inside};
use crate::filter::{TaskFilter, instant, tag};
use crate::json::{self, Members, Shape};
use crate::task::TaskState;
use crate::value;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Up to so many tasks are cancelled while the call waits; beyond them, or where finding them takes long, a job does it.
pub const BULK_MAX: usize = 10_000;

pub(crate) const SHAPE: Shape = Shape {
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
        let members = Members::read(bytes, &SHAPE)?;
        let raw = members.required("filter", r#""filter": {"tag": "vip"}"#)?;
        let filter = filter(raw).map_err(|refused| inside("filter", as_member(refused)))?;
        let flag = |name| members.get(name).map_or(Ok(false), |raw| value::boolean(name, raw));
        Ok(Self { filter, dry_run: flag("dry_run")?, revoke: flag("revoke")? })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl Serialize for BulkCancelBody {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let filter: std::collections::BTreeMap<_, _> = self.filter.parameters().into_iter().collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("filter", &filter)?;
        map.serialize_entry("dry_run", &self.dry_run)?;
        map.serialize_entry("revoke", &self.revoke)?;
        map.end()
    }
}

fn filter(raw: &RawValue) -> Result<TaskFilter, BadRequest> {
    let hint = "write an object, for example `{\"tag\": \"vip\"}`, or `{}` for every task that is not dead";
    let members = Members::of_value(raw, &FILTER, hint)?;
    let words = TaskState::ALL.map(|state| (state.name(), state));
    let time = |name: &'static str| {
        // As in a query: RFC 3339, or milliseconds since 1970 as a number.
        let given = members.get(name).map(|raw| match raw.get().starts_with('"') {
            true => value::text(name, raw, "2030-01-01T00:00:00Z"),
            false => Ok(raw.get().to_owned()),
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

/// How a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is under way.
    Running,
    /// It has looked at all there is.
    Done,
    /// Somebody stopped it; what it has done stays.
    Stopped,
    /// It could not go on, see `error`; what it has done stays.
    Failed,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Stopped, Self::Failed];

    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// A cancel of many tasks that goes on by itself, after a restart too: the answer 202 of the call, and to `GET` and `DELETE /v1/jobs/{id}`.
///
/// Of a server that was killed, the page of up to 1,000 tasks that it was at may be missing in `matched` and `cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobBody {
    /// Its number.
    pub id: u64,
    /// The queue.
    pub queue: String,
    /// How it goes.
    pub state: JobState,
    /// Whether it only counts.
    pub dry_run: bool,
    /// How many tasks the queue had at its start.
    pub of: u64,
    /// How many of them it has looked at.
    pub looked_at: u64,
    /// How many the filter found.
    pub matched: u64,
    /// How many of those were cancelled or revoked.
    pub cancelled: u64,
    /// Why it could not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer to `GET /v1/jobs`: `{"jobs": [...]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsBody {
    /// Those under way and the last 100 that are over, the newest first.
    pub jobs: Vec<JobBody>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
