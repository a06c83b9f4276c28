//! When queues are to be served again.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::QueueName;

/// The queues that wait for an instant, at most one instant for each queue, in the order of time. `T` is an instant of one of the clocks.
#[derive(Debug, Default)]
pub(super) struct WakeUps<T> {
    by_name: BTreeMap<QueueName, T>,
    by_time: BTreeSet<(T, QueueName)>,
}

impl<T: Copy + Ord> WakeUps<T> {
    /// Changes the instant that a queue waits for; `None`: the queue does not wait any more.
    pub(super) fn set(&mut self, name: &QueueName, at: Option<T>) {
        if let Some(before) = self.by_name.remove(name) {
            self.by_time.remove(&(before, name.clone()));
        }
        if let Some(at) = at {
            self.by_name.insert(name.clone(), at);
            self.by_time.insert((at, name.clone()));
        }
    }

    /// The first instant.
    pub(super) fn next(&self) -> Option<T> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Takes the next queue that has waited long enough by now.
    pub(super) fn pop(&mut self, now: T) -> Option<QueueName> {
        self.next().filter(|at| *at <= now)?;
        let (_, name) = self.by_time.pop_first()?;
        self.by_name.remove(&name);
        Some(name)
    }
}
