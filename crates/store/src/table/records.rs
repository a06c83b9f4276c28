//! The records themselves, without the orders in which they are looked for.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::history::History;
use tickwheel_engine::{Counters, Ended, Key, QueueName, Seq, Task, TaskEffect};

/// What a shard has, by id: recovery fills it, and a [`Table`](super::Table) adds the orders.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Records {
    live: BTreeMap<u64, Arc<Task>>,
    /// Where the history has the task with this id.
    ended: BTreeMap<u64, (QueueName, Seq)>,
    histories: BTreeMap<QueueName, History>,
    counters: Counters,
    live_bytes: u64,
    history_per_queue: usize,
}

/// What an effect did to the live tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Change {
    /// The record that is live no more.
    pub(super) old: Option<Arc<Task>>,
    /// The record that is live now.
    pub(super) new: Option<Arc<Task>>,
}

impl Records {
    pub(crate) fn new(history_per_queue: usize) -> Self {
        Self {
            live: BTreeMap::new(),
            ended: BTreeMap::new(),
            histories: BTreeMap::new(),
            counters: Counters::default(),
            live_bytes: 0,
            history_per_queue,
        }
    }

    /// Takes one effect in. One that is not newer than what is known of its task changes nothing.
    pub(crate) fn apply(&mut self, effect: &TaskEffect) {
        self.change(effect);
    }

    pub(super) fn change(&mut self, effect: &TaskEffect) -> Change {
        if self.known_seq(effect.id()).is_some_and(|known| known >= effect.seq()) {
            return Change::default();
        }
        match effect {
            TaskEffect::Stored { task, body_known: _ } => {
                self.live_bytes += record_bytes(task);
                let old = self.live.insert(task.id, Arc::clone(task));
                self.live_bytes -= old.as_deref().map_or(0, record_bytes);
                Change { old, new: Some(Arc::clone(task)) }
            }
            TaskEffect::Ended(ended) => {
                let old = self.live.remove(&ended.id);
                self.live_bytes -= old.as_deref().map_or(0, record_bytes);
                self.remember(ended);
                Change { old, new: None }
            }
        }
    }

    fn remember(&mut self, ended: &Ended) {
        self.ended.insert(ended.id, (ended.queue.clone(), ended.seq));
        // Not `entry`: it would copy the name each time.
        if !self.histories.contains_key(&ended.queue) {
            self.histories.insert(ended.queue.clone(), History::new(self.history_per_queue));
        }
        let history = self.histories.get_mut(&ended.queue).expect("it was put in above");
        if let Some(forgotten) = history.add(ended) {
            self.ended.remove(&forgotten.id);
        }
    }

    /// Takes counters in. They only rise.
    pub(crate) fn raise_counters(&mut self, counters: Counters) {
        let Counters { ids_reserved } = counters;
        self.counters.ids_reserved = self.counters.ids_reserved.max(ids_reserved);
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn live(&self) -> &BTreeMap<u64, Arc<Task>> {
        &self.live
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(super) fn ended_len(&self) -> usize {
        self.ended.len()
    }

    /// The live task with this id.
    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Task>> {
        self.live.get(&id)
    }

    /// Whether the history has the end of the task with this id.
    pub(crate) fn has_ended(&self, id: u64) -> bool {
        self.ended.contains_key(&id)
    }

    pub(super) fn ended_by_id(&self, id: u64) -> Option<&Ended> {
        let (queue, seq) = self.ended.get(&id)?;
        self.histories.get(queue)?.by_seq(*seq)
    }

    pub(super) fn ended_by_key(&self, queue: &QueueName, key: &Key) -> Option<&Ended> {
        self.histories.get(queue)?.by_key(key)
    }

    /// The remembered ends, in the order of (queue, seq), strictly after `after`.
    pub(super) fn ended_after(&self, after: Option<&(QueueName, Seq)>) -> impl Iterator<Item = &Ended> {
        let start = match after {
            None => Bound::Unbounded,
            Some((queue, _)) => Bound::Included(queue),
        };
        let behind = move |name: &QueueName| match after {
            Some((queue, seq)) if queue == name => *seq,
            _ => Seq::ZERO,
        };
        self.histories
            .range::<QueueName, _>((start, Bound::Unbounded))
            .flat_map(move |(name, history)| history.after(behind(name)))
    }

    fn known_seq(&self, id: u64) -> Option<Seq> {
        let live = self.live.get(&id).map(|task| task.seq);
        live.or_else(|| self.ended.get(&id).map(|(_, seq)| *seq))
    }
}

/// An upper bound of the bytes of a task's record in a frame or a checkpoint.
pub(super) fn record_bytes(task: &Task) -> u64 {
    // Each number at its longest: ten bytes and a tag.
    const FIXED: usize = 192;
    let extra = task.extra.as_deref().map_or(0, |extra| {
        64 + extra.group.as_deref().map_or(0, str::len) + extra.trace.as_deref().map_or(0, str::len)
    });
    let tags: usize = task.body.tags.iter().map(|tag| tag.len() + 10).sum();
    let names = task.queue.as_str().len() + task.key.as_str().len() + task.body.content_type.len();
    (FIXED + names + extra + tags + task.body.payload.len()) as u64
}
