//! The orders in which live tasks are looked for.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{Key, Place, QueueName, Task};

/// Where each live task stands: by place over all queues, and in its queue by place and by key.
///
/// Those with a written lease stand in `leased` too. A key leads to the youngest live task that has it; there are two only in the middle of a replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Index {
    pub(super) by_place: BTreeMap<Place, u64>,
    pub(super) queues: BTreeMap<QueueName, QueueIndex>,
    /// Tasks whose record has a lease that a stop wrote down.
    pub(super) leased: BTreeSet<u64>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct QueueIndex {
    pub(super) by_key: BTreeMap<Key, u64>,
    pub(super) by_place: BTreeMap<Place, u64>,
}

impl Index {
    /// A record took the place of an older one of the same task, if there was one.
    pub(super) fn put(&mut self, old: Option<&Task>, task: &Task) {
        let place = Place::of(task);
        match task.lease {
            Some(_) => self.leased.insert(task.id),
            None => self.leased.remove(&task.id),
        };
        if let Some(old) = old {
            if old.queue == task.queue && old.key == task.key && Place::of(old) == place {
                return;
            }
            self.forget_place_and_key(old);
        }
        let known = self.by_place.insert(place, task.id);
        debug_assert!(known.is_none(), "tasks {known:?} and {} have one place", task.id);
        // Not `entry`: it would copy the name each time.
        if !self.queues.contains_key(&task.queue) {
            self.queues.insert(task.queue.clone(), QueueIndex::default());
        }
        let queue = self.queues.get_mut(&task.queue).expect("it was put in above");
        queue.by_place.insert(place, task.id);
        // Ids rise, so the larger one is the younger task: an old one that is only replayed does not take the key back.
        match queue.by_key.get_mut(&task.key) {
            Some(owner) => *owner = (*owner).max(task.id),
            None => drop(queue.by_key.insert(task.key.clone(), task.id)),
        }
    }

    /// A task is live no more.
    pub(super) fn remove(&mut self, task: &Task) {
        self.leased.remove(&task.id);
        self.forget_place_and_key(task);
    }

    fn forget_place_and_key(&mut self, task: &Task) {
        let place = Place::of(task);
        self.by_place.remove(&place);
        let Some(queue) = self.queues.get_mut(&task.queue) else { return };
        queue.by_place.remove(&place);
        if queue.by_key.get(&task.key) == Some(&task.id) {
            queue.by_key.remove(&task.key);
        }
        if queue.by_place.is_empty() {
            self.queues.remove(&task.queue);
        }
    }
}
