//! When a queue with waiting calls is to be served again: its rate admits the next delivery, or its pause ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::QueueName;
use crate::time::{Now, Timestamp};

/// Per queue with waiting calls: when its rate admits the next delivery, by the monotonic clock (ms). Entries may be stale.
#[derive(Debug, Default)]
pub(super) struct RateWakeUps {
    by_name: BTreeMap<QueueName, u64>,
    by_time: BTreeSet<(u64, QueueName)>,
}

impl RateWakeUps {
    pub(super) fn watch(&mut self, name: &QueueName, at_ms: u64) {
        self.forget(name);
        self.by_name.insert(name.clone(), at_ms);
        self.by_time.insert((at_ms, name.clone()));
    }

    pub(super) fn forget(&mut self, name: &QueueName) {
        if let Some(at_ms) = self.by_name.remove(name) {
            self.by_time.remove(&(at_ms, name.clone()));
        }
    }

    /// Takes the next queue with a rate that admits a delivery by now.
    pub(super) fn pop(&mut self, now: Now) -> Option<QueueName> {
        let (_, name) = self.by_time.first().filter(|(at_ms, _)| *at_ms <= now.mono_tick())?;
        let name = name.clone();
        self.forget(&name);
        Some(name)
    }

    pub(super) fn next_ms(&self) -> Option<u64> {
        self.by_time.first().map(|&(at_ms, _)| at_ms)
    }
}

/// The pauses that end by themselves, in the order of their ends, by the wall clock.
#[derive(Debug, Default)]
pub(super) struct PauseEnds(BTreeSet<(Timestamp, QueueName)>);

impl PauseEnds {
    /// Changes the end of a queue's pause from `before` to `until`.
    pub(super) fn change(&mut self, name: &QueueName, before: Option<Timestamp>, until: Option<Timestamp>) {
        if let Some(before) = before {
            self.0.remove(&(before, name.clone()));
        }
        if let Some(until) = until.filter(|until| *until < Timestamp::MAX) {
            self.0.insert((until, name.clone()));
        }
    }

    /// When the first pause ends.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|&(until, _)| until)
    }

    /// Takes the next queue with a pause that is over.
    pub(super) fn pop(&mut self, now: Now) -> Option<QueueName> {
        let is_over = self.next().is_some_and(|until| until <= now.wall);
        is_over.then(|| self.0.pop_first()).flatten().map(|(_, name)| name)
    }
}
