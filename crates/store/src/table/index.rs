//! The indexes of the live tasks: by due key, by queue and by key.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{DueKey, Key, Population, QueueName, Task};

/// The indexes of the tasks that have not ended: one of all queues by due key, and for each queue by due key and by key. A task with a
/// lease that a stop wrote down is in `leased` too.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Index {
    pub(super) by_place: BTreeMap<DueKey, u64>,
    pub(super) queues: BTreeMap<QueueName, QueueIndex>,
    /// The tasks whose records have a lease that a stop wrote down.
    pub(super) leased: BTreeSet<u64>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct QueueIndex {
    /// The tasks that can be found by their keys: key and id.
    by_key: BTreeSet<(Key, u64)>,
    /// All tasks that are not dead.
    pub(super) by_place: BTreeMap<DueKey, u64>,
    /// The dead tasks.
    pub(super) dead_by_place: BTreeMap<DueKey, u64>,
}

impl QueueIndex {
    pub(super) fn population(&self) -> Population {
        Population { live: self.by_place.len() as u64, dead: self.dead_by_place.len() as u64 }
    }

    /// Returns the id of the task that this key leads to. Two tasks can have the key only in the middle of a replay; then the higher id is
    /// returned.
    pub(super) fn with_key(&self, key: &Key) -> Option<u64> {
        let all = (key.clone(), 0)..=(key.clone(), u64::MAX);
        self.by_key.range(all).next_back().map(|(_, id)| *id)
    }

    fn places(&mut self, task: &Task) -> &mut BTreeMap<DueKey, u64> {
        if task.dead().is_some() { &mut self.dead_by_place } else { &mut self.by_place }
    }
}

impl Index {
    /// Takes in a record. `old` is the older record of the same task, if there is one.
    pub(super) fn put(&mut self, old: Option<&Task>, task: &Task) {
        let place = DueKey::of(task);
        match task.lease {
            Some(_) => self.leased.insert(task.id),
            None => self.leased.remove(&task.id),
        };
        if let Some(old) = old {
            let stands = |task: &Task| (DueKey::of(task), task.dead().is_some(), task.is_keyed());
            if old.queue == task.queue && old.key == task.key && stands(old) == stands(task) {
                return;
            }
            self.forget_place_and_key(old);
        }
        let known = self.by_place.insert(place, task.id);
        debug_assert!(known.is_none(), "tasks {known:?} and {} have one place", task.id);
        // `entry` would copy the name of the queue on each call, so it is not used.
        if !self.queues.contains_key(&task.queue) {
            self.queues.insert(task.queue.clone(), QueueIndex::default());
        }
        let queue = self.queues.get_mut(&task.queue).expect("it was put in above");
        queue.places(task).insert(place, task.id);
        if task.is_keyed() {
            queue.by_key.insert((task.key.clone(), task.id));
        }
    }

    /// Removes a task that ended.
    pub(super) fn remove(&mut self, task: &Task) {
        self.leased.remove(&task.id);
        self.forget_place_and_key(task);
    }

    fn forget_place_and_key(&mut self, task: &Task) {
        let place = DueKey::of(task);
        self.by_place.remove(&place);
        let Some(queue) = self.queues.get_mut(&task.queue) else { return };
        queue.places(task).remove(&place);
        queue.by_key.remove(&(task.key.clone(), task.id));
        if queue.by_place.is_empty() && queue.dead_by_place.is_empty() {
            self.queues.remove(&task.queue);
        }
    }
}
