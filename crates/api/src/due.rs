//! When a task is to become due, as a request says it.

use crate::bad_request::BadRequest;
use crate::body::{Meaning, Slots, body, two_of};
use crate::kind::{Kind, duration, instant, number};
use crate::part::may;
use crate::time::INSTANT_MS_MAX;

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

/// No list of delay levels is longer.
pub(crate) const LEVELS_MAX: u32 = 1_000;

body! {
    /// When a task is due: one of the members, or none.
    #[derive(Default)]
    pub(crate) struct DueMembers: group {
        /// Due so long after the server has the request. One of the four, or none for now.
        delay: Option<u64> = may(duration());
        /// Due then, RFC 3339. The past is now.
        at: Option<i64> = may(at());
        /// Due then, milliseconds since 1970.
        at_ms: Option<i64> = may(at_ms());
        /// Due after the delay that has this place in the server's list.
        level: Option<u32> = may(number(1, LEVELS_MAX.into())
            .hinted(|_, _| "levels count from 1, the shortest delay first".to_owned()));
    }
    first: |slots| one_time(two_of::<Self>(slots));
}

/// Refuses a second time.
pub(crate) fn one_time(named: Option<(&str, &str)>) -> Result<(), BadRequest> {
    let Some((first, second)) = named else { return Ok(()) };
    let what = format!("`{first}` and `{second}` both say when the task is due");
    Err(BadRequest::member(second, what, "keep one of them"))
}

impl Meaning for Due {
    type Members = DueMembers;

    fn of_members(
        members: DueMembers,
        _: Option<Self>,
        _: Slots<'_, '_>,
    ) -> Result<Option<Self>, BadRequest> {
        let DueMembers { delay, at, at_ms, level } = members;
        let at = at.or(at_ms).map(Self::At);
        Ok(delay.map(Self::After).or(at).or(level.map(Self::Level)))
    }

    fn to_members(&self) -> DueMembers {
        let none = DueMembers::default();
        match *self {
            // In requests where no time means something else.
            Self::Now => DueMembers { delay: Some(0), ..none },
            Self::After(ms) => DueMembers { delay: Some(ms), ..none },
            Self::At(ms) => DueMembers { at_ms: Some(ms), ..none },
            Self::Level(level) => DueMembers { level: Some(level), ..none },
        }
    }
}

/// An instant as RFC 3339. A bare number is most likely meant for `at_ms`.
pub(crate) fn at() -> impl Kind<Value = i64> {
    instant().hinted(|refused, raw| match raw.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("write it as `at_ms` if it is milliseconds since 1970; {}", refused.hint),
        false => refused.hint.clone(),
    })
}

/// An instant in milliseconds since 1970.
pub(crate) fn at_ms() -> impl Kind<Value = i64> {
    const HINT: &str =
        "write whole milliseconds since 1970 (not seconds, not micro- or nanoseconds), up to the year 9999";
    number(0, INSTANT_MS_MAX.unsigned_abs()).hinted(|_, _| HINT.to_owned())
}
