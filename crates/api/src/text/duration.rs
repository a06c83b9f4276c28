//! Durations as people write them: `250ms`, `30m`, `1h30m`, `1.5s`, `15d`.
//!
//! A duration is one or more parts. Each part is a number and a unit, the largest unit comes first, and no unit occurs twice. The units
//! are `ms`, `s`, `m`, `h`, `d` (24 hours) and `w` (7 days). There is no unit below the millisecond and none above the week, because a
//! month has no fixed length. The last part may have decimals. The result is whole milliseconds, rounded **up**, so that nothing becomes
//! due early.
//!
//! | text | milliseconds | |
//! |---|---|---|
//! | `250ms` | 250 | |
//! | `1.5s` | 1,500 | decimals in the last part |
//! | `1h30m` | 5,400,000 | parts add up |
//! | `0.1ms` | 1 | rounded up |
//! | `0s` | 0 | zero needs its unit, too |
//! | `30` | refused | which unit? |
//! | `-5s` | refused | no delay is negative |
//! | `30m1h` | refused | the larger unit comes first |
//! | `1.5h30m` | refused | decimals before the last part |

use crate::text::bad_request::{TextError, shown};
use crate::text::portable::INTEGER_MAX;
use std::fmt;

/// Maximum duration: 2^53 ms (285,000 years), so that adding it to an instant cannot overflow.
pub const DURATION_MS_MAX: u64 = INTEGER_MAX;

/// Maximum length of a text (bytes); a longer one is refused unread. The longest sensible duration (`52w6d23h59m59s999.999999999ms`) has
/// 29 bytes.
pub const DURATION_BYTES_MAX: usize = 64;

/// Maximum number of decimals in the last part. Nine decimals of a second reach the nanosecond.
const DECIMALS_MAX: usize = 9;

/// The units, smallest first, with their length in milliseconds.
const UNITS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

const SHAPE: &str = "write a number and a unit, for example `250ms`, `30m`, `1h30m` or `15d`";

/// The refusal of `text`; `what` is what it has or is.
fn refused(text: &str, what: impl fmt::Display, hint: impl Into<String>) -> TextError {
    TextError::new(format!("`{}` {what}", shown(text)), hint)
}

/// Reads a duration as milliseconds, rounded up.
///
/// # Errors
///
/// Every text that is not exactly a duration; see the table of the module. Costs one pass; a long text is refused
/// unread.
///
/// # Examples
///
/// ```
/// use tickwheel_api::duration::parse;
///
/// assert_eq!(parse("1h30m")?, 5_400_000);
/// assert_eq!(parse("0.0001ms")?, 1, "never early");
///
/// let error = parse("30").unwrap_err();
/// assert_eq!(error.to_string(), "`30` has no unit after 30");
/// assert_eq!(error.hint(), "write `30ms`, `30s` or `30m`; the units are ms s m h d w");
/// # Ok::<(), tickwheel_api::TextError>(())
/// ```
pub fn parse(text: &str) -> Result<u64, TextError> {
    if text.is_empty() {
        return Err(TextError::new("is empty, not a duration", SHAPE));
    }
    if text.len() > DURATION_BYTES_MAX {
        let what = format!("has {} bytes; a duration has at most {DURATION_BYTES_MAX}", text.len());
        return Err(TextError::new(what, SHAPE));
    }
    if text.starts_with('-') {
        return Err(refused(text, "is negative", "write `0s` for now; no duration is negative"));
    }
    let too_large = || {
        let what = format!("is longer than {DURATION_MS_MAX} ms");
        refused(text, what, "write a shorter duration; a server refuses more than 100 years")
    };
    let mut rest = text;
    let mut total_ms: u128 = 0;
    let mut smallest = UNITS.len();
    while !rest.is_empty() {
        let part = Part::split(text, rest)?;
        if part.unit >= smallest {
            let what = format!("has `{}` out of order or twice", UNITS[part.unit].0);
            let hint = "write each unit once, the largest first, for example `1h30m`";
            return Err(refused(text, what, hint));
        }
        smallest = part.unit;
        if !part.decimals.is_empty() && !part.rest.is_empty() {
            let hint = "write decimals in the last part only, for example `1h1.5m`";
            return Err(refused(text, "has decimals before its last part", hint));
        }
        // The sum cannot wrap: it has at most six parts, and `Part::ms` gives far less than 2^125 for each.
        total_ms += part.ms().ok_or_else(too_large)?;
        rest = part.rest;
    }
    u64::try_from(total_ms).ok().filter(|ms| *ms <= DURATION_MS_MAX).ok_or_else(too_large)
}

/// Reads a duration that may be negative, such as `-1h`, as milliseconds. The amount without its sign is rounded up, so `-0.5ms` is -1.
///
/// # Errors
///
/// The errors of [`parse`] for the text after the sign.
pub fn parse_signed(text: &str) -> Result<i64, TextError> {
    let (length, sign) = text.strip_prefix('-').map_or((text, 1), |length| (length, -1));
    let ms = i64::try_from(parse(length)?).expect("the longest duration fits");
    Ok(sign * ms)
}

/// One number with its unit, and the rest of the text.
struct Part<'a> {
    whole: &'a str,
    decimals: &'a str,
    /// The index in [`UNITS`].
    unit: usize,
    rest: &'a str,
}

impl<'a> Part<'a> {
    fn split(text: &str, from: &'a str) -> Result<Self, TextError> {
        let no_number =
            || refused(text, format!("is not a duration: expected a number at `{}`", shown(from)), SHAPE);
        let (whole, after) = digits(from);
        if whole.is_empty() {
            return Err(no_number());
        }
        let (decimals, after) = match after.strip_prefix('.') {
            None => ("", after),
            Some(after) => match digits(after) {
                ("", _) => return Err(no_number()),
                (decimals, _) if decimals.len() > DECIMALS_MAX => {
                    let what = format!("has more than {DECIMALS_MAX} decimals");
                    return Err(refused(text, what, "leave out decimals; times are kept to the millisecond"));
                }
                found => found,
            },
        };
        let unit_bytes = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, rest) = after.split_at(unit_bytes);
        if unit.is_empty() {
            let number = &from[..from.len() - after.len()];
            let hint = format!("write `{number}ms`, `{number}s` or `{number}m`; the units are ms s m h d w");
            return Err(refused(text, format!("has no unit after {number}"), hint));
        }
        let unit = UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(|| {
            let hint = match unit.to_ascii_lowercase().as_str() {
                "us" | "µs" | "μs" | "ns" => "the smallest unit is `ms`; `0.5ms` is rounded up",
                "y" | "mo" | "month" | "months" | "year" | "years" => "write days, for example `365d`",
                _ => "the units are ms s m h d w, in lower case",
            };
            refused(text, format!("has the unknown unit `{}`", shown(unit)), hint)
        })?;
        Ok(Self { whole, decimals, unit, rest })
    }

    /// The part in milliseconds, rounded up; `None` if the number itself is beyond `u64`.
    fn ms(&self) -> Option<u128> {
        let unit_ms = u128::from(UNITS[self.unit].1);
        let whole: u64 = self.whole.parse().ok()?;
        let mut ms = u128::from(whole) * unit_ms;
        if !self.decimals.is_empty() {
            let decimals: u64 = self.decimals.parse().ok()?;
            let scale = 10_u128.pow(u32::try_from(self.decimals.len()).ok()?);
            ms += (u128::from(decimals) * unit_ms).div_ceil(scale);
        }
        Some(ms)
    }
}

/// Splits the ASCII digits at the front from the rest.
fn digits(text: &str) -> (&str, &str) {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(count)
}

/// Writes a duration so that [`parse`] reads the same number of milliseconds back: `1h30m`, `1.5s`, `250ms`,
/// `0s`.
///
/// Days are the largest unit, parts that are zero are left out, and milliseconds are decimals of the seconds
/// if there are seconds.
///
/// ```
/// use tickwheel_api::duration::format;
///
/// assert_eq!(format(5_400_000), "1h30m");
/// assert_eq!(format(61_250), "1m1.25s");
/// assert_eq!(format(43_200_001), "12h1ms");
/// assert_eq!(format(15 * 86_400_000), "15d");
/// ```
pub fn format(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    let mut rest_ms = ms;
    for (name, unit_ms) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)] {
        let count = rest_ms / unit_ms;
        rest_ms %= unit_ms;
        if count > 0 {
            out.push_str(&format!("{count}{name}"));
        }
    }
    let (seconds, milliseconds) = (rest_ms / 1_000, rest_ms % 1_000);
    if milliseconds > 0 && seconds == 0 {
        out.push_str(&format!("{milliseconds}ms"));
    } else if milliseconds > 0 {
        let decimals = format!("{milliseconds:03}");
        out.push_str(&format!("{seconds}.{}s", decimals.trim_end_matches('0')));
    } else if seconds > 0 {
        out.push_str(&format!("{seconds}s"));
    }
    out
}

/// Writes a duration that may be negative, as [`parse_signed`] reads it.
pub fn format_signed(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    format!("{sign}{}", format(ms.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn read() {
        for (text, ms) in [
            ("250ms", 250),
            ("30m", 1_800_000),
            ("15d", 1_296_000_000),
            ("1h30m", 5_400_000),
            ("2h", 7_200_000),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("0s", 0),
            ("0ms", 0),
            ("0.0s", 0),
            ("007s", 7_000),
            ("2w", 1_209_600_000),
            ("1w1d1h1m1s1ms", 694_861_001),
            ("1.0005s", 1_001),
            ("0.000000001ms", 1),
            ("0.1w", 60_480_000),
            ("9007199254740992ms", DURATION_MS_MAX),
            ("9007199254740991.5ms", DURATION_MS_MAX),
        ] {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn refused() {
        for (text, what) in [
            ("", "is empty, not a duration"),
            ("30", "`30` has no unit after 30"),
            ("1h30", "`1h30` has no unit after 30"),
            ("-5s", "`-5s` is negative"),
            ("+5s", "`+5s` is not a duration: expected a number at `+5s`"),
            ("s", "`s` is not a duration: expected a number at `s`"),
            (".5s", "`.5s` is not a duration: expected a number at `.5s`"),
            ("5.s", "`5.s` is not a duration: expected a number at `5.s`"),
            ("PT30M", "`PT30M` is not a duration: expected a number at `PT30M`"),
            ("30M", "`30M` has the unknown unit `M`"),
            ("30 m", "`30 m` has the unknown unit ` m`"),
            ("30m ", "`30m ` has the unknown unit `m `"),
            ("5us", "`5us` has the unknown unit `us`"),
            ("1e3s", "`1e3s` has the unknown unit `e`"),
            ("٣s", "`٣s` is not a duration: expected a number at `٣s`"),
            ("30m1h", "`30m1h` has `h` out of order or twice"),
            ("1h1h", "`1h1h` has `h` out of order or twice"),
            ("1.5h30m", "`1.5h30m` has decimals before its last part"),
            ("1.0000000001s", "`1.0000000001s` has more than 9 decimals"),
            ("9007199254740993ms", "`9007199254740993ms` is longer than 9007199254740992 ms"),
            ("9007199254740992.1ms", "`9007199254740992.1ms` is longer than 9007199254740992 ms"),
            ("18446744073709551615w", "`18446744073709551615w` is longer than 9007199254740992 ms"),
            ("99999999999999999999s", "`99999999999999999999s` is longer than 9007199254740992 ms"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.to_string(), what);
            assert!(!error.hint().is_empty());
        }
        let long = "1".repeat(DURATION_BYTES_MAX + 1);
        assert_eq!(parse(&long), Err(TextError::new("has 65 bytes; a duration has at most 64", SHAPE)));
    }

    #[test]
    fn hints_of_units() {
        assert_eq!(
            parse("5us").expect_err("no us").hint(),
            "the smallest unit is `ms`; `0.5ms` is rounded up"
        );
        assert_eq!(parse("1y").expect_err("no years").hint(), "write days, for example `365d`");
    }

    #[test]
    fn written() {
        for (ms, text) in [
            (0, "0s"),
            (1, "1ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_500, "1.5s"),
            (1_001, "1.001s"),
            (60_000, "1m"),
            (60_500, "1m500ms"),
            (86_400_000, "1d"),
            (1_296_000_000, "15d"),
            (u64::MAX, "213503982334d14h25m51.615s"),
        ] {
            assert_eq!(format(ms), text);
        }
    }

    proptest! {
        #[test]
        fn round_trip(ms in 0..=DURATION_MS_MAX) {
            prop_assert_eq!(parse(&format(ms)), Ok(ms));
        }

        /// The result is the smallest whole number of ms that is not below the written duration, so that nothing becomes due early.
        #[test]
        fn decimals_round_up(whole in 0_u64..1_000_000, decimals in "[0-9]{1,9}", unit in 0..UNITS.len()) {
            let (name, unit_ms) = UNITS[unit];
            let ms = u128::from(parse(&format!("{whole}.{decimals}{name}")).expect("in range"));
            let scale = 10_u128.pow(decimals.len() as u32);
            let exact = (u128::from(whole) * scale + decimals.parse::<u128>().expect("digits")) * u128::from(unit_ms);
            prop_assert!(ms * scale >= exact, "early");
            prop_assert!(ms == 0 || (ms - 1) * scale < exact, "later than needed");
        }

        #[test]
        fn never_panics(text in ".{0,80}", close in "[0-9a-z.µ -]{0,24}") {
            for text in [text, close] {
                if let Ok(ms) = parse(&text) {
                    prop_assert!(ms <= DURATION_MS_MAX);
                }
            }
        }
    }
}
