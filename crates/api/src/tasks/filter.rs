//! A filter of tasks: by state, due time, tag, group and key, and dead tasks by how they died.

use crate::declare::query::{self, Parameters};
use crate::declare::{
    Body, Form, Schema, Source, ValueCodec, body, choice, may, object, schema, text, value, word,
};
use crate::tasks::task::{DeathReason, TaskState};
use crate::text::bad_request::{BadRequest, Location, shown};
use crate::text::time;
use crate::values::limits::{FAILURE_BYTES_MAX, GROUP_BYTES_MAX, KEY_BYTES_MAX, TAG_BYTES_MAX};
use serde::Serializer;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// Number of hexadecimal digits of the id of a group of dead tasks.
pub const GROUP_ID_DIGITS: usize = 16;

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
        /// Tasks of this group.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// The task with this key. It is looked up, so a dead task whose key a later task took is not found by it.
        key: Option<String> = may(word(KEY_BYTES_MAX, "order:1"));
        /// Tasks whose keys contain this text. Capital and small letters differ.
        key_contains: Option<String> = may(word(KEY_BYTES_MAX, "order"));
        /// Dead tasks that were given up for this reason.
        reason: Option<DeathReason> = may(choice());
        /// Dead tasks whose last failure has a reason that contains this text. Capital and small letters differ.
        failure: Option<String> = may(text(FAILURE_BYTES_MAX, "timed out").checked(is_failure_text).described(failure_schema));
        /// Dead tasks of this group of `GET /v1/queues/{q}/dead/groups`.
        group_id: Option<String> = may(text(GROUP_ID_DIGITS, "9f3a5c0e7b1d2468").checked(is_group_id).described(group_id_schema));
    }
    example: r#"{"tag": "vip"}"#;
    later: &["key_prefix"];
    elsewhere: &[("tags", "write one `tag`"), ("keys", "write one `key`, or `key_contains`"), ("queue", "it stands in the path")];
    check: |filter: &Self, _| filter.clone().check().map(drop).map_err(as_member);
}

/// The kind of the member `filter`.
pub(crate) fn filter() -> impl ValueCodec<Value = TaskFilter> {
    object().hinted(|refused, raw| match raw.starts_with('{') {
        true => refused.hint.clone(),
        false => format!("{}, or `{{}}` for every task that is not dead", refused.hint),
    })
}

/// The members that only dead tasks can match.
const OF_DEAD: [&str; 3] = ["reason", "failure", "group_id"];

/// The schema of the filter of a bulk move, which finds no dead tasks.
pub(crate) fn move_filter() -> Schema {
    let states = [TaskState::Scheduled, TaskState::Ready, TaskState::Leased].map(TaskState::name);
    let mut filter = TaskFilter::schema().without(&OF_DEAD);
    filter.members[0].schema = schema::one_of(&states);
    Schema { name: "MoveFilter", ..filter }
}

/// The schema of the filter of a redrive, which finds dead tasks only.
pub(crate) fn dead_filter() -> Schema {
    let what = "The dead tasks that match all members of the filter. A filter without members matches every dead task of the queue.";
    TaskFilter::schema().without(&["state"]).named("DeadFilter", what)
}

/// Refuses members that only dead tasks can match in a filter of other tasks.
pub(crate) fn fits_its_state(path: &str, filter: &TaskFilter) -> Result<(), BadRequest> {
    match filter.of_dead() {
        Some(member) if filter.state != Some(TaskState::Dead) => {
            let hint = "add `\"state\": \"dead\"` to the filter, or leave the member out";
            Err(BadRequest::member(format!("{path}.{member}"), "is known of dead tasks only", hint))
        }
        _ => Ok(()),
    }
}

/// Refuses a state in a filter that finds dead tasks only.
pub(crate) fn has_no_state(path: &str, filter: &TaskFilter) -> Result<(), BadRequest> {
    match filter.state {
        None => Ok(()),
        Some(_) => {
            let what = "is not for a redrive, which takes dead tasks only";
            Err(BadRequest::member(format!("{path}.state"), what, "leave it out"))
        }
    }
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn is_failure_text(path: &str, text: &String) -> Result<(), BadRequest> {
    failure(path, text).map(drop).map_err(|refused| as_member_at(path, refused))
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn is_group_id(path: &str, text: &String) -> Result<(), BadRequest> {
    group_id(path, text).map(drop).map_err(|refused| as_member_at(path, refused))
}

fn failure_schema() -> Json {
    json!({ "type": "string", "minLength": 1, "maxLength": FAILURE_BYTES_MAX })
}

fn group_id_schema() -> Json {
    json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{GROUP_ID_DIGITS}}}$") })
}

/// An instant as in a query: RFC 3339, or milliseconds since 1970 as a number.
struct TimeOrMs;

impl ValueCodec for TimeOrMs {
    type Value = i64;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<i64, BadRequest> {
        let text = match raw.get().starts_with('"') {
            true => value::text(path, raw, "2030-01-01T00:00:00Z")?,
            false => value::whole(raw.get()).to_owned(),
        };
        instant(path, &text).map_err(as_member)
    }

    fn write<S: Serializer>(&self, ms: &i64, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

impl ValueCodec for Tag {
    type Value = String;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<String, BadRequest> {
        value::text(path, raw, "vip").and_then(|text| tag(&text).map_err(as_member))
    }

    fn write<S: Serializer>(&self, tag: &String, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

fn as_member_at(path: &str, refused: BadRequest) -> BadRequest {
    BadRequest { location: Location::Member(path.to_owned()), ..refused }
}

impl TaskFilter {
    /// The first member that only dead tasks can match.
    pub(crate) fn of_dead(&self) -> Option<&'static str> {
        let Self { reason, failure, group_id, .. } = self;
        let given = [reason.is_some(), failure.is_some(), group_id.is_some()];
        OF_DEAD.into_iter().zip(given).find_map(|(member, is_given)| is_given.then_some(member))
    }

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
            group: found.read_as("group", |name, given| a_word(name, given, GROUP_BYTES_MAX))?,
            key: found.read_as("key", |name, given| a_word(name, given, KEY_BYTES_MAX))?,
            key_contains: found.read_as("key_contains", |name, given| a_word(name, given, KEY_BYTES_MAX))?,
            reason: found.read_as("reason", query::choice)?,
            failure: found.read_as("failure", failure)?,
            group_id: found.read_as("group_id", group_id)?,
        };
        filter.check()
    }

    /// The parameters of the query string, in its order.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        let Self { state, due_from_ms, due_to_ms, tag, group, key, key_contains, reason, failure, group_id } =
            self;
        let mut parameters = Vec::new();
        parameters.extend(state.map(|state| ("state", state.name().to_owned())));
        parameters.extend(due_from_ms.map(|ms| ("due_from", time::format(ms))));
        parameters.extend(due_to_ms.map(|ms| ("due_to", time::format(ms))));
        parameters.extend(tag.clone().map(|tag| ("tag", tag)));
        parameters.extend(group.clone().map(|group| ("group", group)));
        parameters.extend(key.clone().map(|key| ("key", key)));
        parameters.extend(key_contains.clone().map(|text| ("key_contains", text)));
        parameters.extend(reason.map(|reason| ("reason", reason.name().to_owned())));
        parameters.extend(failure.clone().map(|text| ("failure", text)));
        parameters.extend(group_id.clone().map(|id| ("group_id", id)));
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
            format!("{} is {}", shown(given), time::too_late()),
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

/// A text of a query without control characters.
pub(crate) fn a_word(name: &str, given: &str, bytes_max: usize) -> Result<String, BadRequest> {
    let what = match given.chars().find(|c| c.is_control()) {
        _ if given.is_empty() => "is empty".to_owned(),
        _ if given.len() > bytes_max => format!("has {} bytes", given.len()),
        Some(control) => format!("has the control character `{}`", shown(&control.to_string())),
        None => return Ok(given.to_owned()),
    };
    let hint = format!("write 1 to {bytes_max} bytes of UTF-8 without control characters");
    Err(BadRequest::parameter(name, what, hint))
}

/// A text that failures contain. A failure may have several lines.
fn failure(name: &str, given: &str) -> Result<String, BadRequest> {
    if (1..=FAILURE_BYTES_MAX).contains(&given.len()) {
        return Ok(given.to_owned());
    }
    let what = format!("has {} bytes, not from 1 to {FAILURE_BYTES_MAX}", given.len());
    Err(BadRequest::parameter(name, what, "write a part of the reason that a worker gave"))
}

/// The id of a group of dead tasks.
fn group_id(name: &str, given: &str) -> Result<String, BadRequest> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if given.len() == GROUP_ID_DIGITS && given.bytes().all(is_digit) {
        return Ok(given.to_owned());
    }
    let what = format!("`{}` is not the id of a group", shown(given));
    Err(BadRequest::parameter(name, what, "copy the `id` of a group of GET /v1/queues/{q}/dead/groups"))
}
