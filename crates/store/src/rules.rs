//! Rules: the settings and schedules that owners configured, and the jobs that are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Rule, RuleEffect, RuleName};

use crate::history::Histories;

/// The rules that exist, by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Rules {
    by_name: BTreeMap<RuleName, Arc<Rule>>,
    /// The bytes that all rules together take in a checkpoint, at most.
    bytes: u64,
}

impl Rules {
    /// Applies the change of one rule. The settings of a queue also have its history limit: that limit is applied to `histories` at once,
    /// and may forget ended tasks. The last change of a rule is the right one, so call this in the order of the commits.
    pub(crate) fn apply(&mut self, (name, rule): RuleEffect, histories: &mut Histories) {
        if let RuleName::Queue(queue) = &name {
            let limit = match rule.as_deref() {
                Some(Rule::Queue(record)) => record.settings.history,
                _ => None,
            };
            histories.limit(queue, limit);
        }
        let added = rule.as_deref().map_or(0, bytes_of);
        let before = match rule {
            Some(rule) => self.by_name.insert(name, rule),
            None => self.by_name.remove(&name),
        };
        self.bytes = self.bytes + added - before.as_deref().map_or(0, bytes_of);
    }

    /// Returns the bytes that all rules together take in a checkpoint, at most.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the rules, in the order of their names.
    pub(crate) fn by_name(&self) -> &BTreeMap<RuleName, Arc<Rule>> {
        &self.by_name
    }
}

/// Returns an upper bound of the bytes that a rule takes in a checkpoint: 1,024 for its names and numbers; for a queue also the value of
/// its target; for a schedule also its texts, its payload and the instants that wait; for a job also its value.
fn bytes_of(rule: &Rule) -> u64 {
    let rest = match rule {
        Rule::Queue(record) => record.target.as_ref().map_or(0, |target| target.value.len()),
        Rule::Job(value) => value.len(),
        Rule::Schedule(record) => record.schedule.text_bytes() + 10 * record.waiting.len(),
    };
    1_024 + rest as u64
}
