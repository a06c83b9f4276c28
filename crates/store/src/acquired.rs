//! Pages of the `Acquired` reply: what a new owner of a shard has to know.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use tickwheel_engine::{AcquiredCursor, AcquiredPage, Population, QueueName, Rule, RuleName};

use crate::rules::Rules;

/// The number of entries in a page, unless the bounds say otherwise.
pub(crate) const ACQUIRED_PAGE: usize = 4_096;

enum Entry<'a> {
    Queue(&'a QueueName, Population),
    Rule(&'a RuleName, &'a Arc<Rule>),
    Leased(u64),
}

/// Returns the page behind `after`, and separately the ids of its leased tasks. Both together have at most `max` entries. A `max` of 0
/// counts as 1.
pub(crate) fn page<V>(
    after: Option<&AcquiredCursor>,
    max: usize,
    queues: &BTreeMap<QueueName, V>,
    population: impl Fn(&V) -> Population,
    rules: &Rules,
    leased: &BTreeSet<u64>,
) -> (AcquiredPage, Vec<u64>) {
    use AcquiredCursor as Cursor;
    let (queues_from, rules_from, leased_from) = match after {
        None => (Some(Bound::Unbounded), Some(Bound::Unbounded), Bound::Unbounded),
        Some(Cursor::Queue(name)) => (Some(Bound::Excluded(name)), Some(Bound::Unbounded), Bound::Unbounded),
        Some(Cursor::Rule(name)) => (None, Some(Bound::Excluded(name)), Bound::Unbounded),
        Some(Cursor::Leased(id)) => (None, None, Bound::Excluded(*id)),
    };
    let queues =
        queues_from.into_iter().flat_map(|from| queues.range::<QueueName, _>((from, Bound::Unbounded)));
    let queues = queues.map(|(name, of)| Entry::Queue(name, population(of)));
    let rules = rules_from
        .into_iter()
        .flat_map(|from| rules.by_name().range::<RuleName, _>((from, Bound::Unbounded)));
    let rules = rules.map(|(name, rule)| Entry::Rule(name, rule));
    let leased = leased.range((leased_from, Bound::Unbounded));
    let mut entries = queues.chain(rules).chain(leased.map(|id| Entry::Leased(*id)));
    let (mut page, mut ids) = (AcquiredPage::default(), Vec::new());
    let mut last = None;
    for entry in entries.by_ref().take(max.max(1)) {
        last = Some(match entry {
            Entry::Queue(name, population) => {
                page.queues.push((name.clone(), population));
                Cursor::Queue(name.clone())
            }
            Entry::Rule(name, rule) => {
                page.rules.push((name.clone(), Arc::clone(rule)));
                Cursor::Rule(name.clone())
            }
            Entry::Leased(id) => {
                ids.push(id);
                Cursor::Leased(id)
            }
        });
    }
    page.next = last.filter(|_| entries.next().is_some());
    (page, ids)
}
