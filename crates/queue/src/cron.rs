//! [`Cron`]: a cron expression in a time zone. Tells when the expression fires next, also when the clocks change.
//!
//! An expression has five fields (minute, hour, day of month, month, day of week) or six, seconds first. A field may have names of months
//! and weekdays, ranges, lists, steps, `L`, `W` and `#`, and a nickname such as `@daily` may replace all fields. Days follow cron's old
//! rule: if day of month and day of week are both given, a day has to match only one of them. With a `+` before the day of week, a day has
//! to match both.
//!
//! An expression names wall times. **When the clocks change**:
//! - For a skipped time, the expression fires once, at the jump: in the night in which 2:00 becomes 3:00, `30 2 * * *` fires at 3:00.
//! - For a time that comes twice, the expression fires once, the first time.
//!
//! Each [`Occurrence`] tells whether its time is skipped or comes twice. No function of this module reads a clock.

pub(crate) mod calendar;
mod count;
mod days;
mod grammar;
pub(crate) mod upcoming;
pub(crate) mod zone_versions;
mod zones;

use std::fmt;

use croner::Cron as Expression;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use thiserror::Error;
use tickwheel_engine::Timestamp;

/// A cron expression in a time zone.
///
/// ```
/// use tickwheel_queue::Timestamp;
/// use tickwheel_queue::cron::{ClockChange, Cron};
///
/// let nightly = Cron::parse("30 2 * * *", "America/New_York")?;
/// let after = Timestamp::from_ms(1_899_500_000_000).unwrap(); // 2030-03-12, after the clocks went forward
/// let next = nightly.next_after(after).expect("it fires every night");
/// assert_eq!(next.at.as_ms(), 1_899_527_400_000);
/// assert_eq!(next.change, ClockChange::None);
/// assert!(Cron::parse("0 0 30 2 *", "UTC").is_err(), "there is no 30th of February");
/// # Ok::<(), tickwheel_queue::cron::CronError>(())
/// ```
#[derive(Clone)]
pub struct Cron {
    text: String,
    expression: Expression,
    zone: TimeZone,
    zone_name: String,
}

/// Why a cron expression cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CronError {
    /// The text is no cron expression.
    #[error("`{text}` is no cron expression: {what}")]
    Text {
        /// The text.
        text: String,
        /// The parser's reason.
        what: String,
    },
    /// The expression never fires.
    #[error("`{text}` never fires: there is no such day or time")]
    Never {
        /// The text.
        text: String,
    },
    /// No zone has this name.
    #[error("`{name}` is no time zone")]
    Zone {
        /// The name.
        name: String,
    },
}

impl CronError {
    /// Advice for the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Text { .. } => {
                "write five fields, minute hour day month weekday, such as `0 2 * * *`, or six with the seconds first"
            }
            Self::Never { .. } => "write a day that every month, or some month, has",
            Self::Zone { .. } => "write an IANA name such as `America/New_York`, or `UTC`",
        }
    }
}

/// A time at which an expression fires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// The instant.
    pub at: Timestamp,
    /// How a change of the clocks affects this time.
    pub change: ClockChange,
    local: String,
}

impl Occurrence {
    /// Returns the wall time with its offset from UTC, such as `2030-03-10T03:00:00-04:00`.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }
}

/// The effect of a change of the clocks on an occurrence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClockChange {
    /// No change of the clocks affects this time.
    None,
    /// The time that the expression names is skipped. The expression fires at the jump instead.
    Skipped {
        /// The time that the expression names, such as `2030-03-10T02:30:00`.
        wanted: String,
    },
    /// The time comes twice. The expression fires the first time.
    Repeated,
}

impl fmt::Display for ClockChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Skipped { wanted } => {
                write!(f, "{wanted} does not exist: the clocks go forward; it runs once, at the jump")
            }
            Self::Repeated => {
                f.write_str("this time comes twice: the clocks go back; it runs once, the first time")
            }
        }
    }
}

/// The largest number of candidates that are looked at for one occurrence. A candidate whose time comes twice may have fired already, the
/// first time. The next candidate is then after all times that come twice with it.
const CANDIDATES_MAX: usize = 16;

impl Cron {
    /// Reads an expression for a zone of the IANA database. Each character has to have a meaning. In particular, no element of a list is
    /// empty, and a field of days that begins with `*` and goes on, such as `*/2`, stands beside no other field that names days: some crons
    /// read such a pair as both, and others as either.
    ///
    /// # Errors
    /// [`CronError`], also for an expression that never fires. The error names the field and the character.
    pub fn parse(text: &str, zone: &str) -> Result<Self, CronError> {
        grammar::check(text).map_err(|what| CronError::Text { text: text.to_owned(), what })?;
        Self::of_store(text, zone)
    }

    /// Reads the expression of a schedule that is stored. It may be of a version that accepted more than [`parse`](Self::parse), and keeps
    /// the meaning that it had.
    ///
    /// # Errors
    /// [`CronError`], also for an expression that never fires, as one with a field without a value.
    pub(crate) fn of_store(text: &str, zone: &str) -> Result<Self, CronError> {
        let missing = || CronError::Zone { name: zone.to_owned() };
        Self::in_zone(text, zone, zones::find(zone).ok_or_else(missing)?)
    }

    /// Reads the expression of a schedule that is stored, for a zone whose rules are known.
    ///
    /// # Errors
    /// [`CronError`], but not for the zone.
    pub(crate) fn in_zone(text: &str, name: &str, zone: TimeZone) -> Result<Self, CronError> {
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let refused = |what: String| CronError::Text { text: text.to_owned(), what };
        let expression = parser.parse(text).map_err(|error| refused(what_is_wrong(&error)))?;
        let cron = Self { text: text.to_owned(), expression, zone, zone_name: name.to_owned() };
        let pattern = &cron.expression.pattern;
        let has_a_time = [&pattern.seconds, &pattern.minutes, &pattern.hours]
            .iter()
            .all(|field| !field.values().is_empty());
        // Without this check, the search would walk through all years of the calendar.
        if has_a_time && days::has_a_day(pattern) {
            Ok(cron)
        } else {
            Err(CronError::Never { text: text.to_owned() })
        }
    }

    /// Checks whether the instants of a schedule that is stored can be found: its zone may be missing on this machine.
    ///
    /// # Errors
    /// [`CronError`]
    pub fn check_stored(text: &str, zone: &str) -> Result<(), CronError> {
        Self::of_store(text, zone).map(drop)
    }

    /// Returns the expression as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the offset of the zone from UTC at an instant (s). `None`: the calendar does not have the instant.
    pub(crate) fn offset_s(&self, at: Timestamp) -> Option<i32> {
        zones::offset_s(&self.zone, at)
    }

    /// Returns the name of the zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone_name
    }

    /// Returns the first occurrence after `after`. `None`: there is none before the calendar ends in the year 5000.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Occurrence> {
        let start = jiff::Timestamp::from_millisecond(after.as_ms()).ok()?;
        let local = self.zone.to_datetime(start);
        let mut local = local.with().subsec_nanosecond(0).build().ok()?;
        for _ in 0..CANDIDATES_MAX {
            // The search sees wall times as times in UTC, where each wall time comes once. The zone is applied to the time that the search
            // finds.
            let wall = local.to_zoned(TimeZone::UTC).ok()?;
            local = self.expression.find_next_occurrence(&wall, false).ok()?.datetime();
            let (at, change) = self.instant_of(local)?;
            if at > after {
                let zoned = jiff::Timestamp::from_millisecond(at.as_ms()).ok()?.to_zoned(self.zone.clone());
                let local = zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
                return Some(Occurrence { at, change, local });
            }
            local = self
                .end_of_repetition(local)?
                .checked_sub(jiff::SignedDuration::from_secs(1))
                .ok()?
                .max(local);
        }
        None
    }

    /// Returns the number of occurrences from `from` to `until`, both included. Cost: a step for each day and each change of the clocks between
    /// them, however often the expression fires.
    #[must_use]
    pub(crate) fn count(&self, from: Timestamp, until: Timestamp) -> u64 {
        count::count(&self.expression.pattern, &self.zone, from, until)
    }

    /// Returns the wall time from which the next search goes on. A time that comes twice has fired the first time, and so have all times
    /// that come twice together with it. So for such a time, the end of these times is returned. For any other time, the time itself is
    /// returned.
    fn end_of_repetition(&self, local: DateTime) -> Option<DateTime> {
        match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Fold { before, .. } => {
                let first = before.to_timestamp(local).ok()?;
                let back = self.zone.following(first).next()?.timestamp();
                Some(before.to_datetime(back))
            }
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => Some(local),
        }
    }

    /// Returns the instant at which the expression fires for this wall time, and how a change of the clocks affects it.
    fn instant_of(&self, local: DateTime) -> Option<(Timestamp, ClockChange)> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let (instant, change) = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset.to_timestamp(local).ok()?, ClockChange::None),
            AmbiguousOffset::Fold { before, .. } => (before.to_timestamp(local).ok()?, ClockChange::Repeated),
            AmbiguousOffset::Gap { after, .. } => {
                // With the offset after the jump, a time in the gap is an instant before the jump, and no other change of the clocks is
                // between the two.
                let before_it = after.to_timestamp(local).ok()?;
                let jump = self.zone.following(before_it).next()?.timestamp();
                (jump, ClockChange::Skipped { wanted: local.to_string() })
            }
        };
        Some((Timestamp::from_ms(instant.as_millisecond())?, change))
    }
}

/// Returns what is wrong with an expression: the parser's own words, if it has any, with a small first letter and without a full stop.
fn what_is_wrong(error: &croner::errors::CronError) -> String {
    use croner::errors::CronError as E;
    let what = match error {
        E::EmptyPattern => "there is nothing in it",
        E::InvalidPattern(what) | E::IllegalCharacters(what) | E::ComponentError(what) => what,
        other => return other.to_string(),
    };
    let what = what.trim_end_matches('.');
    let mut chars = what.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron(`{}` in {})", self.text, self.zone_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let instant: jiff::Timestamp = text.parse().expect(text);
        Timestamp::from_ms(instant.as_millisecond()).expect("after 1970")
    }

    /// Returns the next `count` occurrences: for each, the wall time and the change of the clocks.
    fn next(text: &str, zone: &str, after: &str, count: usize) -> Vec<(String, ClockChange)> {
        let cron = Cron::parse(text, zone).expect(text);
        let mut last = at(after);
        let mut found = Vec::new();
        for _ in 0..count {
            let next = cron.next_after(last).expect("it goes on");
            assert!(next.at > last, "{} is not after {last}", next.at);
            last = next.at;
            found.push((next.local().to_owned(), next.change));
        }
        found
    }

    fn walls(text: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        next(text, zone, after, count).into_iter().map(|(wall, _)| wall).collect()
    }

    #[test]
    fn a_time_that_is_skipped_runs_once_at_the_jump() {
        let nights = next("30 2 * * *", "America/New_York", "2030-03-09T00:00:00-05:00", 3);
        let skipped = ClockChange::Skipped { wanted: "2030-03-10T02:30:00".to_owned() };
        assert_eq!(
            nights,
            [
                ("2030-03-09T02:30:00-05:00".to_owned(), ClockChange::None),
                ("2030-03-10T03:00:00-04:00".to_owned(), skipped),
                ("2030-03-11T02:30:00-04:00".to_owned(), ClockChange::None),
            ]
        );
        // The time at which the gap begins is skipped. The time at which the gap ends is not skipped.
        let begins = next("0 2 10 3 *", "America/New_York", "2030-03-01T00:00:00Z", 1);
        assert_eq!(begins[0].0, "2030-03-10T03:00:00-04:00");
        assert!(matches!(begins[0].1, ClockChange::Skipped { .. }));
        let ends = next("0 3 10 3 *", "America/New_York", "2030-03-01T00:00:00Z", 1);
        assert_eq!(ends[0], ("2030-03-10T03:00:00-04:00".to_owned(), ClockChange::None));
    }

    #[test]
    fn many_times_in_a_gap_run_once_and_so_does_the_jump_itself() {
        let walls = walls("*/20 * * * *", "Europe/Berlin", "2030-03-31T01:30:00+01:00", 4);
        assert_eq!(
            walls,
            [
                "2030-03-31T01:40:00+01:00",
                "2030-03-31T03:00:00+02:00",
                "2030-03-31T03:20:00+02:00",
                "2030-03-31T03:40:00+02:00",
            ]
        );
    }

    #[test]
    fn a_time_that_comes_twice_runs_the_first_time() {
        let nights = next("30 1 * * *", "America/New_York", "2030-11-02T12:00:00Z", 2);
        assert_eq!(nights[0], ("2030-11-03T01:30:00-04:00".to_owned(), ClockChange::Repeated));
        assert_eq!(nights[1].0, "2030-11-04T01:30:00-05:00");
        // The hour after 1:00 comes twice. In the second one, 1:30 does not fire again.
        assert_eq!(
            walls("*/30 * * * *", "America/New_York", "2030-11-03T01:10:00-05:00", 1),
            ["2030-11-03T02:00:00-05:00"]
        );
        assert_eq!(
            walls("*/30 * * * *", "America/New_York", "2030-11-03T01:10:00-04:00", 2),
            ["2030-11-03T01:30:00-04:00", "2030-11-03T02:00:00-05:00"]
        );
    }

    /// The story: when an hour came twice, the search looked at a candidate for each second of the first hour, if the expression had
    /// seconds.
    #[test]
    fn what_comes_twice_is_passed_over_at_once() {
        for (text, next) in [
            ("* * * * * *", "2030-11-03T02:00:00-05:00"),
            ("59 59 1 * * *", "2030-11-04T01:59:59-05:00"),
            ("0 30 0-2 * * *", "2030-11-03T02:30:00-05:00"),
        ] {
            for after in
                ["2030-11-03T01:00:00-05:00", "2030-11-03T01:30:00.5-05:00", "2030-11-03T01:59:58-05:00"]
            {
                assert_eq!(walls(text, "America/New_York", after, 1), [next], "{text} after {after}");
            }
        }
        assert_eq!(
            walls("* * * * * *", "America/New_York", "2030-11-03T01:59:58-04:00", 2),
            ["2030-11-03T01:59:59-04:00", "2030-11-03T02:00:00-05:00"]
        );
        // In this zone, half an hour comes twice.
        assert_eq!(
            walls("* * * * * *", "Australia/Lord_Howe", "2030-04-07T01:31:00+10:30", 1),
            ["2030-04-07T02:00:00+10:30"]
        );
    }

    /// A leap day that is a Monday is rare: 28 years are between two of them, or 40 years if a leap year is left out in between.
    #[test]
    fn a_leap_day_that_is_a_monday() {
        assert_eq!(
            walls("0 0 29 2 +MON", "UTC", "2000-01-01T00:00:00Z", 6),
            [
                "2016-02-29T00:00:00+00:00",
                "2044-02-29T00:00:00+00:00",
                "2072-02-29T00:00:00+00:00",
                "2112-02-29T00:00:00+00:00",
                "2140-02-29T00:00:00+00:00",
                "2168-02-29T00:00:00+00:00",
            ]
        );
    }

    #[test]
    fn odd_zones() {
        // Lord Howe skips half an hour. Samoa skipped a whole day.
        let lord_howe = next("15 2 * * *", "Australia/Lord_Howe", "2030-10-05T00:00:00+10:30", 2);
        assert_eq!(lord_howe[1].0, "2030-10-06T02:30:00+11:00");
        let samoa = next("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00-10:00", 3);
        assert_eq!(
            samoa.iter().map(|(wall, _)| wall.as_str()).collect::<Vec<_>>(),
            ["2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"]
        );
    }

    #[test]
    fn leap_days_names_seconds_and_nicknames() {
        assert_eq!(
            walls("0 0 29 2 *", "UTC", "2028-03-01T00:00:00Z", 2),
            ["2032-02-29T00:00:00+00:00", "2036-02-29T00:00:00+00:00"]
        );
        assert_eq!(walls("0 9 * JAN MON#1", "UTC", "2030-01-01T00:00:00Z", 1), ["2030-01-07T09:00:00+00:00"]);
        assert_eq!(
            walls("*/15 * * * * *", "UTC", "2030-01-01T00:00:15.001Z", 2),
            ["2030-01-01T00:00:30+00:00", "2030-01-01T00:00:45+00:00"]
        );
        assert_eq!(walls("0 0 L * *", "UTC", "2030-02-01T00:00:00Z", 1), ["2030-02-28T00:00:00+00:00"]);
        assert_eq!(walls("@daily", "UTC", "2030-02-01T00:00:00Z", 1), ["2030-02-02T00:00:00+00:00"]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, zone, what) in [
            ("", "UTC", "`` is no cron expression: "),
            ("* * * *", "UTC", "`* * * *` is no cron expression: "),
            ("61 * * * *", "UTC", "`61 * * * *` is no cron expression: "),
            ("a * * * *", "UTC", "`a * * * *` is no cron expression: "),
            ("* * * * * * 2030", "UTC", "`* * * * * * 2030` is no cron expression: "),
            ("0 0 30 2 *", "UTC", "`0 0 30 2 *` never fires"),
            ("0 0 31 4,6 *", "Europe/Berlin", "`0 0 31 4,6 *` never fires"),
            ("59 59 23 31 2,4,6,9,11 *", "UTC", "`59 59 23 31 2,4,6,9,11 *` never fires"),
            ("0 0 1-7 * +MON#2", "UTC", "`0 0 1-7 * +MON#2` never fires"),
            ("* * * * *", "Mars/Olympus", "`Mars/Olympus` is no time zone"),
            ("* * * * *", "", "`` is no time zone"),
            ("* * * * *", "localtime", "`localtime` is no time zone"),
        ] {
            let refused = Cron::parse(text, zone).expect_err(text);
            assert!(refused.to_string().starts_with(what), "{refused}");
            assert!(!refused.hint().is_empty());
        }
    }

    /// Compares [`Cron::next_after`] with a walk over every minute of about a year, in zones that change their clocks in different ways.
    #[test]
    fn it_is_what_a_walk_over_every_minute_finds() {
        for zone in ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC"] {
            let tz = TimeZone::get(zone).expect(zone);
            let texts = ["30 2 * * *", "*/45 1-3 * 3,4,10,11 *", "15 1 * * SUN"];
            let crons = texts.map(|text| Cron::parse(text, zone).expect(text));
            let mut expected = texts.map(|_| Vec::new());
            let begin = at("2029-12-31T00:00:00Z");
            // The walk looks at each wall time up to this one once: at more than one minute after a jump, and at none that the clock repeats.
            let mut seen: Option<DateTime> = None;
            for minute in 1..370 * 24 * 60_u64 {
                let instant = begin.plus_ms(minute * 60_000).expect("it fits");
                let timestamp = jiff::Timestamp::from_millisecond(instant.as_ms()).expect("it fits");
                let wall = tz.to_datetime(timestamp);
                let mut each = seen.map_or(wall, |seen| seen + jiff::SignedDuration::from_mins(1));
                let mut fires = texts.map(|_| false);
                while each <= wall {
                    let zoned = each.to_zoned(TimeZone::UTC).expect("it fits");
                    for (fires, cron) in fires.iter_mut().zip(&crons) {
                        *fires |= cron.expression.is_time_matching(&zoned).expect("it can be told");
                    }
                    seen = Some(each);
                    each += jiff::SignedDuration::from_mins(1);
                }
                for (expected, _) in expected.iter_mut().zip(fires).filter(|(_, fires)| *fires) {
                    expected.push(instant);
                }
            }
            for ((text, cron), expected) in texts.iter().zip(&crons).zip(expected) {
                let (mut last, mut found) = (begin, Vec::new());
                while found.len() < expected.len() {
                    last = cron.next_after(last).expect("it goes on").at;
                    found.push(last);
                }
                assert_eq!(found, expected, "{text} in {zone}");
            }
        }
    }
}
