//! Pages of the `Acquired` reply: what a new owner of a shard has to know.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use tickwheel_engine::{AcquiredCursor, AcquiredPage, Population, QueueName, Rule, RuleName};

use crate::rules::Rules;

/// A page has this many entries unless the bounds say otherwise.
pub(crate) const ACQUIRED_PAGE: usize = 4_096;

enum Entry<'a> {
    Queue(&'a QueueName, Population),
    Rule(&'a RuleName, &'a Arc<Rule>),
    Leased(u64),
}

/// The page behind `after`, at most `max` entries long. It has no leased tasks: the ids of those come beside it.
pub(crate) fn page<V>(
    after: Option<&AcquiredCursor>,
    max: usize,
    queues: &BTreeMap<QueueName, V>,
    population: impl Fn(&V) -> Population,
    rules: &Rules,
    leased: &BTreeSet<u64>,
) -> (AcquiredPage, Vec<u64>) {
    let queues = match after {
        None => Some(queues.range::<QueueName, _>(..)),
        Some(AcquiredCursor::Queue(name)) => {
            Some(queues.range::<QueueName, _>((Bound::Excluded(name), Bound::Unbounded)))
        }
        Some(AcquiredCursor::Rule(_) | AcquiredCursor::Leased(_)) => None,
    };
    let rules = match after {
        None | Some(AcquiredCursor::Queue(_)) => Some(rules.by_name().range::<RuleName, _>(..)),
        Some(AcquiredCursor::Rule(name)) => {
            Some(rules.by_name().range::<RuleName, _>((Bound::Excluded(name), Bound::Unbounded)))
        }
        Some(AcquiredCursor::Leased(_)) => None,
    };
    let leased = match after {
        Some(AcquiredCursor::Leased(id)) => leased.range((Bound::Excluded(id), Bound::Unbounded)),
        _ => leased.range(..),
    };
    let queues = queues.into_iter().flatten().map(|(name, of)| Entry::Queue(name, population(of)));
    let rules = rules.into_iter().flatten().map(|(name, rule)| Entry::Rule(name, rule));
    let mut entries = queues.chain(rules).chain(leased.map(|id| Entry::Leased(*id)));
    let (mut page, mut ids) = (AcquiredPage::default(), Vec::new());
    let mut last = None;
    for entry in entries.by_ref().take(max.max(1)) {
        last = Some(match entry {
            Entry::Queue(name, population) => {
                page.queues.push((name.clone(), population));
                AcquiredCursor::Queue(name.clone())
            }
            Entry::Rule(name, rule) => {
                page.rules.push((name.clone(), Arc::clone(rule)));
                AcquiredCursor::Rule(name.clone())
            }
            Entry::Leased(id) => {
                ids.push(id);
                AcquiredCursor::Leased(id)
            }
        });
    }
    page.next = last.filter(|_| entries.next().is_some());
    (page, ids)
}
