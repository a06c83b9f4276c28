//! [`WakeUps`]: the instants at which queues have to be looked at again.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::QueueName;

/// The queues that wait for an instant, in the order of the instants. Each queue waits for at most one instant. `T` is an instant of the
/// wall clock or of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct WakeUps<T> {
    by_name: BTreeMap<QueueName, T>,
    by_time: BTreeSet<(T, QueueName)>,
}

impl<T: Copy + Ord> WakeUps<T> {
    /// Sets the instant that a queue waits for. `None`: the queue does not wait any more.
    pub(super) fn set(&mut self, name: &QueueName, at: Option<T>) {
        if let Some(before) = self.by_name.remove(name) {
            self.by_time.remove(&(before, name.clone()));
        }
        if let Some(at) = at {
            self.by_name.insert(name.clone(), at);
            self.by_time.insert((at, name.clone()));
        }
    }

    /// Returns the earliest instant.
    pub(super) fn next(&self) -> Option<T> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Takes out the queue with the earliest instant, if that instant has come.
    pub(super) fn pop(&mut self, now: T) -> Option<QueueName> {
        self.next().filter(|at| *at <= now)?;
        let (_, name) = self.by_time.pop_first()?;
        self.by_name.remove(&name);
        Some(name)
    }
}
