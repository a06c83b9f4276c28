//! Rates as people write them: `5/s`, `100/m`, `1/250ms`.

use std::fmt;
use std::str::FromStr;

use serde::Serializer;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use crate::declare::{Form, Source, ValueCodec, schema, value};
use crate::text::bad_request::{BadRequest, TextError, shown};
use crate::text::duration;

/// Maximum number of tasks in a rate.
pub const RATE_TASKS_MAX: u64 = 1_000_000_000;
/// Maximum period of a rate: one day.
pub const RATE_PER_MS_MAX: u64 = 86_400_000;

/// A number of deliveries in a period.
///
/// ```
/// use tickwheel_api::RateBody;
/// let rate: RateBody = "100/m".parse()?;
/// assert_eq!((rate.tasks, rate.per_ms), (100, 60_000));
/// assert_eq!(rate.to_string(), "100/m");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateBody {
    /// Number of deliveries, 1 to [`RATE_TASKS_MAX`].
    pub tasks: u64,
    /// Length of the period (ms), 1 ms to 1 d.
    pub per_ms: u64,
}

/// Units that alone stand for a period of one unit.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl FromStr for RateBody {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let refused = |what: String| {
            let hint = "write a number and a period, for example `5/s`, `100/m` or `1/250ms`";
            TextError::new(format!("`{}` is no rate: {what}", shown(text)), hint)
        };
        let Some((tasks, per)) = text.split_once('/') else {
            return Err(refused("there is no `/` in it".to_owned()));
        };
        let (tasks, per) = (tasks.trim(), per.trim());
        let digits = !tasks.is_empty() && tasks.bytes().all(|byte| byte.is_ascii_digit());
        let tasks: Option<u64> = if digits { tasks.parse().ok() } else { None };
        let tasks = tasks.filter(|tasks| (1..=RATE_TASKS_MAX).contains(tasks));
        let tasks = tasks.ok_or_else(|| {
            refused(format!("the part before the `/` must be a whole number from 1 to {RATE_TASKS_MAX}"))
        })?;
        let unit = UNITS.iter().find(|(name, _)| *name == per).map(|(_, ms)| *ms);
        let per_ms = match unit {
            Some(ms) => ms,
            None if per.is_empty() => return Err(refused("there is no period after the `/`".to_owned())),
            None => duration::parse(per).map_err(|error| refused(error.to_string()))?,
        };
        if !(1..=RATE_PER_MS_MAX).contains(&per_ms) {
            return Err(refused("the part after the `/` must be a duration from 1ms to 1d".to_owned()));
        }
        Ok(Self { tasks, per_ms })
    }
}

impl fmt::Display for RateBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, per_ms } = self;
        match UNITS.iter().find(|(_, ms)| ms == per_ms) {
            Some((name, _)) => write!(f, "{tasks}/{name}"),
            None => write!(f, "{tasks}/{}", duration::format(*per_ms)),
        }
    }
}

/// The kind of a rate.
pub(crate) struct Rate;

impl ValueCodec for Rate {
    type Value = RateBody;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<RateBody, BadRequest> {
        let text = value::text(path, raw, "5/s")?;
        text.parse().map_err(|error: TextError| error.of_member(path))
    }

    fn write<S: Serializer>(&self, rate: &RateBody, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        serializer.collect_str(rate)
    }

    /// A number and a period. The maximum of one day is in the description only.
    fn schema(&self) -> Json {
        let pattern = format!("^([1-9][0-9]{{0,8}}|1000000000)/(ms|s|m|h|d|{})$", schema::duration_cases());
        json!({ "type": "string", "pattern": pattern, "examples": ["5/s"] })
    }

    fn example(&self) -> String {
        "\"5/s\"".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, tasks, per_ms, written) in [
            ("5/s", 5, 1_000, "5/s"),
            ("1/250ms", 1, 250, "1/250ms"),
            ("100 / 1m", 100, 60_000, "100/m"),
            ("1000000000/d", RATE_TASKS_MAX, RATE_PER_MS_MAX, "1000000000/d"),
            ("2/1h30m", 2, 5_400_000, "2/1h30m"),
        ] {
            let rate: RateBody = text.parse().expect(text);
            assert_eq!((rate.tasks, rate.per_ms, rate.to_string().as_str()), (tasks, per_ms, written));
        }
    }

    #[test]
    fn what_is_no_rate_is_named() {
        for (text, what) in [
            ("5", "`5` is no rate: there is no `/` in it"),
            ("0/s", "`0/s` is no rate: the part before the `/` must be a whole number from 1 to 1000000000"),
            (
                "-1/s",
                "`-1/s` is no rate: the part before the `/` must be a whole number from 1 to 1000000000",
            ),
            (
                "0.5/s",
                "`0.5/s` is no rate: the part before the `/` must be a whole number from 1 to 1000000000",
            ),
            ("5/", "`5/` is no rate: there is no period after the `/`"),
            ("5/0s", "`5/0s` is no rate: the part after the `/` must be a duration from 1ms to 1d"),
            ("5/2w", "`5/2w` is no rate: the part after the `/` must be a duration from 1ms to 1d"),
            ("5/sec", "`5/sec` is no rate: `sec` is not a duration: expected a number at `sec`"),
        ] {
            assert_eq!(text.parse::<RateBody>().expect_err(text).to_string(), what);
        }
    }
}
