//! [`check`]: whether each character of a cron expression has the meaning that a reader gives it.
//!
//! The parser behind this check passes over what it does not know: an empty element, a month's name in the field of the minutes, a step beyond
//! the end of its field. Such an expression fires at other times than it says, or has a field without a value.

use std::fmt;

const NICKNAMES: [&str; 6] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"];

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The subject of a field.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Time,
    Day,
    Month,
    Weekday,
}

/// A field: its name, its values, and what it may contain.
struct Field {
    name: &'static str,
    kind: Kind,
    first: u32,
    last: u32,
}

const FIELDS: [Field; 6] = [
    Field { name: "second", kind: Kind::Time, first: 0, last: 59 },
    Field { name: "minute", kind: Kind::Time, first: 0, last: 59 },
    Field { name: "hour", kind: Kind::Time, first: 0, last: 23 },
    Field { name: "day of month", kind: Kind::Day, first: 1, last: 31 },
    Field { name: "month", kind: Kind::Month, first: 1, last: 12 },
    Field { name: "weekday", kind: Kind::Weekday, first: 0, last: 7 },
];

impl Field {
    fn names(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Time | Kind::Day => &[],
            Kind::Month => &MONTHS,
            Kind::Weekday => &WEEKDAYS,
        }
    }
}

/// A part of an expression, and where it begins (characters from 1).
#[derive(Copy, Clone)]
struct Part<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Part<'a> {
    fn split_once(self, by: char) -> Option<(Self, Self)> {
        let (left, right) = self.text.split_once(by)?;
        Some((Part { text: left, ..self }, Part { text: right, at: self.at + left.chars().count() + 1 }))
    }

    /// The part without its first characters, which are `begin`.
    fn strip_prefix(self, begin: &str) -> Option<Self> {
        Some(Part { text: self.text.strip_prefix(begin)?, at: self.at + begin.chars().count() })
    }

    fn strip_suffix(self, end: &str) -> Option<Self> {
        Some(Part { text: self.text.strip_suffix(end)?, ..self })
    }

    /// The parts between characters of this kind.
    fn split(self, by: impl Fn(char) -> bool) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut at = self.at;
        for text in self.text.split(&by) {
            parts.push(Part { text, at });
            at += text.chars().count() + 1;
        }
        parts
    }

    fn refuse(self, what: impl fmt::Display) -> Refused {
        Refused { at: self.at, what: what.to_string() }
    }
}

/// A mistake, and its place.
struct Refused {
    at: usize,
    what: String,
}

/// Checks an expression. The error names the field and the character.
pub(super) fn check(text: &str) -> Result<(), String> {
    let upper = text.to_ascii_uppercase();
    let whole = Part { text: &upper, at: 1 };
    if upper.contains('@') {
        let lower = text.trim().to_ascii_lowercase();
        return match lower.as_str() {
            name if NICKNAMES.contains(&name) => Ok(()),
            "@midnight" => Err("there is no `@midnight`; write `@daily`".to_owned()),
            "@reboot" => Err("there is no `@reboot`: a schedule has no machine that starts".to_owned()),
            _ => Err(format!("a nickname stands alone and is one of {}", NICKNAMES.join(", "))),
        };
    }
    let parts: Vec<_> =
        whole.split(char::is_whitespace).into_iter().filter(|part| !part.text.is_empty()).collect();
    let fields = match parts.len() {
        0 => return Err("there is nothing in it".to_owned()),
        5 => &FIELDS[1..],
        6 => &FIELDS[..],
        count => return Err(format!("it has {count} fields, and not five or six")),
    };
    for (field, part) in fields.iter().zip(&parts) {
        field
            .check(*part)
            .map_err(|Refused { at, what }| format!("{}, character {at}: {what}", field.name))?;
    }
    let [.., day, _, weekday] = parts.as_slice() else { unreachable!("at least five") };
    check_days(*day, *weekday)
        .map_err(|(name, Refused { at, what })| format!("{name}, character {at}: {what}"))
}

/// Refuses a field of days that begins with `*` beside one that names days. Vixie's cron, Debian's and cronie's read such a pair as both,
/// Kubernetes' and Go's as either.
fn check_days(day: Part<'_>, weekday: Part<'_>) -> Result<(), (&'static str, Refused)> {
    if weekday.text.starts_with('+') {
        return Ok(());
    }
    let is_any = |part: Part<'_>| part.text == "*" || part.text == "?";
    let begins = |part: Part<'_>| part.text.starts_with(['*', '?']);
    if is_any(day) || is_any(weekday) {
        return Ok(());
    }
    let said = |part: Part<'_>, either: &str| {
        part.refuse(format_args!(
            "vixie's cron reads this as both, Kubernetes as either: write `+{}` for both, {either} for either",
            weekday.text
        ))
    };
    // For all of them, this is every day, and the parser behind would read it as a field that names days.
    if let Some((name, part)) = [("day of month", day), ("weekday", weekday)]
        .into_iter()
        .find(|(_, part)| ["*/1", "?/1"].contains(&part.text))
    {
        return Err((name, part.refuse("`*/1` is every day: write `*`")));
    }
    let step = |part: Part<'_>| part.text.trim_start_matches(['*', '?']).to_owned();
    if begins(day) {
        return Err(("day of month", said(day, &format!("`1-31{}`", step(day)))));
    }
    if begins(weekday) {
        return Err(("weekday", said(weekday, &format!("`0-6{}`", step(weekday)))));
    }
    Ok(())
}

impl Field {
    /// Whether this stands for every value: `*`, or `?` in a field of days.
    fn is_any(&self, part: Part<'_>) -> bool {
        part.text == "*" || part.text == "?" && matches!(self.kind, Kind::Day | Kind::Weekday)
    }

    /// The last value, without the second name of Sunday.
    fn last_of_steps(&self) -> u32 {
        if self.kind == Kind::Weekday { 6 } else { self.last }
    }

    fn check(&self, part: Part<'_>) -> Result<(), Refused> {
        let list = match part.strip_prefix("+") {
            Some(rest) if self.kind == Kind::Weekday && rest.text.is_empty() => {
                return Err(rest.refuse("a weekday is missing after `+`"));
            }
            Some(rest) if self.kind == Kind::Weekday => rest,
            _ => part,
        };
        if self.is_any(list) {
            return Ok(());
        }
        let elements = list.split(|c| c == ',');
        for element in &elements {
            if elements.len() > 1 && element.text == "*" {
                return Err(element.refuse("`*` is every value, so it stands alone"));
            }
            self.check_element(*element)?;
        }
        let is = |text: &str| elements.iter().find(|element| element.text == text);
        if let (Some(last), Some(last_weekday)) = (is("L"), is("LW")) {
            let second = if last.at > last_weekday.at { last } else { last_weekday };
            return Err(second.refuse("`L` and `LW` cannot stand in one list; make two schedules"));
        }
        Ok(())
    }

    fn check_element(&self, element: Part<'_>) -> Result<(), Refused> {
        if element.text.is_empty() {
            return Err(element.refuse("there is nothing between two commas, or at the end of the list"));
        }
        match self.kind {
            Kind::Day => {
                if element.text == "L" || element.text == "LW" {
                    return Ok(());
                }
                if let Some(day) = element.strip_suffix("W") {
                    return self.value(day).map(drop);
                }
            }
            Kind::Weekday => {
                if element.text == "L" {
                    return Err(
                        element.refuse("`L` wants a weekday before it, such as `FRI#L`, the last Friday")
                    );
                }
                if let Some((days, nth)) = element.split_once('#') {
                    if !["1", "2", "3", "4", "5", "L"].contains(&nth.text) {
                        return Err(nth.refuse("after `#` comes a number from 1 to 5, or `L` for the last"));
                    }
                    return self.range(days).map(drop);
                }
                if let Some(day) = element.strip_suffix("L") {
                    return self.value(day).map(drop);
                }
            }
            Kind::Time | Kind::Month => {}
        }
        let Some((range, step)) = element.split_once('/') else { return self.range(element).map(drop) };
        let is_any = self.is_any(range);
        let (first, last) = if is_any { (self.first, self.last) } else { self.range(range)? };
        if !is_any && !range.text.contains('-') {
            return Err(range.refuse(format_args!(
                "a step wants a range: write `{}-{}/{}`",
                range.text,
                self.last_of_steps(),
                step.text
            )));
        }
        let count = (last - first + 1).min(self.last_of_steps() - self.first + 1);
        match number(step)? {
            0 => Err(step.refuse("a step is at least 1")),
            steps if steps > count => Err(step.refuse(format_args!(
                "the step {steps} is larger than the {count} values that it goes through"
            ))),
            _ => Ok(()),
        }
    }

    /// Reads a value, or two with a `-` between them.
    fn range(&self, range: Part<'_>) -> Result<(u32, u32), Refused> {
        let Some((begin, end)) = range.split_once('-') else {
            let value = self.value(range)?;
            return Ok((value, value));
        };
        let (first, mut last) = (self.value(begin)?, self.value(end)?);
        // A week may end with Sunday.
        if self.kind == Kind::Weekday && end.text == "SUN" {
            last = 7;
        }
        if self.kind == Kind::Weekday && (first, last) == (0, 7) {
            return Err(range.refuse(format_args!("the range {} is the whole week: write `*`", range.text)));
        }
        if first > last {
            return Err(range.refuse(format_args!("the range {} ends before it begins", range.text)));
        }
        Ok((first, last))
    }

    /// Reads a number or a name of this field.
    fn value(&self, value: Part<'_>) -> Result<u32, Refused> {
        if value.text.is_empty() {
            return Err(value.refuse("a value is missing"));
        }
        let named = self.names().iter().zip(self.first..).find(|(name, _)| **name == value.text);
        if let Some((_, value)) = named {
            return Ok(value);
        }
        let number = number(value)?;
        if number < self.first || number > self.last {
            return Err(value.refuse(format_args!("{number} is not from {} to {}", self.first, self.last)));
        }
        Ok(number)
    }
}

fn number(text: Part<'_>) -> Result<u32, Refused> {
    if let Some((nth, other)) = text.text.chars().enumerate().find(|(_, c)| !c.is_ascii_digit()) {
        let there = Part { at: text.at + nth, ..text };
        return Err(there.refuse(format_args!("`{other}` has no meaning here")));
    }
    match text.text.parse() {
        Ok(number) => Ok(number),
        Err(_) if text.text.is_empty() => Err(text.refuse("a number is missing")),
        Err(_) => Err(text.refuse(format_args!("{} is too large", text.text))),
    }
}

#[cfg(test)]
mod tests {
    use croner::parser::{CronParser, Seconds, Year};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn what(text: &str) -> String {
        check(text).expect_err(text)
    }

    #[test]
    fn an_empty_element_is_refused_in_every_field() {
        for lists in [",", ",,", "1,", ",1", "1,,2"] {
            for (nth, field) in FIELDS.iter().enumerate() {
                let mut fields = ["0", "0", "0", "*", "*", "*"];
                fields[nth] = lists;
                let said = what(&fields.join(" "));
                let begin = format!("{}, character ", field.name);
                assert!(said.starts_with(&begin) && said.contains("nothing between two commas"), "{said}");
            }
        }
        assert_eq!(
            what(", * * * *"),
            "minute, character 1: there is nothing between two commas, or at the end of the list"
        );
        assert_eq!(
            what("5 1,,2 * * *"),
            "hour, character 5: there is nothing between two commas, or at the end of the list"
        );
    }

    #[test]
    fn what_means_something_else_than_it_says_is_named_with_its_field_and_character() {
        for (text, said) in [
            (
                "0 0 L,LW * *",
                "day of month, character 7: `L` and `LW` cannot stand in one list; make two schedules",
            ),
            (
                "0 0 LW,15,L * *",
                "day of month, character 11: `L` and `LW` cannot stand in one list; make two schedules",
            ),
            (
                "0 0 * * L",
                "weekday, character 9: `L` wants a weekday before it, such as `FRI#L`, the last Friday",
            ),
            (
                "0 0 * * MON,L",
                "weekday, character 13: `L` wants a weekday before it, such as `FRI#L`, the last Friday",
            ),
            (
                "0 0 * * MON#1L",
                "weekday, character 13: after `#` comes a number from 1 to 5, or `L` for the last",
            ),
            (
                "0 0 * * MON#6",
                "weekday, character 13: after `#` comes a number from 1 to 5, or `L` for the last",
            ),
            ("0 0 15W1 * *", "day of month, character 7: `W` has no meaning here"),
            ("0 0 15WW * *", "day of month, character 7: `W` has no meaning here"),
            ("0 0 15WL * *", "day of month, character 7: `W` has no meaning here"),
            ("JAN 0 * * *", "minute, character 1: `J` has no meaning here"),
            ("0 0 MON * *", "day of month, character 5: `M` has no meaning here"),
            ("0 0 1 JANFEB *", "month, character 7: `J` has no meaning here"),
            ("0 0 1 1JAN *", "month, character 8: `J` has no meaning here"),
            ("L * * * *", "minute, character 1: `L` has no meaning here"),
            (
                "*/90 * * * *",
                "minute, character 3: the step 90 is larger than the 60 values that it goes through",
            ),
            (
                "0 9-17/10 * * *",
                "hour, character 8: the step 10 is larger than the 9 values that it goes through",
            ),
            ("*/0 * * * *", "minute, character 3: a step is at least 1"),
            ("5/10 * * * *", "minute, character 1: a step wants a range: write `5-59/10`"),
            ("/10 * * * *", "minute, character 1: a value is missing"),
            ("*/ * * * *", "minute, character 3: a number is missing"),
            ("1- * * * *", "minute, character 3: a value is missing"),
            ("30-10 * * * *", "minute, character 1: the range 30-10 ends before it begins"),
            ("1-2-3 * * * *", "minute, character 4: `-` has no meaning here"),
            ("60 * * * *", "minute, character 1: 60 is not from 0 to 59"),
            ("* * 0 * *", "day of month, character 5: 0 is not from 1 to 31"),
            ("* * * * 8", "weekday, character 9: 8 is not from 0 to 7"),
            ("99999999999 * * * *", "minute, character 1: 99999999999 is too large"),
            ("0 0 1-5W * *", "day of month, character 6: `-` has no meaning here"),
            ("*,5 * * * *", "minute, character 1: `*` is every value, so it stands alone"),
            ("0 0 5,? * *", "day of month, character 7: `?` has no meaning here"),
            ("? 0 * * *", "minute, character 1: `?` has no meaning here"),
            ("0 0 * ? *", "month, character 7: `?` has no meaning here"),
            ("0 0 +1 * *", "day of month, character 5: `+` has no meaning here"),
            ("0 0 1 * SUN-SUN", "weekday, character 9: the range SUN-SUN is the whole week: write `*`"),
            ("0 0 1 * 0-7", "weekday, character 9: the range 0-7 is the whole week: write `*`"),
            ("0 0 1 * +", "weekday, character 10: a weekday is missing after `+`"),
            (
                "0 0 * * */8",
                "weekday, character 11: the step 8 is larger than the 7 values that it goes through",
            ),
            ("0 0 * * MON/2", "weekday, character 9: a step wants a range: write `MON-6/2`"),
            ("0 0 */1 * MON", "day of month, character 5: `*/1` is every day: write `*`"),
            ("0 0 13 * ?/1", "weekday, character 10: `*/1` is every day: write `*`"),
            ("\u{e9} * * * *", "minute, character 1: `\u{e9}` has no meaning here"),
            ("  0   0 1,\u{2026} * *", "day of month, character 11: `\u{2026}` has no meaning here"),
            ("* * * *", "it has 4 fields, and not five or six"),
            ("* * * * * * 2030", "it has 7 fields, and not five or six"),
            ("", "there is nothing in it"),
            ("@midnight", "there is no `@midnight`; write `@daily`"),
            ("@reboot", "there is no `@reboot`: a schedule has no machine that starts"),
            (
                "@daily 0",
                "a nickname stands alone and is one of @yearly, @annually, @monthly, @weekly, @daily, @hourly",
            ),
        ] {
            assert_eq!(what(text), said, "{text}");
        }
    }

    #[test]
    fn a_field_of_days_with_a_step_beside_another_is_read_in_two_ways() {
        let both = |weekday: &str, either: &str| {
            format!(
                "vixie's cron reads this as both, Kubernetes as either: write `+{weekday}` for both, `{either}` for either"
            )
        };
        for (text, field, weekday, either) in [
            ("0 0 */2 * MON", "day of month, character 5", "MON", "1-31/2"),
            ("0 0 ?/2 * MON", "day of month, character 5", "MON", "1-31/2"),
            ("0 0 13 * */2", "weekday, character 10", "*/2", "0-6/2"),
            ("0 0 */2 * */3", "day of month, character 5", "*/3", "1-31/2"),
        ] {
            assert_eq!(what(text), format!("{field}: {}", both(weekday, either)), "{text}");
        }
        for text in [
            "0 0 */2 * *",
            "0 0 */2 * ?",
            "0 0 * * */2",
            "0 0 */2 * +MON",
            "0 0 1-31/2 * MON",
            "0 0 13 * FRI",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    /// An element of a field that is often right, and sometimes not.
    fn element() -> impl Strategy<Value = String> {
        let word = || {
            select(vec![
                "*", "?", "0", "1", "2", "5", "7", "8", "12", "13", "23", "24", "31", "32", "59", "60", "L",
                "LW", "W", "MON", "SUN", "sat", "JAN", "dec", "#", "#1", "#L", "#6", "/", "/2", "/7", "/61",
                "-", "-5", "-SUN", "-DEC", "+", "@", "x",
            ])
        };
        prop_oneof![
            4 => word().prop_map(str::to_owned),
            4 => (word(), word()).prop_map(|(a, b)| format!("{a}{b}")),
            2 => (word(), word(), word()).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        ]
    }

    fn expression() -> impl Strategy<Value = String> {
        let list = || proptest::collection::vec(element(), 1..=2).prop_map(|list| list.join(","));
        let any = || prop_oneof![2 => Just("*".to_owned()), 1 => list()];
        proptest::collection::vec(any(), 5..=6).prop_map(|fields| fields.join(" "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        /// An expression that passes has a meaning for the parser behind, and a value in each field of the time.
        #[test]
        fn what_passes_can_be_read_and_has_a_time(text in expression()) {
            let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
            if check(&text).is_ok() {
                let cron = parser.parse(&text).map_err(|error| TestCaseError::fail(format!("`{text}`: {error}")))?;
                let pattern = &cron.pattern;
                for field in [&pattern.seconds, &pattern.minutes, &pattern.hours, &pattern.months] {
                    prop_assert!(!field.values().is_empty(), "`{}`", text);
                }
                for field in [&pattern.days, &pattern.days_of_week] {
                    prop_assert!(!field.values().is_empty() || field.has_modifiers(), "`{}`", text);
                }
            }
        }
    }
}
