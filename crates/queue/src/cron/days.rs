//! [`has_a_day`]: decides from the fields of a cron expression whether it fires at all.

use croner::{CronPattern, Weekday, time::days_in_month};

/// Whether there is a day on which the expression fires. The caller checks that it has a time of day. For an expression without a day, a search
/// would walk through all years of the calendar.
///
/// Two months of the same name and length that begin on the same weekday match on the same days. Within four hundred years every month
/// begins on each weekday, and so does a February of 29 days. So at most 91 months have to be checked: 13 kinds of month and 7 weekdays.
pub(super) fn has_a_day(pattern: &CronPattern) -> bool {
    let months = (1..=12).filter(|&month| pattern.month_match(month).unwrap_or(false));
    let years = |month| [2001, 2000].into_iter().take(if month == 2 { 2 } else { 1 });
    let mut kinds = months.flat_map(|month| years(month).map(move |year| (year, month)));
    kinds.any(|(year, month)| {
        (0..7).any(|first| has_a_day_in(pattern, year, month, Weekday::Sunday.shift(first)))
    })
}

/// Whether the expression fires in month `month` of year `year`, if the month began on weekday `first`.
fn has_a_day_in(pattern: &CronPattern, year: i32, month: u32, first: Weekday) -> bool {
    let weekday = |day: u32| first.shift(i32::try_from(day - 1).unwrap_or(0));
    (1..=days_in_month(year, month))
        .any(|day| pattern.day_match(year, month, day, weekday(day)).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use croner::parser::{CronParser, Seconds};
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    use super::*;

    /// A small random generator (xorshift) with a fixed seed, so that a failure can be repeated.
    struct Draw(u64);

    impl Draw {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        fn pick(&mut self, of: &[&'static str]) -> &'static str {
            of[usize::try_from(self.below(of.len() as u64)).expect("it is small")]
        }
    }

    const DAYS: [&str; 16] = [
        "*", "1", "28", "29", "30", "31", "29,30", "30-31", "L", "LW", "1W", "29W", "30W", "31W", "15",
        "8-14",
    ];
    const MONTHS: [&str; 9] = ["*", "2", "2", "4,6", "2,4,6,9,11", "1", "FEB,APR", "11", "2,12"];
    const WEEKDAYS: [&str; 12] = [
        "*", "MON", "SUN#1", "MON#5", "FRI#L", "SAT,SUN", "+MON", "+MON#1", "+SUN#5", "+SAT", "+TUE#L",
        "+MON-FRI",
    ];

    /// Compares [`has_a_day`] with a search through all years of the calendar, which [`has_a_day`] replaced.
    #[test]
    fn it_is_what_a_search_through_all_years_finds() {
        let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let begin = date(1970, 1, 1).at(0, 0, 0, 0).to_zoned(TimeZone::UTC).expect("it fits");
        let (mut fires, mut never) = (0, 0);
        for _ in 0..150 {
            let text = format!("0 0 {} {} {}", draw.pick(&DAYS), draw.pick(&MONTHS), draw.pick(&WEEKDAYS));
            let Ok(cron) = parser.parse(&text) else { continue };
            let found = cron.find_next_occurrence(&begin, true).is_ok();
            assert_eq!(has_a_day(&cron.pattern), found, "`{text}`");
            *(if found { &mut fires } else { &mut never }) += 1;
        }
        assert!(fires > 50 && never > 10, "{fires} fire and {never} do not: both have to be met");
    }
}
