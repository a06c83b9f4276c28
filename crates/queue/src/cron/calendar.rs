//! Tells the engine when cron expressions fire. The engine has no time zones and cannot compute these instants.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use jiff::tz::{Offset, TimeZone};

use tickwheel_engine::{
    Effect, Engine, FoundInstant, Input, InstantFound, InstantWanted, Now, Timestamp, Which,
};

use super::{Cron, CronError, zone_versions, zones};

/// The largest number of parsed expressions in memory (some kilobytes each). At this number, the next one first drops all.
const KNOWN_MAX: usize = 1_000;

/// The largest number of zones whose rules are looked at again. The database of a machine has about 600.
const ZONES_MAX: usize = 2_000;

/// The parsed cron expressions that the engine asked about lately, and the rules of their zones.
#[derive(Debug)]
pub(crate) struct Calendar {
    known: HashMap<(Arc<str>, Arc<str>), Cron>,
    zones: BTreeMap<Arc<str>, Rules>,
    databases: Databases,
}

/// Finds a zone by its name.
type Find = Box<dyn Fn(&str) -> Option<TimeZone> + Send>;

/// The databases of time zones.
struct Databases {
    of_machine: Find,
    of_build: Find,
}

impl fmt::Debug for Databases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Databases").finish_non_exhaustive()
    }
}

/// The rules of one zone.
#[derive(Debug)]
struct Rules {
    /// The rules that are in force; `None`: no database has had the zone so far.
    now: Option<TimeZone>,
    /// Whether they are of the machine. Those of the build do not take their place: a file that cannot be read for a moment would move
    /// instants there and back.
    is_of_machine: bool,
    /// Whether it was told that no database has the zone now.
    is_told: bool,
}

/// The findings of a new look at the zones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ZoneNews {
    /// The zones that have other rules than before, or rules for the first time.
    pub(crate) changed: Vec<Arc<str>>,
    /// The zones that no database has any more, and whether the rules of before are kept.
    pub(crate) missing: Vec<(Arc<str>, bool)>,
}

impl Default for Calendar {
    fn default() -> Self {
        Self::of(Databases { of_machine: Box::new(zones::of_machine), of_build: Box::new(zones::of_build) })
    }
}

impl Calendar {
    fn of(databases: Databases) -> Self {
        Self { known: HashMap::new(), zones: BTreeMap::new(), databases }
    }
}

impl Calendar {
    /// Returns a calendar whose zones are at an offset from UTC (s) that `offset_of` tells; `None`: there is no such zone.
    pub(crate) fn with_offsets(offset_of: impl Fn(&str) -> Option<i32> + Send + 'static) -> Self {
        let find = move |name: &str| Offset::from_seconds(offset_of(name)?).ok().map(TimeZone::fixed);
        Self::of(Databases { of_machine: Box::new(find), of_build: Box::new(|_| None) })
    }

    /// Takes the questions of the engine out of `effects` and gives the engine the answers, until the engine has no more questions.
    pub(crate) fn answer(&mut self, engine: &mut Engine, now: Now, effects: &mut Vec<Effect>) {
        loop {
            let asks: Vec<_> =
                effects.extract_if(.., |effect| matches!(effect, Effect::Ask { .. })).collect();
            if asks.is_empty() {
                return;
            }
            for effect in asks {
                if let Effect::Ask { ask, wanted } = effect {
                    engine.step(now, Input::Instant { ask, found: self.tell(&wanted) }, effects);
                }
            }
        }
    }

    /// Returns the instant that the engine wants to know. An error tells why the expression or its zone cannot be used.
    pub(crate) fn tell(&mut self, wanted: &InstantWanted) -> InstantFound {
        let told = |why: CronError| why.to_string();
        let InstantWanted { text, zone, which } = wanted;
        Ok(match *which {
            Which::FirstAfter(after) => {
                let cron = self.cron(text, zone).map_err(told)?;
                cron.next_after(after).map(|found| FoundInstant {
                    offset_s: cron.offset_s(found.at),
                    asked_offset_s: cron.offset_s(after),
                    ..FoundInstant::one(found.at)
                })
            }
            Which::LastUntil { from, until } => {
                let cron = self.cron(text, zone).map_err(told)?;
                last_until(cron, until).map(|at| FoundInstant {
                    count: cron.count(from, at),
                    offset_s: cron.offset_s(at),
                    ..FoundInstant::one(at)
                })
            }
            Which::Moved { at, offset_s } => {
                let rules = self.rules(zone);
                let moved = rules.as_ref().and_then(|rules| zones::moved(offset_s, rules, at)).unwrap_or(at);
                let offset_s = rules.and_then(|rules| zones::offset_s(&rules, moved));
                Some(FoundInstant { offset_s, ..FoundInstant::one(moved) })
            }
        })
    }

    /// Looks the rules of all zones up again. Cost: reads a file for each zone.
    pub(crate) fn look_again(&mut self) -> ZoneNews {
        let (Databases { of_machine, of_build }, mut news) = (&self.databases, ZoneNews::default());
        zone_versions::look_again();
        if !self.zones.is_empty() {
            zones::forget();
        }
        for (name, rules) in &mut self.zones {
            let (found, is_of_machine) = match of_machine(name) {
                Some(found) => (Some(found), true),
                None if rules.is_of_machine => (None, true),
                None => (of_build(name), false),
            };
            let Some(found) = found else {
                if !core::mem::replace(&mut rules.is_told, true) {
                    news.missing.push((Arc::clone(name), rules.now.is_some()));
                }
                continue;
            };
            (rules.is_told, rules.is_of_machine) = (false, is_of_machine);
            if rules.now.as_ref() != Some(&found) {
                rules.now = Some(found);
                news.changed.push(Arc::clone(name));
            }
        }
        self.known.retain(|(_, zone), _| !news.changed.contains(zone));
        news
    }

    /// Returns the rules of a zone; `None`: no database has had it so far.
    fn rules(&mut self, zone: &Arc<str>) -> Option<TimeZone> {
        if let Some(rules) = self.zones.get(zone) {
            return rules.now.clone();
        }
        let of_machine = (self.databases.of_machine)(zone);
        let is_of_machine = of_machine.is_some();
        let now = of_machine.or_else(|| (self.databases.of_build)(zone));
        if self.zones.len() < ZONES_MAX {
            let rules = Rules { now: now.clone(), is_of_machine, is_told: false };
            self.zones.insert(Arc::clone(zone), rules);
        }
        now
    }

    fn cron(&mut self, text: &Arc<str>, zone: &Arc<str>) -> Result<&Cron, CronError> {
        let name = (Arc::clone(text), Arc::clone(zone));
        if !self.known.contains_key(&name) {
            let missing = || CronError::Zone { name: zone.to_string() };
            let cron = Cron::in_zone(text, zone, self.rules(zone).ok_or_else(missing)?)?;
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(name.clone(), cron);
        }
        Ok(&self.known[&name])
    }
}

/// Returns the last time, up to `until`, at which the expression fires.
///
/// After an instant before the wanted time, the next firing is not after `until`. After the wanted time or a later instant, the next firing
/// is after `until`. So the search halves the span between two such instants. About forty steps are enough, however often the expression
/// fires and however long ago the wanted time is.
fn last_until(cron: &Cron, until: Timestamp) -> Option<Timestamp> {
    let next = |after: Timestamp| cron.next_after(after).map(|found| found.at).filter(|&at| at <= until);
    let (mut fires, mut rests) = (Timestamp::EPOCH, until);
    let mut last = next(fires)?;
    while rests.ms_since(fires) > 1 {
        let middle = fires.saturating_plus_ms(rests.ms_since(fires) / 2);
        match next(middle) {
            Some(found) => (fires, last) = (middle, found),
            None => rests = middle,
        }
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_before_an_instant_is_what_a_walk_finds() {
        let begin = Timestamp::from_ms(1_899_000_000_000).expect("after 1970");
        for (text, zone) in
            [("*/7 1-3 * * *", "Europe/Berlin"), ("30 2 10 3 *", "America/New_York"), ("* * * * * *", "UTC")]
        {
            let cron = Cron::parse(text, zone).expect(text);
            let mut at = begin;
            for step in 1..40 {
                let next = cron.next_after(at).expect("it goes on").at;
                assert_eq!(last_until(&cron, next), Some(next), "{text}");
                let between = at.saturating_plus_ms(next.ms_since(at) * step / 40);
                if at > begin && between < next {
                    assert_eq!(last_until(&cron, between), Some(at), "{text} at {between}");
                }
                at = next;
            }
            assert_eq!(last_until(&cron, Timestamp::EPOCH), None, "{text}");
        }
    }

    fn told(text: &str, zone: &str) -> InstantFound {
        let which = Which::FirstAfter(Timestamp::EPOCH);
        Calendar::default().tell(&InstantWanted { text: text.into(), zone: zone.into(), which })
    }

    /// A zone two hours east of UTC, or three once a test says so.
    fn moving(name: &str) -> Option<TimeZone> {
        HOURS.with(|hours| match (name, hours.get()) {
            ("Test/Moving", Some(hours)) => Some(TimeZone::fixed(jiff::tz::offset(hours))),
            _ => None,
        })
    }

    /// A calendar of a machine that has this zone only. `is_in_build`: the build has it, too, an hour west of there.
    fn moving_calendar(is_in_build: bool) -> Calendar {
        let of_build = move |_: &str| is_in_build.then(|| TimeZone::fixed(jiff::tz::offset(1)));
        Calendar::of(Databases { of_machine: Box::new(moving), of_build: Box::new(of_build) })
    }

    thread_local! {
        static HOURS: std::cell::Cell<Option<i8>> = const { std::cell::Cell::new(Some(2)) };
    }

    #[test]
    fn an_instant_moves_with_the_rules_of_its_zone() {
        let mut calendar = moving_calendar(true);
        let hour = 3_600_000;
        let ask = |calendar: &mut Calendar, which: Which| {
            let wanted = InstantWanted { text: "0 5 * * *".into(), zone: "Test/Moving".into(), which };
            calendar.tell(&wanted).expect("it is told").map(|found| found.at.as_ms() / hour)
        };
        let at = |hours: i64| Timestamp::from_ms(hours * hour).expect("after 1970");
        let moved = |offset_s| Which::Moved { at: at(3), offset_s };
        assert_eq!(ask(&mut calendar, Which::FirstAfter(at(0))), Some(3), "5:00 is 3:00 in UTC");
        assert_eq!(calendar.look_again(), ZoneNews::default());
        HOURS.set(Some(3));
        assert_eq!(ask(&mut calendar, Which::FirstAfter(at(0))), Some(3), "nothing was looked up again");
        let news = calendar.look_again();
        assert_eq!((news.changed, news.missing), (vec!["Test/Moving".into()], vec![]));
        assert_eq!(ask(&mut calendar, Which::FirstAfter(at(0))), Some(2));
        assert_eq!(ask(&mut calendar, moved(7_200)), Some(2), "the clock shows 5:00 then");
        assert_eq!(ask(&mut calendar, moved(10_800)), Some(3), "the rules are those of before");
        // A zone that is gone keeps its rules, although the build has others, and that is told once.
        HOURS.set(None);
        assert_eq!(calendar.look_again().missing, [("Test/Moving".into(), true)]);
        assert_eq!(calendar.look_again(), ZoneNews::default());
        assert_eq!(ask(&mut calendar, Which::FirstAfter(at(0))), Some(2));
    }

    #[test]
    fn a_zone_that_was_missing_is_taken_up_when_it_comes() {
        HOURS.set(None);
        let mut calendar = moving_calendar(false);
        let wanted = InstantWanted {
            text: "0 5 * * *".into(),
            zone: "Test/Moving".into(),
            which: Which::FirstAfter(Timestamp::EPOCH),
        };
        assert_eq!(calendar.tell(&wanted), Err("`Test/Moving` is no time zone".into()));
        assert_eq!(calendar.look_again().missing, [("Test/Moving".into(), false)]);
        HOURS.set(Some(2));
        assert_eq!(calendar.look_again().changed, ["Test/Moving".into()]);
        assert_eq!(calendar.tell(&wanted).expect("told").map(|found| found.at.as_ms()), Some(3 * 3_600_000));
        assert_eq!(calendar.tell(&wanted).expect("told").and_then(|found| found.asked_offset_s), Some(7_200));
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        assert_eq!(told("* * * * *", "Mars/Olympus"), Err("`Mars/Olympus` is no time zone".into()));
    }

    /// Such an expression could be put before. The search for its next instant walked through all years of the calendar.
    #[test]
    fn a_stored_expression_with_a_field_without_a_value_never_fires() {
        for text in [", * * * *", "0 , * * *", ", 0 0 * * *", "0 0 , * *", "0 0 * , *", "0 0 1 , *"] {
            assert_eq!(
                told(text, "UTC"),
                Err(format!("`{text}` never fires: there is no such day or time").into())
            );
        }
    }

    #[test]
    fn a_stored_expression_keeps_the_meaning_that_it_had() {
        let found = told("0 0 */2 * MON", "UTC").expect("it can be used");
        assert_eq!(
            found.map(|found| found.at.as_ms()),
            Some(2 * 86_400_000),
            "1970-01-03, whatever weekday it is"
        );
    }
}
