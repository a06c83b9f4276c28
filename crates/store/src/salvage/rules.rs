//! Finds settings, schedules and jobs that may be lost or too old.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{RuleEffect, RuleName, ScheduleName, Task};

use super::report::{LostRule, NAMED_MAX, RuleFate};
use crate::rules::Rules;

/// The facts in the files about settings, schedules and jobs, beside the rules themselves.
#[derive(Debug, Default)]
pub(super) struct RuleTraces {
    /// By rule: the last frame that has a change of the rule.
    said_at: BTreeMap<RuleName, u64>,
    /// Whether the names of schedules are taken from the keys of tasks, because the checkpoint lost some rules.
    pub(super) wants_names: bool,
    /// The schedules that the keys of tasks name: at most [`NAMED_MAX`].
    of_tasks: BTreeSet<RuleName>,
}

impl RuleTraces {
    /// Notes that a frame has a change of a rule.
    pub(super) fn said(&mut self, name: &RuleName, frame: u64) {
        self.said_at.insert(name.clone(), frame);
    }

    /// Notes the schedule that made a task, if `wants_names` is set and the key of the task looks like `name@instant`.
    pub(super) fn task(&mut self, task: &Task) {
        if !self.wants_names || self.of_tasks.len() >= NAMED_MAX {
            return;
        }
        let Some((name, instant)) = task.key.as_str().rsplit_once('@') else { return };
        let is_instant = instant.len() >= 20 && instant.ends_with('Z') && instant.as_bytes()[10] == b'T';
        if let Some(name) = is_instant.then(|| ScheduleName::new(name).ok()).flatten() {
            self.of_tasks.insert(RuleName::Schedule(task.queue.clone(), name));
        }
    }

    /// Returns what may have happened to a rule that damaged bytes name. Each frame after `frame` is later than the damaged bytes. `None`:
    /// nothing of the rule is lost.
    pub(super) fn fate(&self, (name, rule): &RuleEffect, frame: u64, rules: &Rules) -> Option<LostRule> {
        if self.said_at.get(name).is_some_and(|said| *said > frame) {
            return None;
        }
        let fate = match (rules.by_name().get(name), rule) {
            (Some(saved), Some(said)) if saved == said => return None,
            (Some(_), Some(_)) => RuleFate::PerhapsOlder,
            (Some(_), None) => RuleFate::PerhapsRemoved,
            (None, Some(_)) => RuleFate::PerhapsLost,
            (None, None) => return None,
        };
        Some(LostRule { name: name.clone(), fate })
    }

    /// Returns the schedules that the keys of tasks name, and that are not among `rules`.
    pub(super) fn missed(&self, rules: &Rules) -> impl Iterator<Item = LostRule> {
        let missed = self.of_tasks.iter().filter(|name| !rules.by_name().contains_key(*name));
        missed.map(|name| LostRule { name: name.clone(), fate: RuleFate::PerhapsLost })
    }
}
