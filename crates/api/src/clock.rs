//! Moving the virtual clock.

use crate::bad_request::BadRequest;
use crate::json::{self, Members, Shape};
use crate::value;
use serde::{Deserialize, Serialize};

/// 36,525 days: the farthest a task can be due, so one call can reach any task.
const ADVANCE_MS_MAX: u64 = 36_525 * 86_400_000;

pub(crate) const SHAPE: Shape = Shape {
    known: &["by"],
    later: &["to"],
    elsewhere: &[("delay", "write `by`"), ("at", "say how far, not until when: `by`")],
};

/// The body of `POST /v1/clock/advance`: `{"by": "15d"}`. `by` is required and may be `0s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AdvanceBody {
    /// How far the clock moves, in ms, at most 100 years.
    #[serde(rename = "by", with = "crate::duration::text")]
    pub by_ms: u64,
}

impl AdvanceBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; unknown or repeated members; no `by`, or one that is no duration of 0 to
    /// 100 years.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &SHAPE)?;
        let raw = members.required("by", r#""by": "15d""#)?;
        Ok(Self { by_ms: value::duration_ms_within("by", raw, 0..=ADVANCE_MS_MAX)? })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

/// The answer of the virtual clock: `{"now": "2017-10-17T10:56:33.000Z"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NowBody {
    /// The server's time, in ms since 1970.
    #[serde(rename = "now", with = "crate::time::rfc3339")]
    pub now_ms: i64,
}
