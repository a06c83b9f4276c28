//! A filter of tasks by state, due time and tag.

use crate::bad_request::{BadRequest, Location, shown};
use crate::body::{Body, Source, body};
use crate::kind::{Kind, choice, object};
use crate::openapi::schema::{self, Schema};
use crate::part::may;
use crate::query::{self, Parameters};
use crate::task::TaskState;
use crate::terms::TAG_BYTES_MAX;
use crate::{time, value};
use serde::Serializer;
use serde_json::Value as Json;
use serde_json::value::RawValue;

body! {
    /// The tasks that match all members of the filter.
    ///
    /// A member that is `None` matches every task. If all are `None`, the filter matches every task of the queue that is not dead.
    #[derive(Default)]
    pub struct TaskFilter: request "Filter" {
        /// Tasks in this state.
        state: Option<TaskState> = may(choice());
        /// Tasks that are due at this instant or later.
        due_from_ms as "due_from": Option<i64> = may(TimeOrMs);
        /// Tasks that are due at this instant or earlier.
        due_to_ms as "due_to": Option<i64> = may(TimeOrMs);
        /// Tasks with this tag.
        tag: Option<String> = may(Tag);
    }
    example: r#"{"tag": "vip"}"#;
    later: &["group", "key_prefix"];
    elsewhere: &[("tags", "write one `tag`"), ("queue", "it stands in the path")];
    check: |filter: &Self, _| filter.clone().check().map(drop).map_err(as_member);
}

/// The kind of the member `filter`.
pub(crate) fn filter() -> impl Kind<Value = TaskFilter> {
    object().hinted(|refused, raw| match raw.starts_with('{') {
        true => refused.hint.clone(),
        false => format!("{}, or `{{}}` for every task that is not dead", refused.hint),
    })
}

/// The schema of the filter of a bulk move, which has no state `dead`.
pub(crate) fn move_filter() -> Schema {
    let states = [TaskState::Scheduled, TaskState::Ready, TaskState::Leased].map(TaskState::name);
    let mut filter = TaskFilter::schema();
    filter.members[0].schema = schema::one_of(&states);
    Schema { name: "MoveFilter", ..filter }
}

/// An instant as in a query: RFC 3339, or milliseconds since 1970 as a number.
struct TimeOrMs;

impl Kind for TimeOrMs {
    type Value = i64;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<i64, BadRequest> {
        let text = match raw.get().starts_with('"') {
            true => value::text(path, raw, "2030-01-01T00:00:00Z")?,
            false => value::whole(raw.get()).to_owned(),
        };
        instant(path, &text).map_err(as_member)
    }

    fn write<S: Serializer>(&self, ms: &i64, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        time::rfc3339::serialize(ms, serializer)
    }

    fn schema(&self) -> Json {
        schema::time_or_ms()
    }

    fn example(&self) -> String {
        "\"2030-01-01T00:00:00Z\"".to_owned()
    }
}

/// A tag to look for.
struct Tag;

impl Kind for Tag {
    type Value = String;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<String, BadRequest> {
        value::text(path, raw, "vip").and_then(|text| tag(&text).map_err(as_member))
    }

    fn write<S: Serializer>(&self, tag: &String, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(tag)
    }

    fn schema(&self) -> Json {
        schema::word(TAG_BYTES_MAX)
    }

    fn example(&self) -> String {
        "\"vip\"".to_owned()
    }
}

/// Turns the refusal of a parameter into that of the member with the same name.
fn as_member(refused: BadRequest) -> BadRequest {
    let location = match refused.location {
        Location::Parameter(name) => Location::Member(name),
        other => other,
    };
    BadRequest { location, ..refused }
}

impl TaskFilter {
    /// Refuses a `due_to` that is before `due_from`.
    pub(crate) fn check(self) -> Result<Self, BadRequest> {
        match (self.due_from_ms, self.due_to_ms) {
            (Some(from), Some(to)) if from > to => Err(BadRequest::parameter(
                "due_to",
                format!("{} is before `due_from`, {}", time::format(to), time::format(from)),
                "write a later `due_to`, or leave one of them out for no limit",
            )),
            _ => Ok(self),
        }
    }

    /// Reads the parameters of a query string.
    pub(crate) fn of_parameters(found: &Parameters) -> Result<Self, BadRequest> {
        let filter = Self {
            state: found.read_as("state", query::choice)?,
            due_from_ms: found.read_as("due_from", instant)?,
            due_to_ms: found.read_as("due_to", instant)?,
            tag: found.read_as("tag", |_, given| tag(given))?,
        };
        filter.check()
    }

    /// The parameters of the query string, in its order.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        let Self { state, due_from_ms, due_to_ms, tag } = self;
        let mut parameters = Vec::new();
        parameters.extend(state.map(|state| ("state", state.name().to_owned())));
        parameters.extend(due_from_ms.map(|ms| ("due_from", time::format(ms))));
        parameters.extend(due_to_ms.map(|ms| ("due_to", time::format(ms))));
        parameters.extend(tag.clone().map(|tag| ("tag", tag)));
        parameters
    }

    /// The filter as one text, for the comparison of filters.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let parameters = self.parameters();
        parameters.iter().map(|(name, value)| format!("{name}={}:{value};", value.len())).collect()
    }
}

/// An instant: RFC 3339, or whole milliseconds since 1970.
pub(crate) fn instant(name: &str, given: &str) -> Result<i64, BadRequest> {
    let digits = !given.is_empty() && given.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return time::parse(given).map_err(|error| error.of_parameter(name));
    }
    given.parse().ok().filter(|ms| *ms <= time::INSTANT_MS_MAX).ok_or_else(|| {
        BadRequest::parameter(
            name,
            format!("{} is after the year 9999", shown(given)),
            "write RFC 3339, or whole milliseconds since 1970 (not micro- or nanoseconds)",
        )
    })
}

/// A tag to look for.
pub(crate) fn tag(given: &str) -> Result<String, BadRequest> {
    let fits = (1..=TAG_BYTES_MAX).contains(&given.len()) && !given.chars().any(char::is_control);
    if fits {
        return Ok(given.to_owned());
    }
    let what = format!("`{}` is no tag", shown(given));
    let hint = format!("a tag has 1 to {TAG_BYTES_MAX} bytes of UTF-8 without control characters");
    Err(BadRequest::parameter("tag", what, hint))
}
