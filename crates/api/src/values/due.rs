//! The due time of a task in a request.

use crate::declare::{Mapped, RawMembers, ValueCodec, body, duration, instant, may, number, two_of};
use crate::text::bad_request::BadRequest;
use crate::text::time::INSTANT_MS_MAX;

/// The due time of a task. The server turns it into an instant by its own clock when it receives the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Due {
    /// The task is due at once: the request named no time.
    #[default]
    Now,
    /// This many milliseconds after the server received the request (`delay`).
    After(u64),
    /// At this instant, in milliseconds since 1970-01-01T00:00:00Z, never negative (`at` or `at_ms`). It may
    /// be in the past: then the task is due now, and keeps this instant as its `due_at`.
    At(i64),
    /// After the delay with this number in the server's list of delay levels, counted from 1 (`level`). The server's configuration has the list.
    /// The instant is fixed at the put; a later change of the list does not move it.
    Level(u32),
}

/// Maximum length of the list of delay levels.
pub(crate) const LEVELS_MAX: u32 = 1_000;

body! {
    /// The due time of a task: one of the members, or none.
    #[derive(Default)]
    pub(crate) struct DueMembers: group {
        /// The task becomes due this long after the server received the request. A request has one of `delay`, `at`, `at_ms` and `level`, or none for now.
        delay: Option<u64> = may(duration());
        /// The task becomes due at this instant, in RFC 3339. An instant in the past makes it due now.
        at: Option<i64> = may(at());
        /// The task becomes due at this instant, in milliseconds since 1970.
        at_ms: Option<i64> = may(at_ms());
        /// The task becomes due after the delay with this number in the server's list of delay levels.
        level: Option<u32> = may(number(1, LEVELS_MAX.into())
            .hinted(|_, _| "levels count from 1, the shortest delay first".to_owned()));
    }
    first: |raw| one_time(two_of::<Self>(raw));
}

/// Refuses a request that says the due time twice.
pub(crate) fn one_time(named: Option<(&str, &str)>) -> Result<(), BadRequest> {
    let Some((first, second)) = named else { return Ok(()) };
    let what = format!("`{first}` and `{second}` both say when the task is due");
    Err(BadRequest::member(second, what, "keep one of them"))
}

impl Mapped for Due {
    type Members = DueMembers;

    fn from_members(members: DueMembers, _: Option<Self>, _: RawMembers<'_, '_>) -> Result<Self, BadRequest> {
        let DueMembers { delay, at, at_ms, level } = members;
        let at = at.or(at_ms).map(Self::At);
        Ok(delay.map(Self::After).or(at).or(level.map(Self::Level)).unwrap_or_default())
    }

    fn to_members(&self) -> DueMembers {
        let none = DueMembers::default();
        match *self {
            // Written as a delay, because in a patch no time means that the due time stays.
            Self::Now => DueMembers { delay: Some(0), ..none },
            Self::After(ms) => DueMembers { delay: Some(ms), ..none },
            Self::At(ms) => DueMembers { at_ms: Some(ms), ..none },
            Self::Level(level) => DueMembers { level: Some(level), ..none },
        }
    }
}

/// An instant as RFC 3339. For a bare number the hint names `at_ms`, which the caller most likely meant.
pub(crate) fn at() -> impl ValueCodec<Value = i64> {
    instant().hinted(|refused, raw| match raw.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("write it as `at_ms` if it is milliseconds since 1970; {}", refused.hint),
        false => refused.hint.clone(),
    })
}

/// An instant in milliseconds since 1970.
pub(crate) fn at_ms() -> impl ValueCodec<Value = i64> {
    const HINT: &str =
        "write whole milliseconds since 1970 (not seconds, not micro- or nanoseconds), up to the year 9999";
    number(0, INSTANT_MS_MAX.unsigned_abs()).hinted(|_, _| HINT.to_owned())
}
