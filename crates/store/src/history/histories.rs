//! The histories of all queues.

use std::collections::BTreeMap;
use std::ops::Bound;

use tickwheel_engine::{Ended, Key, QueueName, Seq};

use super::history::History;

/// The last ended tasks of each queue, found by id, by key, and in the order of (queue, seq).
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Histories {
    queues: BTreeMap<QueueName, History>,
    /// Where the task with this id is.
    by_id: BTreeMap<u64, (QueueName, Seq)>,
    per_queue: usize,
}

impl Histories {
    pub(crate) fn new(per_queue: usize) -> Self {
        Self { queues: BTreeMap::new(), by_id: BTreeMap::new(), per_queue }
    }

    /// How many ended tasks are remembered.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn add(&mut self, ended: &Ended) {
        self.by_id.insert(ended.id, (ended.queue.clone(), ended.seq));
        // Not `entry`: it would copy the name each time.
        if !self.queues.contains_key(&ended.queue) {
            self.queues.insert(ended.queue.clone(), History::new(self.per_queue));
        }
        let history = self.queues.get_mut(&ended.queue).expect("it was put in above");
        if let Some(forgotten) = history.add(ended) {
            self.by_id.remove(&forgotten.id);
        }
    }

    /// The change that ended the task with this id.
    pub(crate) fn seq_of(&self, id: u64) -> Option<Seq> {
        self.by_id.get(&id).map(|(_, seq)| *seq)
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<&Ended> {
        let (queue, seq) = self.by_id.get(&id)?;
        self.queues.get(queue)?.by_seq(*seq)
    }

    pub(crate) fn by_key(&self, queue: &QueueName, key: &Key) -> Option<&Ended> {
        self.queues.get(queue)?.by_key(key)
    }

    /// In the order of (queue, seq), strictly after `after`.
    pub(crate) fn after(&self, after: Option<&(QueueName, Seq)>) -> impl Iterator<Item = &Ended> {
        let start = match after {
            None => Bound::Unbounded,
            Some((queue, _)) => Bound::Included(queue),
        };
        let behind = move |name: &QueueName| match after {
            Some((queue, seq)) if queue == name => *seq,
            _ => Seq::ZERO,
        };
        self.queues
            .range::<QueueName, _>((start, Bound::Unbounded))
            .flat_map(move |(name, history)| history.after(behind(name)))
    }
}
