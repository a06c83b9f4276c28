//! What owners laid down.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Rule, RuleEffect, RuleName};

use crate::history::Histories;

/// The rules that stand, by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Rules(BTreeMap<RuleName, Arc<Rule>>);

impl Rules {
    /// Takes in what became of a rule, and what it says of the history of its queue. The last that comes is right, so they come in the
    /// order of the commits.
    pub(crate) fn lay_down(&mut self, (name, rule): RuleEffect, histories: &mut Histories) {
        if let RuleName::Queue(queue) = &name {
            let limit = match rule.as_deref() {
                Some(Rule::Queue(record)) => record.settings.history,
                _ => None,
            };
            histories.limit(queue, limit);
        }
        match rule {
            Some(rule) => drop(self.0.insert(name, rule)),
            None => drop(self.0.remove(&name)),
        }
    }

    /// In the order of their names.
    pub(crate) fn by_name(&self) -> &BTreeMap<RuleName, Arc<Rule>> {
        &self.0
    }

    /// All of them, for a new owner.
    pub(crate) fn to_vec(&self) -> Vec<(RuleName, Arc<Rule>)> {
        self.0.iter().map(|(name, rule)| (name.clone(), Arc::clone(rule))).collect()
    }
}
