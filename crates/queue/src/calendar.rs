//! Tells the engine when cron expressions fire. The engine has no time zones and cannot compute these instants.

use std::collections::HashMap;
use std::sync::Arc;

use tickwheel_engine::{Effect, Engine, Input, InstantFound, InstantWanted, Now, Timestamp, Which};

use crate::cron::{Cron, CronError};

/// The largest number of parsed expressions in memory (some kilobytes each). At this number, the next one first drops all.
const KNOWN_MAX: usize = 1_000;

/// The parsed cron expressions that the engine asked about lately.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    known: HashMap<(Arc<str>, Arc<str>), Cron>,
}

impl Calendar {
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
        let cron = self.cron(&wanted.text, &wanted.zone).map_err(|why| why.to_string())?;
        Ok(match wanted.which {
            Which::FirstAfter(after) => cron.next_after(after).map(|found| found.at),
            Which::LastUntil(until) => last_until(cron, until),
        })
    }

    fn cron(&mut self, text: &Arc<str>, zone: &Arc<str>) -> Result<&Cron, CronError> {
        let name = (Arc::clone(text), Arc::clone(zone));
        if !self.known.contains_key(&name) {
            let cron = Cron::of_store(text, zone)?;
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
        assert_eq!(found.map(Timestamp::as_ms), Some(2 * 86_400_000), "1970-01-03, whatever weekday it is");
    }
}
