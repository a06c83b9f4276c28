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

use crate::text::bad_request::{TextError, shown};
use jiff::civil;
use jiff::tz::Offset;

/// The last instant that is allowed: 9999-12-30T22:00:00.999Z, 26 hours before the year 10000, which is the limit of
/// `jiff`.
pub const INSTANT_MS_MAX: i64 = 253_402_207_200_999;

/// Maximum length of a text (bytes); a longer one is refused unread.
pub const INSTANT_BYTES_MAX: usize = 64;

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
/// # Ok::<(), tickwheel_api::TextError>(())
/// ```
pub fn parse(text: &str) -> Result<i64, TextError> {
    let refused = |what, hint| TextError::new(format!("`{}` {what}", shown(text)), hint);
    let malformed = |why| {
        let hint = "write for example `2017-10-02T11:26:33Z` or `2017-10-02T13:26:33.500+02:00`";
        refused(format!("is not an RFC 3339 time: {why}"), hint)
    };
    let beyond = || {
        let hint = "write a nearer time; a server refuses more than 100 years ahead";
        refused(format!("is {}", too_late()), hint)
    };
    if text.len() > INSTANT_BYTES_MAX {
        return Err(malformed("it is longer than 64 bytes"));
    }
    let mut rest = text.as_bytes();
    let [year, month, day, hour, minute, second] = date_time(&mut rest).map_err(malformed)?;
    let fraction_ms = if rest.starts_with(b".") { fraction_ms(&mut rest).map_err(malformed)? } else { 0 };
    if rest.is_empty() {
        return Err(refused("has no zone".to_owned(), "add `Z` for UTC, or an offset such as `+02:00`"));
    }
    let offset_minutes = offset(rest).map_err(malformed)?;

    let leap = second == 60;
    let two_digits = |number| i8::try_from(number).expect("two digits are below 100");
    let day = civil::Date::new(year, two_digits(month), two_digits(day))
        .map_err(|_| malformed("there is no such day"))?;
    let second = if leap { 59 } else { two_digits(second) };
    let time = civil::Time::new(two_digits(hour), two_digits(minute), second, 0)
        .map_err(|_| malformed("there is no such time of day"))?;
    // `civil` accepts the last day of the year 9999, but its instants are beyond the range of `Timestamp`.
    let utc = Offset::UTC.to_timestamp(day.to_datetime(time)).map_err(|_| beyond())?;
    let mut ms = utc.as_millisecond() - offset_minutes * 60_000;
    if leap {
        ms += 1_000;
        if ms % 86_400_000 != 0 {
            return Err(malformed("a leap second ends a day in UTC"));
        }
    } else {
        ms += fraction_ms;
    }
    if ms < 0 {
        return Err(refused("is before 1970".to_owned(), "write a time from 1970 on"));
    }
    if ms <= INSTANT_MS_MAX { Ok(ms) } else { Err(beyond()) }
}

/// The fields of the text before the fraction: the number of their digits and the byte that follows, each with the refusal of another text.
const FIELDS: [(usize, &str, &[u8], &str); 6] = [
    (4, "expected a year of four digits", b"-", "expected `-` after the year"),
    (2, "expected a month of two digits", b"-", "expected `-` after the month"),
    (2, "expected a day of two digits", b"Tt", "expected `T` between date and time"),
    (2, "expected an hour of two digits", b":", "expected `:` after the hour"),
    (2, "expected a minute of two digits", b":", "expected `:` and seconds after the minute"),
    (2, "expected a second of two digits", b"", ""),
];

/// Reads the fields off the front of the text.
fn date_time(rest: &mut &[u8]) -> Result<[i16; 6], &'static str> {
    let mut fields = [0; 6];
    for (field, (digits, expected, after, expected_after)) in fields.iter_mut().zip(FIELDS) {
        *field = number(rest, digits, expected)?;
        if !after.is_empty() {
            one_of(rest, after, expected_after)?;
        }
    }
    Ok(fields)
}

/// Reads the decimals of the second, rounded up to ms: 0 to 1,000.
fn fraction_ms(rest: &mut &[u8]) -> Result<i64, &'static str> {
    let digits = &rest[1..];
    let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return Err("expected digits after `.`");
    }
    let (digits, others) = digits.split_at(count);
    *rest = others;
    let digit = |place: usize| digits.get(place).map_or(0, |b| i64::from(b - b'0'));
    let whole_ms = digit(0) * 100 + digit(1) * 10 + digit(2);
    let beyond = digits.iter().skip(3).any(|b| *b != b'0');
    Ok(whole_ms + i64::from(beyond))
}

/// Reads `Z` or an offset such as `+02:00`, the end of the text. Returns the offset in minutes.
fn offset(mut rest: &[u8]) -> Result<i64, &'static str> {
    const EXPECTED: &str = "expected `Z` or an offset such as `+02:00` at its end";
    if matches!(rest, [b'Z' | b'z']) {
        return Ok(0);
    }
    let sign = if rest.starts_with(b"-") { -1 } else { 1 };
    one_of(&mut rest, b"+-", EXPECTED)?;
    let hours = number(&mut rest, 2, EXPECTED)?;
    one_of(&mut rest, b":", EXPECTED)?;
    let minutes = number(&mut rest, 2, EXPECTED)?;
    match (hours, minutes) {
        _ if !rest.is_empty() => Err(EXPECTED),
        (0..=23, 0..=59) => Ok(sign * (i64::from(hours) * 60 + i64::from(minutes))),
        _ => Err("there is no such offset"),
    }
}

fn number(rest: &mut &[u8], digits: usize, why: &'static str) -> Result<i16, &'static str> {
    let found = rest.split_at_checked(digits).filter(|(field, _)| field.iter().all(u8::is_ascii_digit));
    let (field, others) = found.ok_or(why)?;
    *rest = others;
    Ok(field.iter().fold(0, |number, b| number * 10 + i16::from(b - b'0')))
}

fn one_of(rest: &mut &[u8], allowed: &[u8], why: &'static str) -> Result<(), &'static str> {
    let (_, others) = rest.split_first().filter(|(first, _)| allowed.contains(first)).ok_or(why)?;
    *rest = others;
    Ok(())
}

/// Returns the words of a refusal of an instant after [`INSTANT_MS_MAX`].
///
/// ```
/// assert_eq!(tickwheel_api::time::too_late(), "after 9999-12-30T22:00:00.999Z, the last instant");
/// ```
#[must_use]
pub fn too_late() -> String {
    format!("after {}, the last instant", format(INSTANT_MS_MAX))
}

/// Writes an instant as RFC 3339 in UTC with three decimals: `2017-10-02T11:26:33.000Z`.
///
/// Some instants cannot be written: those before the year -9999, or after [`INSTANT_MS_MAX`]. The nearest possible instant is written
/// instead. No request can name such an instant.
///
/// ```
/// assert_eq!(tickwheel_api::time::format(1_506_943_593_000), "2017-10-02T11:26:33.000Z");
/// ```
pub fn format(ms: i64) -> String {
    format!("{:.3}", nearest(ms))
}

/// The nearest instant that can be written.
fn nearest(ms: i64) -> jiff::Timestamp {
    let last = if ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_millisecond(ms).unwrap_or(last)
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
        serializer.collect_str(&format_args!("{:.3}", super::nearest(*ms)))
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
            (
                "9999-12-31T23:59:59Z",
                "`9999-12-31T23:59:59Z` is after 9999-12-30T22:00:00.999Z, the last instant",
            ),
            (
                "9999-12-30T22:00:00.9991Z",
                "`9999-12-30T22:00:00.9991Z` is after 9999-12-30T22:00:00.999Z, the last instant",
            ),
            (
                "9999-12-30T22:00:00-00:01",
                "`9999-12-30T22:00:00-00:01` is after 9999-12-30T22:00:00.999Z, the last instant",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.to_string(), what);
            assert!(!error.hint().is_empty());
        }
        let is_malformed = |text: &str| {
            parse(text).is_err_and(|error| error.to_string().contains("` is not an RFC 3339 time: "))
        };
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
            assert!(is_malformed(text), "{text}");
        }
        assert!(is_malformed(&"2".repeat(1 << 20)));
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
