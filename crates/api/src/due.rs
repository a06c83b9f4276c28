//! When a task is to become due, as a request says it.

use crate::bad_request::BadRequest;
use crate::json::Members;
use crate::{duration, time, value};
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

/// When a task is to become due. The server turns it into an instant with its own clock, at receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Due {
    /// At once: the request named no time.
    #[default]
    Now,
    /// So many milliseconds after the server received the request (`delay`).
    After(u64),
    /// At this instant, in milliseconds since 1970-01-01T00:00:00Z, never negative (`at` or `at_ms`). It may
    /// be in the past: then the task is due now, and keeps this instant as its `due_at`.
    At(i64),
    /// After the delay that the server's list of delay levels has in this place, counted from 1 (`level`). What is in the list is the
    /// server's to say; the instant is fixed at the put, and another list later does not move it.
    Level(u32),
}

/// The members that say a time, in the order of the documents.
pub(crate) const TIME_MEMBERS: [&str; 4] = ["delay", "at", "at_ms", "level"];

/// No list of delay levels is longer.
pub(crate) const LEVELS_MAX: u32 = 1_000;

impl Due {
    /// The one time member of a request, `None` if it has none.
    pub(crate) fn of(members: &Members<'_>) -> Result<Option<Self>, BadRequest> {
        let mut named = members.names().filter(|name| TIME_MEMBERS.contains(name));
        let (first, second) = (named.next(), named.next());
        if let (Some(first), Some(second)) = (first, second) {
            return Err(BadRequest::member(
                second,
                format!("`{first}` and `{second}` both say when the task is due"),
                "keep one of them",
            ));
        }
        let Some(name) = first else { return Ok(None) };
        let raw = members.get(name).expect("the name was found among the members");
        let due = match name {
            "delay" => Self::After(value::duration_ms(name, raw)?),
            "at" => Self::At(at(name, raw)?),
            "at_ms" => Self::At(at_ms(name, raw)?),
            _ => Self::Level(level(name, raw)?),
        };
        Ok(Some(due))
    }

    /// Writes the member that says this time. `Now` is `delay` 0, for requests in which no time means
    /// something else.
    pub(crate) fn write<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Now => map.serialize_entry("delay", "0s"),
            Self::After(ms) => map.serialize_entry("delay", &duration::format(ms)),
            Self::At(ms) => map.serialize_entry("at_ms", &ms),
            Self::Level(level) => map.serialize_entry("level", &level),
        }
    }
}

fn level(name: &str, raw: &RawValue) -> Result<u32, BadRequest> {
    let level = value::integer(name, raw, 1..=u64::from(LEVELS_MAX)).map_err(|refused| BadRequest {
        hint: "levels count from 1, the shortest delay first".to_owned(),
        ..refused
    })?;
    Ok(u32::try_from(level).expect("it is within the limit"))
}

/// An instant as RFC 3339.
pub(crate) fn at(name: &str, raw: &RawValue) -> Result<i64, BadRequest> {
    value::instant_ms(name, raw).map_err(|refused| suggest_at_ms(refused, raw.get()))
}

/// An instant in milliseconds since 1970.
pub(crate) fn at_ms(name: &str, raw: &RawValue) -> Result<i64, BadRequest> {
    let last = u64::try_from(time::INSTANT_MS_MAX).expect("the last instant is after 1970");
    let ms = value::integer(name, raw, 0..=last).map_err(|refused| BadRequest {
        hint: "write whole milliseconds since 1970 (not seconds, not micro- or nanoseconds), up to the year 9999"
            .to_owned(),
        ..refused
    })?;
    Ok(i64::try_from(ms).expect("the last instant fits"))
}

/// A bare number in `at` is most likely meant for `at_ms`.
fn suggest_at_ms(mut refused: BadRequest, raw: &str) -> BadRequest {
    if raw.bytes().all(|b| b.is_ascii_digit()) {
        refused.hint = format!("write it as `at_ms` if it is milliseconds since 1970; {}", refused.hint);
    }
    refused
}
