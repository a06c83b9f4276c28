//! The list of delay levels: numbered delays, for producers that name a level and not a duration.

use std::fmt;
use std::str::FromStr;

use crate::text::bad_request::{BadRequest, TextError, shown};
use crate::text::duration;
use crate::values::due::LEVELS_MAX;

/// The delays of the levels (ms). Level 1 is the first one.
///
/// The default is the list of RocketMQ: `1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h`.
///
/// ```
/// use tickwheel_api::Levels;
/// let levels: Levels = "1s 30s 5m".parse()?;
/// assert_eq!(levels.delay_ms(2)?, 30_000);
/// assert_eq!(levels.delay_ms(4).unwrap_err().to_string(), "`level`: 4 is not from 1 to 3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels(Vec<u64>);

impl Default for Levels {
    fn default() -> Self {
        const MINUTE_MS: u64 = 60_000;
        let seconds = [1, 5, 10, 30].map(|s| s * 1_000);
        let minutes = (1..=10).chain([20, 30, 60, 120]).map(|m| m * MINUTE_MS);
        Self(seconds.into_iter().chain(minutes).collect())
    }
}

impl Levels {
    /// The delay of this level (ms).
    ///
    /// # Errors
    ///
    /// Level 0, or a level beyond the end of the list. Such a level is refused, and not replaced by
    /// the nearest one.
    pub fn delay_ms(&self, level: u32) -> Result<u64, BadRequest> {
        let index = usize::try_from(level).ok().and_then(|level| level.checked_sub(1));
        index.and_then(|index| self.0.get(index).copied()).ok_or_else(|| {
            let what = format!("{level} is not from 1 to {}", self.0.len());
            BadRequest::member("level", what, format!("the levels of this server are `{self}`"))
        })
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delays: Vec<String> = self.0.iter().map(|&ms| duration::format(ms)).collect();
        f.write_str(&delays.join(" "))
    }
}

impl FromStr for Levels {
    type Err = TextError;

    /// Reads durations with spaces or commas between them, such as `1s 5s 10s`.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let refused =
            |what| TextError::new(what, "write durations, for example `1s 30s 5m`; level 1 is the first one");
        let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
        let mut delays = Vec::new();
        for (index, word) in words.enumerate() {
            let no_duration = |error| refused(format!("level {} is no duration: {error}", index + 1));
            delays.push(duration::parse(word).map_err(no_duration)?);
        }
        match delays.len() {
            0 => Err(refused(format!("`{}` has no level at all", shown(text)))),
            count if count > LEVELS_MAX as usize => {
                Err(refused(format!("{count} levels are more than {LEVELS_MAX}")))
            }
            _ => Ok(Self(delays)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_list() {
        let levels = Levels::default();
        assert_eq!(levels.to_string(), "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h");
        assert_eq!(levels.to_string().parse(), Ok(levels.clone()));
        for (level, ms) in [(1, 1_000), (3, 10_000), (4, 30_000), (5, 60_000), (18, 7_200_000)] {
            assert_eq!(levels.delay_ms(level), Ok(ms));
        }
        for level in [0, 19, u32::MAX] {
            let refused = levels.delay_ms(level).expect_err("no such level");
            assert_eq!(refused.what, format!("{level} is not from 1 to 18"));
            assert!(refused.hint.contains("1s 5s 10s"), "{}", refused.hint);
        }
    }

    #[test]
    fn lists_that_do_not_parse() {
        for (text, what) in [
            ("", "`` has no level at all"),
            (" , ", "` , ` has no level at all"),
            ("1s 5 10s", "level 2 is no duration: `5` has no unit after 5"),
            ("1s,-5s", "level 2 is no duration: `-5s` is negative"),
        ] {
            assert_eq!(text.parse::<Levels>().expect_err(text).to_string(), what);
        }
        assert!("1s ".repeat(1_001).parse::<Levels>().is_err());
    }
}
