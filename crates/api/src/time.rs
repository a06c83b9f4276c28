//! Instants: RFC 3339 text on the wire, `i64` milliseconds since 1970-01-01T00:00:00Z inside.
//!
//! Reading is strict RFC 3339: a date, `T`, a time with seconds, and `Z` or a numeric offset. A fraction may
//! have any number of digits and is rounded **up** to the millisecond, so that nothing becomes due early.
//! Writing is always UTC with three decimals.
//!
//! | text | milliseconds | |
//! |---|---|---|
//! | `2017-10-02T11:26:33Z` | 1,506,943,593,000 | |
//! | `2017-10-02T13:26:33+02:00` | 1,506,943,593,000 | the same instant |
//! | `1970-01-01T00:00:00.0000001Z` | 1 | rounded up |
//! | `2016-12-31T23:59:60Z` | 1,483,228,800,000 | a leap second is read as the midnight after it, because Unix time has no leap seconds |
//! | `2017-10-02T11:26:33` | refused | which zone? |
//! | `1969-12-31T23:59:59Z` | refused | before 1970 |

use crate::bad_request::shown;
use jiff::civil;
use jiff::tz::Offset;
use thiserror::Error;

/// The last instant that is allowed: 9999-12-30T22:00:00.999Z, 26 hours before the year 10000, which is the limit of
/// `jiff`.
pub const INSTANT_MS_MAX: i64 = 253_402_207_200_999;

/// Maximum length of a text (bytes); a longer one is refused unread.
pub const INSTANT_BYTES_MAX: usize = 64;

/// Why a text is not an instant. [`hint`](Self::hint) says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The text is not RFC 3339, or there is no such day or time.
    #[error("`{text}` is not an RFC 3339 time: {why}")]
    Malformed {
        /// The text.
        text: String,
        /// Why the text was not understood.
        why: &'static str,
    },
    /// The text has no `Z` and no offset at its end.
    #[error("`{text}` has no zone")]
    NoZone {
        /// The text.
        text: String,
    },
    /// The instant is before 1970.
    #[error("`{text}` is before 1970")]
    TooEarly {
        /// The text.
        text: String,
    },
    /// The instant is after [`INSTANT_MS_MAX`].
    #[error("`{text}` is after the year 9999")]
    TooLate {
        /// The text.
        text: String,
    },
}

impl TimeError {
    /// The hint: what to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Malformed { .. } => {
                "write for example `2017-10-02T11:26:33Z` or `2017-10-02T13:26:33.500+02:00`"
            }
            Self::NoZone { .. } => "add `Z` for UTC, or an offset such as `+02:00`",
            Self::TooEarly { .. } => "write a time from 1970 on",
            Self::TooLate { .. } => "write a nearer time; a server refuses more than 100 years ahead",
        }
        .to_owned()
    }
}

/// Reads an RFC 3339 time as milliseconds since 1970-01-01T00:00:00Z, rounded up.
///
/// # Errors
///
/// Text that is not exactly RFC 3339, and instants outside `0..=INSTANT_MS_MAX`. A second `60` is accepted only
/// right before midnight UTC, where leap seconds are. Costs one pass; a long text is refused unread.
///
/// # Examples
///
/// ```
/// use tickwheel_api::time;
///
/// assert_eq!(time::parse("2017-10-02T11:26:33.000Z")?, 1_506_943_593_000);
/// assert_eq!(time::parse("1970-01-01T00:00:00.0000001Z")?, 1, "never early");
/// assert_eq!(time::parse("2017-10-02T11:26:33").unwrap_err().to_string(), "`2017-10-02T11:26:33` has no zone");
/// # Ok::<(), time::TimeError>(())
/// ```
pub fn parse(text: &str) -> Result<i64, TimeError> {
    let malformed = |why| TimeError::Malformed { text: shown(text), why };
    if text.len() > INSTANT_BYTES_MAX {
        return Err(malformed("it is longer than 64 bytes"));
    }
    let mut fields = Fields { rest: text.as_bytes() };
    let written = fields.date_time().map_err(malformed)?;
    if fields.rest.is_empty() {
        return Err(TimeError::NoZone { text: shown(text) });
    }
    let offset_minutes = fields.offset().map_err(malformed)?;

    let leap = written.second == 60;
    let day = civil::Date::new(written.year, written.month, written.day)
        .map_err(|_| malformed("there is no such day"))?;
    let second = if leap { 59 } else { written.second };
    let time = civil::Time::new(written.hour, written.minute, second, 0)
        .map_err(|_| malformed("there is no such time of day"))?;
    // `civil` accepts the last day of the year 9999, but its instants are beyond the range of `Timestamp`.
    let utc = Offset::UTC
        .to_timestamp(day.to_datetime(time))
        .map_err(|_| TimeError::TooLate { text: shown(text) })?;
    let mut ms = utc.as_millisecond() - offset_minutes * 60_000;
    if leap {
        ms += 1_000;
        if ms % 86_400_000 != 0 {
            return Err(malformed("a leap second ends a day in UTC"));
        }
    } else {
        ms += written.fraction_ms;
    }
    if ms < 0 {
        return Err(TimeError::TooEarly { text: shown(text) });
    }
    if ms > INSTANT_MS_MAX {
        return Err(TimeError::TooLate { text: shown(text) });
    }
    Ok(ms)
}

/// The fields of the text, without the offset.
struct Written {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    /// The fraction of the second (ms), rounded up: 0 to 1,000.
    fraction_ms: i64,
}

/// The rest of the text.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    fn date_time(&mut self) -> Result<Written, &'static str> {
        let year = self.number(4, "expected a year of four digits")?;
        self.one_of(b"-", "expected `-` after the year")?;
        let month = self.two_digits("expected a month of two digits")?;
        self.one_of(b"-", "expected `-` after the month")?;
        let day = self.two_digits("expected a day of two digits")?;
        self.one_of(b"Tt", "expected `T` between date and time")?;
        let hour = self.two_digits("expected an hour of two digits")?;
        self.one_of(b":", "expected `:` after the hour")?;
        let minute = self.two_digits("expected a minute of two digits")?;
        self.one_of(b":", "expected `:` and seconds after the minute")?;
        let second = self.two_digits("expected a second of two digits")?;
        let fraction_ms = if self.rest.first() == Some(&b'.') { self.fraction_ms()? } else { 0 };
        Ok(Written { year, month, day, hour, minute, second, fraction_ms })
    }

    /// Reads the decimals of the second, rounded up to ms.
    fn fraction_ms(&mut self) -> Result<i64, &'static str> {
        let digits = &self.rest[1..];
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 {
            return Err("expected digits after `.`");
        }
        let (digits, rest) = digits.split_at(count);
        self.rest = rest;
        let digit = |place: usize| digits.get(place).map_or(0, |b| i64::from(b - b'0'));
        let whole_ms = digit(0) * 100 + digit(1) * 10 + digit(2);
        let beyond = digits.iter().skip(3).any(|b| *b != b'0');
        Ok(whole_ms + i64::from(beyond))
    }

    /// Reads `Z` or an offset such as `+02:00` up to the end of the text. Returns the offset in minutes.
    fn offset(&mut self) -> Result<i64, &'static str> {
        const EXPECTED: &str = "expected `Z` or an offset such as `+02:00` at its end";
        let sign = match self.rest {
            [b'Z' | b'z'] => return Ok(0),
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return Err(EXPECTED),
        };
        self.rest = &self.rest[1..];
        let hours = self.two_digits(EXPECTED)?;
        self.one_of(b":", EXPECTED)?;
        let minutes = self.two_digits(EXPECTED)?;
        if !self.rest.is_empty() {
            return Err(EXPECTED);
        }
        if hours > 23 || minutes > 59 {
            return Err("there is no such offset");
        }
        Ok(sign * (i64::from(hours) * 60 + i64::from(minutes)))
    }

    fn number(&mut self, digits: usize, why: &'static str) -> Result<i16, &'static str> {
        let Some((field, rest)) = self.rest.split_at_checked(digits) else { return Err(why) };
        if !field.iter().all(u8::is_ascii_digit) {
            return Err(why);
        }
        self.rest = rest;
        Ok(field.iter().fold(0, |number, b| number * 10 + i16::from(b - b'0')))
    }

    fn two_digits(&mut self, why: &'static str) -> Result<i8, &'static str> {
        self.number(2, why).map(|number| i8::try_from(number).expect("two digits are below 100"))
    }

    fn one_of(&mut self, allowed: &[u8], why: &'static str) -> Result<(), &'static str> {
        match self.rest.split_first() {
            Some((first, rest)) if allowed.contains(first) => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(why),
        }
    }
}

/// Writes an instant as RFC 3339 in UTC with three decimals: `2017-10-02T11:26:33.000Z`.
///
/// An instant that cannot be written (before the year -9999, or after [`INSTANT_MS_MAX`]) is written as the nearest one that
/// can. No request can name such an instant.
///
/// ```
/// assert_eq!(tickwheel_api::time::format(1_506_943_593_000), "2017-10-02T11:26:33.000Z");
/// ```
pub fn format(ms: i64) -> String {
    with_text(ms, str::to_owned)
}

/// Lends the text of [`format`]. The instants that requests can name cost no allocation.
fn with_text<T>(ms: i64, take: impl FnOnce(&str) -> T) -> T {
    let plain = u64::try_from(ms).ok().filter(|_| ms <= INSTANT_MS_MAX).map(plain_text);
    if let Some(text) = plain.as_ref().and_then(|text| std::str::from_utf8(text).ok()) {
        return take(text);
    }
    let nearest = if ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let instant = jiff::Timestamp::from_millisecond(ms).unwrap_or(nearest);
    take(&format!("{instant:.3}"))
}

/// The text of an instant from 1970 to 9999.
fn plain_text(ms: u64) -> [u8; 24] {
    let (days, ms_of_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (end, digits, number) in [
        (4, 4, year),
        (7, 2, month),
        (10, 2, day),
        (13, 2, ms_of_day / 3_600_000),
        (16, 2, ms_of_day / 60_000 % 60),
        (19, 2, ms_of_day / 1_000 % 60),
        (23, 3, ms_of_day % 1_000),
    ] {
        let mut rest = number;
        for digit in text[end - digits..end].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
    text
}

/// The year, month and day of the Gregorian calendar for a number of days since 1970-01-01. The calculation lets years begin in March, so that a leap
/// day is the last day of its year. An era is four centuries, which are 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// The functions for `#[serde(with = "rfc3339")]`: milliseconds as `i64` in Rust, RFC 3339 text on the wire.
pub mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use std::borrow::Cow;

    /// Writes the text of [`format`](super::format).
    ///
    /// # Errors
    ///
    /// Only errors of the serializer.
    pub fn serialize<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        super::with_text(*ms, |text| serializer.serialize_str(text))
    }

    /// Reads a text with [`parse`](super::parse).
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](super::parse), and values that are not strings.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        super::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_instant_is_the_last_of_jiff() {
        assert_eq!(jiff::Timestamp::MAX.as_millisecond(), INSTANT_MS_MAX);
        assert_eq!(format(INSTANT_MS_MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(format(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert!(format(i64::MIN).starts_with("-009999-"));
    }

    #[test]
    fn read() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:00.001z", 1),
            ("2017-10-02T11:26:33.000Z", 1_506_943_593_000),
            ("2017-10-02T13:26:33+02:00", 1_506_943_593_000),
            ("2017-10-02T05:56:33-05:30", 1_506_943_593_000),
            ("1970-01-01T00:00:00-00:00", 0),
            ("1969-12-31T23:00:00-01:00", 0),
            ("2016-02-29T00:00:00Z", 1_456_704_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("2016-12-31T23:59:60.5Z", 1_483_228_800_000),
            ("2016-12-31T15:59:60-08:00", 1_483_228_800_000),
            ("2017-10-02T11:26:33.9991Z", 1_506_943_594_000),
            ("1970-01-01T00:00:00.0000000000000000000001Z", 1),
            ("1970-01-01T00:00:00.0010000000000000000000Z", 1),
            ("1969-12-31T23:59:59.9991Z", 0),
            ("9999-12-30T22:00:00.999Z", INSTANT_MS_MAX),
        ] {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn refused() {
        for (text, what) in [
            ("", "`` is not an RFC 3339 time: expected a year of four digits"),
            ("now", "`now` is not an RFC 3339 time: expected a year of four digits"),
            ("1506943593000", "`1506943593000` is not an RFC 3339 time: expected `-` after the year"),
            (
                "+012017-01-01T00:00:00Z",
                "`+012017-01-01T00:00:00Z` is not an RFC 3339 time: expected a year of four digits",
            ),
            ("2017-10-02", "`2017-10-02` is not an RFC 3339 time: expected `T` between date and time"),
            (
                "2017-10-02 11:26:33Z",
                "`2017-10-02 11:26:33Z` is not an RFC 3339 time: expected `T` between date and time",
            ),
            (
                "2017-10-02T11:26Z",
                "`2017-10-02T11:26Z` is not an RFC 3339 time: expected `:` and seconds after the minute",
            ),
            ("2017-10-02T11:26:33", "`2017-10-02T11:26:33` has no zone"),
            (
                "2017-10-02T11:26:33.Z",
                "`2017-10-02T11:26:33.Z` is not an RFC 3339 time: expected digits after `.`",
            ),
            ("2017-02-29T00:00:00Z", "`2017-02-29T00:00:00Z` is not an RFC 3339 time: there is no such day"),
            ("2017-13-01T00:00:00Z", "`2017-13-01T00:00:00Z` is not an RFC 3339 time: there is no such day"),
            (
                "2017-10-02T24:00:00Z",
                "`2017-10-02T24:00:00Z` is not an RFC 3339 time: there is no such time of day",
            ),
            (
                "2017-10-02T11:26:61Z",
                "`2017-10-02T11:26:61Z` is not an RFC 3339 time: there is no such time of day",
            ),
            (
                "2017-10-02T11:26:60Z",
                "`2017-10-02T11:26:60Z` is not an RFC 3339 time: a leap second ends a day in UTC",
            ),
            (
                "2017-10-02T11:26:33+24:00",
                "`2017-10-02T11:26:33+24:00` is not an RFC 3339 time: there is no such offset",
            ),
            ("1969-12-31T23:59:59.999Z", "`1969-12-31T23:59:59.999Z` is before 1970"),
            ("1970-01-01T00:00:00+00:01", "`1970-01-01T00:00:00+00:01` is before 1970"),
            ("0000-01-01T00:00:00Z", "`0000-01-01T00:00:00Z` is before 1970"),
            ("9999-12-31T23:59:59Z", "`9999-12-31T23:59:59Z` is after the year 9999"),
            ("9999-12-30T22:00:00.9991Z", "`9999-12-30T22:00:00.9991Z` is after the year 9999"),
            ("9999-12-30T22:00:00-00:01", "`9999-12-30T22:00:00-00:01` is after the year 9999"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.to_string(), what);
            assert!(!error.hint().is_empty());
        }
        for text in [
            "2017-10-02T11:26:33Z ",
            "2017-10-02T11:26:33ZZ",
            "2017-10-02T11:26:33+0200",
            "2017-10-02T11:26:33+02",
            "2017-10-02T11:26:33Z[UTC]",
            "2017-10-02T11:26:33,5Z",
            "20171002T112633Z",
            "2017-10-02T1é:26:33Z",
        ] {
            assert!(matches!(parse(text), Err(TimeError::Malformed { .. })), "{text}");
        }
        assert!(matches!(parse(&"2".repeat(1 << 20)), Err(TimeError::Malformed { .. })));
    }

    proptest! {
        #[test]
        fn round_trip(ms in 0..=INSTANT_MS_MAX) {
            prop_assert_eq!(parse(&format(ms)), Ok(ms));
        }

        #[test]
        fn written_as_jiff_writes(ms in 0..=INSTANT_MS_MAX) {
            let instant = jiff::Timestamp::from_millisecond(ms).expect("in range");
            prop_assert_eq!(format(ms), format!("{instant:.3}"));
        }

        #[test]
        fn offsets_name_the_same_instant(ms in 100_000_000..=INSTANT_MS_MAX - 100_000_000, minutes in -1439_i64..=1439) {
            let local = format(ms + minutes * 60_000);
            let sign = if minutes < 0 { '-' } else { '+' };
            let offset = format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
            prop_assert_eq!(parse(&local.replace('Z', &offset)), Ok(ms));
        }

        /// The result is the smallest whole ms that is not before the written instant, so that nothing becomes due early.
        #[test]
        fn fractions_round_up(seconds in 0..253_402_207_199_i64, fraction in "[0-9]{1,20}") {
            let text = format(seconds * 1_000).replace(".000Z", &format!(".{fraction}Z"));
            let ms = parse(&text).expect("in range");
            let scale = 10_u128.pow(fraction.len() as u32);
            let exact = (seconds as u128 * scale + fraction.parse::<u128>().expect("digits")) * 1_000;
            prop_assert!(ms as u128 * scale >= exact, "early");
            prop_assert!(ms == 0 || (ms as u128 - 1) * scale < exact, "later than needed");
        }

        #[test]
        fn never_panics(text in ".{0,80}", close in "[0-9TZtz:.+ -]{0,40}") {
            for text in [text, close] {
                if let Ok(ms) = parse(&text) {
                    prop_assert!((0..=INSTANT_MS_MAX).contains(&ms));
                }
            }
        }
    }
}
