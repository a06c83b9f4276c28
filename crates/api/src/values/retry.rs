//! The retry policy: how often and how soon a failed task is tried again.

use crate::declare::{
    Form, Mapped, RawMembers, Source, ValueCodec, body, duration, may, number, one_of, or_null, role, value,
};
use crate::text::bad_request::BadRequest;
use crate::text::duration;
use serde::Serializer;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// Maximum number of attempts in a policy. The number is far above any practical one and fits into all integer types in use.
pub const ATTEMPTS_MAX: u32 = 1_000_000;
/// The default of the first wait: 1 s.
const BASE_MS_DEFAULT: u64 = 1_000;
/// The default of the longest wait: 10 min.
const MAX_MS_DEFAULT: u64 = 600_000;
/// The default jitter of an exponential policy (percent of a wait).
const JITTER_PERCENT_DEFAULT: u8 = 50;

body! {
    /// A retry policy: the wait after a failed attempt, and the number of attempts after which the task is dead. A member that is `null` has its default.
    #[derive(Default)]
    pub(crate) struct RetryMembers: members "Retry" {
        /// Number of attempts after which the task is dead. Default: no limit.
        max_attempts: Option<Option<u32>> = may(or_null(number(1, ATTEMPTS_MAX.into())));
        /// `exponential`: the wait doubles with each attempt; `fixed`: it does not. Default: `exponential`.
        backoff: Option<Option<bool>> = may(or_null(one_of(&[("exponential", true), ("fixed", false)])));
        /// The first wait. Default: 1 s.
        base: Option<Option<u64>> = may(or_null(duration()));
        /// The longest wait. Default: 10 min, or `base` if that is longer.
        max: Option<Option<u64>> = may(or_null(duration()));
        /// The wait is shortened at random by at most this part of it, from 0 to 1. Default: 0.5, or 0 if the wait is `fixed`.
        jitter: Option<Option<u8>> = may(or_null(Jitter));
    }
    example: r#"{"max_attempts": 5}"#;
    elsewhere: &[("delay", "write `base`, the first wait"), ("attempts", "write `max_attempts`")];
}

/// A retry policy: `{"max_attempts": 5, "backoff": "exponential", "base": "1s", "max": "10m", "jitter": 0.5}`, every member optional.
///
/// After a nack without delay of attempt *n*, the task waits `base` (`fixed`) or `base` times 2^(n-1) (`exponential`, the default), at most `max`.
/// The wait is shortened by a random part of it, at most `jitter`. After a lease that runs out the task does not wait. After `max_attempts`
/// attempts, expired leases included, the task is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBody {
    /// Number of attempts after which the task is dead; `None`: no limit.
    pub max_attempts: Option<u32>,
    /// Whether the wait doubles with each attempt.
    pub exponential: bool,
    /// The first wait (ms).
    pub base_ms: u64,
    /// The longest wait (ms).
    pub max_ms: u64,
    /// Maximum random reduction of a wait (percent of the wait).
    pub jitter_percent: u8,
}

impl Default for RetryBody {
    fn default() -> Self {
        Self {
            max_attempts: None,
            exponential: true,
            base_ms: BASE_MS_DEFAULT,
            max_ms: MAX_MS_DEFAULT,
            jitter_percent: JITTER_PERCENT_DEFAULT,
        }
    }
}

impl Mapped for RetryBody {
    type Members = RetryMembers;

    /// Applies a patch: a named member replaces its value, `null` restores its default, and other members stay. Two defaults depend on other
    /// members, and are computed again: `max` depends on `base`, and `jitter` on `backoff`.
    fn from_members(
        members: RetryMembers,
        before: Option<Self>,
        _: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let (usual, before) = (Self::default(), before.unwrap_or_default());
        let exponential =
            members.backoff.map_or(before.exponential, |kind| kind.unwrap_or(usual.exponential));
        let base_ms = members.base.map_or(before.base_ms, |base| base.unwrap_or(usual.base_ms));
        // `max` counts as not named if it equals the default that follows from the first wait.
        let follows = before.max_ms == usual.max_ms.max(before.base_ms);
        let max_ms = match members.max {
            Some(Some(max_ms)) => max_ms,
            None if !follows => before.max_ms,
            _ => usual.max_ms.max(base_ms),
        };
        if max_ms < base_ms {
            let [max, base] = [max_ms, base_ms].map(duration::format);
            let what = format!("{max} is shorter than the first wait of {base}");
            return Err(BadRequest::member("max", what, "make `max` at least as long as `base`"));
        }
        let jitter_percent = match members.jitter {
            Some(Some(percent)) => percent,
            None if exponential == before.exponential => before.jitter_percent,
            _ if exponential => JITTER_PERCENT_DEFAULT,
            _ => 0,
        };
        let max_attempts = members.max_attempts.unwrap_or(before.max_attempts);
        Ok(Self { max_attempts, exponential, base_ms, max_ms, jitter_percent })
    }

    fn to_members(&self) -> RetryMembers {
        RetryMembers {
            max_attempts: self.max_attempts.map(Some),
            backoff: Some(Some(self.exponential)),
            base: Some(Some(self.base_ms)),
            max: Some(Some(self.max_ms)),
            jitter: Some(Some(self.jitter_percent)),
        }
    }
}

role!(functions inner RetryBody);

/// The jitter, in percent of a wait. On the wire: `true` is 50 %, `false` is 0 %, a number from 0 to 1 is that part.
struct Jitter;

impl ValueCodec for Jitter {
    type Value = u8;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<u8, BadRequest> {
        let part = match raw.get() {
            "true" => return Ok(JITTER_PERCENT_DEFAULT),
            "false" => return Ok(0),
            text => text.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part)),
        };
        // The part is rounded to a whole percent. The difference is too small to matter for a random wait.
        part.map(|part| (part * 100.0).round() as u8).ok_or_else(|| {
            let what = format!("expected true, false or a number from 0 to 1, got {}", value::kind(raw));
            let hint = "write the part of a wait that may be left out at random, such as `0.5`";
            BadRequest::member(path, what, hint)
        })
    }

    fn write<S: Serializer>(&self, percent: &u8, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(*percent) / 100.0)
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, { "type": "boolean" }] })
    }

    fn example(&self) -> String {
        "0.5".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RetryBody, BadRequest> {
        crate::declare::value_codec::object().read(
            "retry",
            serde_json::from_str(text).expect("JSON"),
            Source::Request,
        )
    }

    #[test]
    fn what_is_not_named_has_its_default() {
        assert_eq!(read("{}"), Ok(RetryBody::default()));
        let fixed = read(r#"{"max_attempts":3,"backoff":"fixed","base":"20m"}"#).expect("a policy");
        assert_eq!((fixed.max_attempts, fixed.exponential, fixed.jitter_percent), (Some(3), false, 0));
        assert_eq!(
            (fixed.base_ms, fixed.max_ms),
            (1_200_000, 1_200_000),
            "the longest wait is not below the first"
        );
        for (jitter, percent) in [("true", 50), ("false", 0), ("0", 0), ("0.25", 25), ("1", 100)] {
            assert_eq!(read(&format!("{{\"jitter\":{jitter}}}")).expect(jitter).jitter_percent, percent);
        }
    }

    #[test]
    fn refusals_say_which_member_of_which_object() {
        for (text, what) in [
            ("7", "`retry`: expected an object, got the number 7"),
            (r#"{"max_attempts":0}"#, "`retry.max_attempts`: 0 is not from 1 to 1000000"),
            (r#"{"backoff":"linear"}"#, "`retry.backoff`: `linear` is not known"),
            (r#"{"base":"2s","max":"1s"}"#, "`retry.max`: 1s is shorter than the first wait of 2s"),
            (
                r#"{"jitter":1.5}"#,
                "`retry.jitter`: expected true, false or a number from 0 to 1, got the number 1.5",
            ),
            (
                r#"{"jitter":"x"}"#,
                "`retry.jitter`: expected true, false or a number from 0 to 1, got a string",
            ),
            (r#"{"max_attempt":1}"#, "`retry.max_attempt`: is not a member of this request"),
        ] {
            assert_eq!(read(text).expect_err(text).to_string(), what);
        }
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        for text in ["{}", r#"{"max_attempts":7,"backoff":"fixed","base":"0s","max":"1d","jitter":0.33}"#] {
            let retry = read(text).expect(text);
            let written = serde_json::to_string(&retry).expect("JSON");
            assert_eq!(serde_json::from_str::<RetryBody>(&written).expect("ours"), retry, "{written}");
        }
    }
}
