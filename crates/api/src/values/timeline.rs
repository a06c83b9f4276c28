//! Timelines: tasks with many instants and a payload for each.

use crate::declare::{Mapped, RawMembers, Rule, ValueCodec, body, list, may, object, or_made, role, two_of};
use crate::text::bad_request::{BadRequest, inside};
use crate::text::time;
use crate::values::due::{at, at_ms, one_time};
use crate::values::payload::{PayloadBody, passed_payload};

/// Maximum number of instants in a timeline: almost three years with one instant a day.
pub const MOMENTS_MAX: usize = 1_000;

body! {
    /// An instant of a timeline, and the payload of the task at that instant.
    pub(crate) struct MomentMembers: members "Moment" {
        /// The task becomes due at this instant, in RFC 3339. An instant in the past makes it due now.
        at: Option<i64> = may(at());
        /// The task becomes due at this instant, in milliseconds since 1970.
        at_ms: Option<i64> = may(at_ms());
        payload: PayloadBody = or_made(PayloadBody::default, passed_payload());
    }
    example: r#"{"at": "2030-01-01T00:00:00Z"}"#;
    elsewhere: &[("delay", "the instants of a timeline are absolute: write `at` or `at_ms`")];
    rules: &[Rule::One(&["at", "at_ms"]), Rule::OneOrNone(&["payload", "payload_base64"]), Rule::With("content_type", "payload_base64")];
    first: |raw: RawMembers<'_, '_>| one_time(two_of::<Self>(&raw[..2]));
}

/// One instant of a timeline: `{"at": "2030-01-01T00:00:00Z" | "at_ms": 1893456000000, "payload": any JSON}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MomentBody {
    /// When the task is due (ms since 1970).
    pub at_ms: i64,
    /// The payload that the worker gets for this instant; `null` if the request names none.
    pub payload: PayloadBody,
}

/// Refuses a timeline with a payload that some JSON readers cannot read. See [`PayloadBody::check_portable`].
pub(crate) fn check_portable(timeline: &[MomentBody]) -> Result<(), BadRequest> {
    let check = |(index, moment): (usize, &MomentBody)| {
        moment.payload.check_portable().map_err(|refused| inside(&format!("timeline[{index}]"), refused))
    };
    timeline.iter().enumerate().try_for_each(check)
}

/// The kind of the member `timeline`: at least one instant, in ascending order.
pub(crate) fn timeline() -> impl ValueCodec<Value = Vec<MomentBody>> {
    let hint = "write a list, such as `[{\"at\": \"2030-01-01T00:00:00Z\", \"payload\": {\"price\": 9}}]`";
    list(object(), hint).of(1, MOMENTS_MAX).checked(rises)
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn rises(path: &str, moments: &Vec<MomentBody>) -> Result<(), BadRequest> {
    if !(1..=MOMENTS_MAX).contains(&moments.len()) {
        let what = format!("has {} instants, not from 1 to {MOMENTS_MAX}", moments.len());
        return Err(BadRequest::member(path, what, "use several tasks for a longer timeline"));
    }
    let Some(before) = moments.windows(2).position(|pair| pair[0].at_ms >= pair[1].at_ms) else {
        return Ok(());
    };
    let (path, at_ms) = (format!("{path}[{}]", before + 1), moments[before + 1].at_ms);
    let what = format!("{} is not after the instant before it", time::format(at_ms));
    Err(BadRequest::member(path, what, "write the instants in the order of time, each once"))
}

impl Mapped for MomentBody {
    type Members = MomentMembers;

    fn from_members(
        members: MomentMembers,
        _: Option<Self>,
        _: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let MomentMembers { at, at_ms, payload } = members;
        match at.or(at_ms) {
            Some(at_ms) => Ok(Self { at_ms, payload }),
            None => Err(BadRequest::member("at", "is missing", "say when, with `at` or `at_ms`")),
        }
    }

    fn to_members(&self) -> MomentMembers {
        MomentMembers { at: Some(self.at_ms), at_ms: None, payload: self.payload.clone() }
    }
}

role!(functions inner MomentBody);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<MomentBody>, BadRequest> {
        timeline().read(
            "timeline",
            serde_json::from_str(text).expect("JSON"),
            crate::declare::Source::Request,
        )
    }

    #[test]
    fn instants_rise_and_each_has_its_payload() {
        let found =
            read(r#"[{"at_ms":5,"payload":{"p":1}},{"at":"1970-01-01T00:00:01Z"}]"#).expect("a timeline");
        assert_eq!((found[0].at_ms, &found[0].payload.bytes[..]), (5, &br#"{"p":1}"#[..]));
        assert_eq!((found[1].at_ms, &found[1].payload.bytes[..]), (1_000, &b"null"[..]));
        let written = serde_json::to_string(&found).expect("JSON");
        assert_eq!(read(&written), Ok(found));
    }

    #[test]
    fn refusals_say_which_instant() {
        for (text, what) in [
            ("7", "`timeline`: expected an array, got the number 7"),
            ("[]", "`timeline`: has 0 instants, not from 1 to 1000"),
            ("[7]", "`timeline[0]`: expected an object, got the number 7"),
            ("[{}]", "`timeline[0].at`: is missing"),
            (r#"[{"delay":"1s"}]"#, "`timeline[0].delay`: is not a member of this request"),
            (
                r#"[{"at_ms":5},{"at_ms":5}]"#,
                "`timeline[1]`: 1970-01-01T00:00:00.005Z is not after the instant before it",
            ),
            (
                r#"[{"at_ms":5},{"at":"x"}]"#,
                "`timeline[1].at`: `x` is not an RFC 3339 time: expected 4 digits",
            ),
        ] {
            let refused = read(text).expect_err(text).to_string();
            assert!(refused.starts_with(what.split(": expected 4").next().expect("some")), "{refused}");
        }
    }
}
