//! Counts the instants of a cron expression without a walk through them.

use croner::{CronPattern, Weekday};
use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tickwheel_engine::Timestamp;

/// The seconds of a day.
const DAY_S: i64 = 86_400;

/// The times of a day at which an expression fires.
struct Times {
    hours: Vec<u16>,
    minutes: Vec<u16>,
    seconds: Vec<u16>,
}

impl Times {
    fn of(pattern: &CronPattern) -> Self {
        let [hours, minutes, seconds] =
            [&pattern.hours, &pattern.minutes, &pattern.seconds].map(|field| field.values());
        Self { hours, minutes, seconds }
    }

    /// Returns how many of them are before the second `end` of the day.
    fn before(&self, end: i64) -> u64 {
        let (hour, minute, second) = (end / 3_600, end / 60 % 60, end % 60);
        let below = |of: &[u16], value| of.iter().filter(|&&one| i64::from(one) < value).count() as u64;
        let has = |of: &[u16], value| u64::from(of.iter().any(|&one| i64::from(one) == value));
        let (minutes, seconds) = (self.minutes.len() as u64, self.seconds.len() as u64);
        let of_minute = has(&self.minutes, minute) * below(&self.seconds, second);
        let of_hour = below(&self.minutes, minute) * seconds + of_minute;
        below(&self.hours, hour) * minutes * seconds + has(&self.hours, hour) * of_hour
    }
}

/// Returns the number of instants from `from` to `until`, both included. Cost: a step for each day, and a step for each change of the clocks.
///
/// Between two changes of the clocks each wall time comes once. After a change, the wall times that have come before do not count again. Of
/// the wall times that a change skips, all together are one instant, the change itself.
pub(super) fn count(pattern: &CronPattern, zone: &TimeZone, from: Timestamp, until: Timestamp) -> u64 {
    let unix = |seconds| jiff::Timestamp::from_second(seconds).ok();
    // An instant of an expression is a whole second.
    let (begin, end) = ((from.as_ms() + 999).div_euclid(1_000), until.as_ms().div_euclid(1_000) + 1);
    let offset_at = |seconds: i64| unix(seconds).map_or(0, |at| i64::from(zone.to_offset(at).seconds()));
    let times = Times::of(pattern);
    let walls = |from: i64, to: i64| of_walls(pattern, &times, from, to);
    // The changes of the clocks: the last one at `begin` or before, and those behind it.
    let last =
        unix(begin + 1).and_then(|at| zone.preceding(at).next()).map(|change| change.timestamp().as_second());
    let following = unix(begin).into_iter().flat_map(|at| zone.following(at));
    let changes = following.map(|change| change.timestamp().as_second()).take_while(|&at| at < end);
    let (mut total, mut part, mut change) = (0, begin, last);
    for next in changes.map(Some).chain([None]) {
        let to = next.unwrap_or(end);
        let offset = offset_at(part);
        // The wall time that the clock showed when it changed. It had shown all wall times before.
        let shown = change.map(|at| at + offset_at(at - 1));
        let first = shown.unwrap_or(i64::MIN).max(part + offset);
        total += walls(first, to + offset);
        // A change that skips wall times begins with the first wall time behind them.
        if let (Some(at), Some(shown)) = (change, shown)
            && at == part
            && shown < at + offset
            && walls(shown, at + offset) > 0
            && walls(at + offset, at + offset + 1) == 0
        {
            total += 1;
        }
        (part, change) = (to, next);
    }
    total
}

/// Returns how many wall times the expression has from `from` to before `to` (seconds of a clock without changes).
fn of_walls(pattern: &CronPattern, times: &Times, from: i64, to: i64) -> u64 {
    if from >= to {
        return 0;
    }
    let (first, last) = (from.div_euclid(DAY_S), (to - 1).div_euclid(DAY_S));
    let epoch = jiff::civil::date(1970, 1, 1);
    let Ok(mut date) = epoch.checked_add(SignedDuration::from_hours(24 * first)) else { return 0 };
    let mut total = 0;
    for day in first..=last {
        if fires_on(pattern, date) {
            let at = |wall: i64| times.before((wall - day * DAY_S).clamp(0, DAY_S));
            total += at(to) - at(from);
        }
        match date.tomorrow() {
            Ok(tomorrow) => date = tomorrow,
            Err(_) => break,
        }
    }
    total
}

fn fires_on(pattern: &CronPattern, date: Date) -> bool {
    let [month, day] = [date.month(), date.day()].map(|number| u32::from(number.unsigned_abs()));
    let weekday = Weekday::Sunday.shift(i32::from(date.weekday().to_sunday_zero_offset()));
    pattern.month_match(month).unwrap_or(false)
        && pattern.day_match(i32::from(date.year()), month, day, weekday).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::super::Cron;
    use super::*;

    fn at(text: &str) -> Timestamp {
        let instant: jiff::Timestamp = text.parse().expect(text);
        Timestamp::from_ms(instant.as_millisecond()).expect("after 1970")
    }

    #[test]
    fn the_number_is_what_a_walk_finds_also_when_the_clocks_change() {
        for (text, zone, begin, walked) in [
            ("*/7 1-3 * * *", "Europe/Berlin", "2030-03-29T11:00:00Z", 80),
            ("*/7 1-3 * * *", "Europe/Berlin", "2030-10-25T11:00:00Z", 80),
            ("30 2 * * *", "America/New_York", "2030-03-07T00:00:00Z", 6),
            ("0 2,3 * * *", "America/New_York", "2030-03-07T00:00:00Z", 12),
            ("59 59 1 * * *", "America/New_York", "2030-11-01T00:00:00Z", 6),
            ("*/13 * * * * *", "Europe/Berlin", "2030-10-27T00:10:00Z", 900),
            ("*/13 * * * * *", "Europe/Berlin", "2030-03-31T00:10:00Z", 900),
            ("15 1 * * *", "Australia/Lord_Howe", "2030-04-01T00:00:00Z", 12),
            ("*/15 1-2 * * *", "Australia/Lord_Howe", "2030-10-01T00:00:00Z", 60),
            ("0 9 L * MON#2", "Asia/Kolkata", "2030-01-01T00:00:00Z", 30),
            ("0 0 29 2 *", "UTC", "2030-01-01T00:00:00Z", 3),
            ("0 0 1W 1-6 +MON-FRI", "America/Sao_Paulo", "2030-01-01T00:00:00Z", 12),
            ("0 0 30 12 *", "Pacific/Apia", "2010-01-01T00:00:00Z", 4),
        ] {
            let cron = Cron::parse(text, zone).expect(text);
            let mut instants = vec![at(begin)];
            for _ in 0..walked {
                let last = *instants.last().expect("it has one");
                instants.push(cron.next_after(last).expect("it goes on").at);
            }
            instants.remove(0);
            let all = instants.len();
            for (nth, &first) in instants.iter().enumerate() {
                let last = instants[all - 1];
                assert_eq!(cron.count(first, last), (all - nth) as u64, "{text} in {zone} from {first}");
                let just_after = first.saturating_plus_ms(1);
                assert_eq!(
                    cron.count(just_after, last),
                    (all - nth - 1) as u64,
                    "{text} in {zone} after {first}"
                );
                assert_eq!(cron.count(instants[0], first), nth as u64 + 1, "{text} in {zone} until {first}");
                let before = Timestamp::from_ms(first.as_ms() - 1).expect("after 1970");
                assert_eq!(cron.count(instants[0], before), nth as u64, "{text} in {zone} before {first}");
            }
        }
    }

    /// The story: the count of missed instants would have been a walk through each second of the years in which a clock was wrong.
    #[test]
    fn many_instants_are_counted_without_a_walk() {
        let cron = Cron::parse("* * * * * *", "UTC").expect("an expression");
        let (from, until) = (at("1970-01-01T00:00:00Z"), at("2169-12-31T23:59:59Z"));
        assert_eq!(cron.count(from, until), until.ms_since(from) / 1_000 + 1);
    }
}
