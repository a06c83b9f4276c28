//! How often and how soon a task that failed is tried again.

use crate::bad_request::{BadRequest, inside};
use crate::json::{Members, Shape};
use crate::{duration, value};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The most attempts that a policy may allow: far beyond what anybody waits for, and it fits everywhere.
pub const ATTEMPTS_MAX: u32 = 1_000_000;
/// The first wait of a policy that names none: 1 s.
const BASE_MS_DEFAULT: u64 = 1_000;
/// The longest wait of a policy that names none: 10 min.
const MAX_MS_DEFAULT: u64 = 600_000;
/// What chance may leave out of a doubling wait unless the policy says otherwise.
const JITTER_PERCENT_DEFAULT: u8 = 50;

pub(crate) const SHAPE: Shape = Shape {
    known: &["max_attempts", "backoff", "base", "max", "jitter"],
    later: &[],
    elsewhere: &[("delay", "write `base`, the first wait"), ("attempts", "write `max_attempts`")],
};

/// A retry policy: `{"max_attempts": 5, "backoff": "exponential", "base": "1s", "max": "10m", "jitter": 0.5}`, every member optional.
///
/// After the *n*th attempt a nack without delay waits `base` (`fixed`) or `base` times 2^(n-1) (`exponential`, the default), at most `max`,
/// less up to `jitter` of it by chance. A lease that runs out does not wait. After `max_attempts` attempts, expired leases among them, the
/// task is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBody {
    /// Dead after so many attempts; `None`: tried for ever.
    pub max_attempts: Option<u32>,
    /// Whether the wait doubles with each attempt.
    pub exponential: bool,
    /// The first wait, ms.
    pub base_ms: u64,
    /// The longest wait, ms.
    pub max_ms: u64,
    /// Up to so much of a wait is left out by chance, percent.
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

impl RetryBody {
    /// Reads the object that stands in the member `path`.
    pub(crate) fn of(path: &str, raw: &RawValue) -> Result<Self, BadRequest> {
        Self::read(raw).map_err(|refused| inside(path, refused))
    }

    fn read(raw: &RawValue) -> Result<Self, BadRequest> {
        Self::default().over(raw)
    }

    /// This policy after a patch in the member `path`: what it names replaces what was, `null` gives the default back, the rest stays. What follows
    /// from others where nobody names it still does: `max` from `base`, and `jitter` from `backoff`, of which each has its own.
    pub(crate) fn patched(self, path: &str, raw: &RawValue) -> Result<Self, BadRequest> {
        self.over(raw).map_err(|refused| inside(path, refused))
    }

    fn over(self, raw: &RawValue) -> Result<Self, BadRequest> {
        let hint = "write an object, for example `{\"max_attempts\": 5}`";
        let members = Members::of_value(raw, &SHAPE, hint)?;
        let usual = Self::default();
        let max_attempts = named(&members, "max_attempts", |raw| {
            let max = value::integer("max_attempts", raw, 1..=u64::from(ATTEMPTS_MAX))?;
            Ok(u32::try_from(max).expect("it is within the limit"))
        })?;
        let kind = named(&members, "backoff", |raw| {
            value::word("backoff", raw, &[("exponential", true), ("fixed", false)])
        })?;
        let base = named(&members, "base", |raw| value::duration_ms("base", raw))?;
        let max = named(&members, "max", |raw| value::duration_ms("max", raw))?;
        let part = named(&members, "jitter", jitter)?;
        let exponential = kind.map_or(self.exponential, |kind| kind.unwrap_or(usual.exponential));
        let base_ms = base.map_or(self.base_ms, |base| base.unwrap_or(usual.base_ms));
        // Nobody has named it if it is what follows from the first wait.
        let follows = self.max_ms == usual.max_ms.max(self.base_ms);
        let max_ms = match max {
            Some(Some(max_ms)) => max_ms,
            None if !follows => self.max_ms,
            _ => usual.max_ms.max(base_ms),
        };
        if max_ms < base_ms {
            let [max, base] = [max_ms, base_ms].map(duration::format);
            let what = format!("{max} is shorter than the first wait of {base}");
            return Err(BadRequest::member("max", what, "make `max` at least as long as `base`"));
        }
        let jitter_percent = match part {
            Some(Some(percent)) => percent,
            None if exponential == self.exponential => self.jitter_percent,
            _ if exponential => JITTER_PERCENT_DEFAULT,
            _ => 0,
        };
        let max_attempts = max_attempts.unwrap_or(self.max_attempts);
        Ok(Self { max_attempts, exponential, base_ms, max_ms, jitter_percent })
    }
}

/// A member: not there, `null`, or what it says.
fn named<T>(
    members: &Members<'_>,
    name: &str,
    read: impl FnOnce(&RawValue) -> Result<T, BadRequest>,
) -> Result<Option<Option<T>>, BadRequest> {
    members.get(name).map(|raw| value::or_null(raw, read)).transpose()
}

/// `true` is half, `false` none, a number from 0 to 1 that part.
fn jitter(raw: &RawValue) -> Result<u8, BadRequest> {
    let part = match raw.get() {
        "true" => return Ok(JITTER_PERCENT_DEFAULT),
        "false" => return Ok(0),
        text => text.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part)),
    };
    // Rounded to a whole percent: nobody can tell the difference by waiting.
    part.map(|part| (part * 100.0).round() as u8).ok_or_else(|| {
        let what = format!("expected true, false or a number from 0 to 1, got {}", value::kind(raw));
        BadRequest::member(
            "jitter",
            what,
            "write the part of a wait that chance may leave out, such as `0.5`",
        )
    })
}

impl Serialize for RetryBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(max) = self.max_attempts {
            map.serialize_entry("max_attempts", &max)?;
        }
        map.serialize_entry("backoff", if self.exponential { "exponential" } else { "fixed" })?;
        map.serialize_entry("base", &duration::format(self.base_ms))?;
        map.serialize_entry("max", &duration::format(self.max_ms))?;
        map.serialize_entry("jitter", &(f64::from(self.jitter_percent) / 100.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for RetryBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::of("retry", &raw).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RetryBody, BadRequest> {
        RetryBody::of("retry", serde_json::from_str(text).expect("JSON"))
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
