//! One task with many instants, and a payload for each.

use crate::bad_request::{BadRequest, inside};
use crate::due::Due;
use crate::json::{Members, Shape};
use crate::payload::PayloadBody;
use crate::{time, value};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A timeline has at most so many instants: a price plan of some years, by the day.
pub const MOMENTS_MAX: usize = 1_000;

pub(crate) const SHAPE: Shape = Shape {
    known: &["at", "at_ms", "payload", "payload_base64", "content_type"],
    later: &[],
    elsewhere: &[("delay", "the instants of a timeline are absolute: write `at` or `at_ms`")],
};

/// One instant of a timeline: `{"at": "2030-01-01T00:00:00Z" | "at_ms": 1893456000000, "payload": any JSON}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MomentBody {
    /// When the task is due, in ms since 1970.
    pub at_ms: i64,
    /// What the worker gets then; `null` if the request names nothing.
    pub payload: PayloadBody,
}

/// Refuses a timeline with a payload that not all readers take. See [`PayloadBody::check_portable`].
pub(crate) fn check_portable(timeline: &[MomentBody]) -> Result<(), BadRequest> {
    let check = |(index, moment): (usize, &MomentBody)| {
        moment.payload.check_portable().map_err(|refused| inside(&format!("timeline[{index}]"), refused))
    };
    timeline.iter().enumerate().try_for_each(check)
}

/// The timeline in the member `timeline` of a request: instants that rise, at least one.
pub(crate) fn timeline(raw: &RawValue) -> Result<Vec<MomentBody>, BadRequest> {
    const NAME: &str = "timeline";
    let hint = "write a list, such as `[{\"at\": \"2030-01-01T00:00:00Z\", \"payload\": {\"price\": 9}}]`";
    let rows = value::array(NAME, raw, hint)?;
    if !(1..=MOMENTS_MAX).contains(&rows.len()) {
        let what = format!("has {} instants, not from 1 to {MOMENTS_MAX}", rows.len());
        return Err(BadRequest::member(NAME, what, "a longer plan is several tasks"));
    }
    let mut moments: Vec<MomentBody> = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        let path = format!("{NAME}[{index}]");
        let moment = MomentBody::of(row).map_err(|refused| inside(&path, refused))?;
        if moments.last().is_some_and(|before| before.at_ms >= moment.at_ms) {
            let what = format!("{} is not after the instant before it", time::format(moment.at_ms));
            return Err(BadRequest::member(path, what, "write the instants in the order of time, each once"));
        }
        moments.push(moment);
    }
    Ok(moments)
}

impl MomentBody {
    fn of(raw: &RawValue) -> Result<Self, BadRequest> {
        let hint = "write for example `{\"at\": \"2030-01-01T00:00:00Z\"}`";
        let members = Members::of_value(raw, &SHAPE, hint)?;
        let payload = PayloadBody::of(&members)?.unwrap_or_default();
        match Due::of(&members)? {
            Some(Due::At(at_ms)) => Ok(Self { at_ms, payload }),
            _ => Err(BadRequest::member("at", "is missing", "say when, with `at` or `at_ms`")),
        }
    }
}

impl Serialize for MomentBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &time::format(self.at_ms))?;
        self.payload.write(&mut map)?;
        map.end()
    }
}

/// A moment as a line of NDJSON has it.
struct OnOneLine<'a>(&'a MomentBody);

impl Serialize for OnOneLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &time::format(self.0.at_ms))?;
        self.0.payload.write_on_one_line(&mut map)?;
        map.end()
    }
}

/// Writes the member `timeline`, for a line of NDJSON.
pub(crate) fn write_on_one_line<M: SerializeMap>(
    timeline: &[MomentBody],
    map: &mut M,
) -> Result<(), M::Error> {
    map.serialize_entry("timeline", &timeline.iter().map(OnOneLine).collect::<Vec<_>>())
}

impl<'de> Deserialize<'de> for MomentBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::of(&raw).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<MomentBody>, BadRequest> {
        timeline(serde_json::from_str(text).expect("JSON"))
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
