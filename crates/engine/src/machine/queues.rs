//! The queues: what is ready in each, who waits for it, and how many tasks there are.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::Slot;
use crate::input::CallId;
use crate::name::QueueName;
use crate::task::Task;
use crate::time::{Seq, Timestamp};

/// The ready order, one for every door: priority, `due_at`, the seq of the put.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ReadyPlace {
    priority: u32,
    pub(super) due_at: Timestamp,
    put_seq: Seq,
    pub(super) slot: Slot,
}

impl ReadyPlace {
    pub(super) fn of(task: &Task, slot: Slot) -> Self {
        Self { priority: task.priority, due_at: task.due_at, put_seq: task.put_seq, slot }
    }
}

/// A call that waits for a ready task.
#[derive(Copy, Clone, Debug)]
pub(super) struct Waiter {
    pub(super) max: usize,
    pub(super) lease_ms: u64,
}

/// One queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) ready: BTreeSet<ReadyPlace>,
    /// In the order they asked.
    pub(super) waiters: BTreeMap<CallId, Waiter>,
    /// Tasks that have not ended, far ones included.
    pub(super) live: u64,
    pub(super) leased: u64,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.live == 0 && self.waiters.is_empty()
    }
}

/// All queues that have a live task or a waiting call, by name. A queue appears on first use and vanishes when idle.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_name: BTreeMap<QueueName, Queue>,
    /// Which queue each waiting call waits on.
    waiting: BTreeMap<CallId, QueueName>,
}

impl Queues {
    pub(super) fn get(&self, name: &QueueName) -> Option<&Queue> {
        self.by_name.get(name)
    }

    /// The queue, made if it is not there.
    pub(super) fn open(&mut self, name: &QueueName) -> &mut Queue {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.clone(), Queue::default());
        }
        self.by_name.get_mut(name).expect("it was made if it was not there")
    }

    /// Forgets the queue if it is idle.
    pub(super) fn tidy(&mut self, name: &QueueName) {
        if self.by_name.get(name).is_some_and(Queue::is_idle) {
            self.by_name.remove(name);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&QueueName, &Queue)> {
        self.by_name.iter()
    }

    pub(super) fn wait(&mut self, name: &QueueName, call: CallId, waiter: Waiter) {
        self.open(name).waiters.insert(call, waiter);
        self.waiting.insert(call, name.clone());
    }

    /// Ends a wait; whether the call was waiting.
    pub(super) fn end_wait(&mut self, call: CallId) -> bool {
        let Some(name) = self.waiting.remove(&call) else { return false };
        self.open(&name).waiters.remove(&call);
        self.tidy(&name);
        true
    }

    /// The call that has waited longest, in all.
    pub(super) fn first_waiting(&self) -> Option<CallId> {
        self.waiting.first_key_value().map(|(&call, _)| call)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
