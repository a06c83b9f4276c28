//! The records themselves, without the orders of the look-ups.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{EngineState, Outcome, Seq, Task, TaskEffect};

use crate::history::{Histories, HistoryLimits};

/// The state of a shard, by id; a [`Table`](super::Table) adds the orders.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Records {
    live: BTreeMap<u64, Arc<Task>>,
    histories: Histories,
    state: EngineState,
    live_bytes: u64,
}

/// The change that an effect made to the live tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Change {
    /// The record that is live no more.
    pub(super) old: Option<Arc<Task>>,
    /// The record that is live now.
    pub(super) new: Option<Arc<Task>>,
}

impl Records {
    pub(super) fn new(secret: [u8; 16], history: HistoryLimits) -> Self {
        Self {
            live: BTreeMap::new(),
            histories: Histories::new(secret, history),
            state: EngineState::default(),
            live_bytes: 0,
        }
    }

    /// Takes one effect in. An effect that is not newer than the known record of its task changes nothing.
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
                if ended.outcome != Outcome::Forgotten {
                    self.histories.add(ended);
                }
                Change { old, new: None }
            }
        }
    }

    /// Takes a state of the engine in.
    pub(super) fn join_state(&mut self, state: EngineState) {
        self.state.join(state);
    }

    pub(super) fn state(&self) -> EngineState {
        self.state
    }

    pub(super) fn live(&self) -> &BTreeMap<u64, Arc<Task>> {
        &self.live
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(super) fn histories_mut(&mut self) -> &mut Histories {
        &mut self.histories
    }

    pub(super) fn histories(&self) -> &Histories {
        &self.histories
    }

    /// The live task with this id.
    pub(super) fn get(&self, id: u64) -> Option<&Arc<Task>> {
        self.live.get(&id)
    }

    fn known_seq(&self, id: u64) -> Option<Seq> {
        let live = self.live.get(&id).map(|task| task.seq);
        live.or_else(|| self.histories.seq_of(id))
    }
}

/// An upper bound of the bytes of a task's record in a frame or a checkpoint.
pub(crate) fn record_bytes(task: &Task) -> u64 {
    // Each number at its longest: ten bytes and a tag.
    const FIXED: usize = 192;
    let extra = task.extra.as_ref().map_or(0, |extra| 160 + extra.text_bytes());
    let tags: usize = task.body.tags.iter().map(|tag| tag.as_str().len() + 10).sum();
    let names = task.queue.as_str().len() + task.key.as_str().len() + task.body.content_type.len();
    (FIXED + names + extra + tags + task.body.payload_bytes()) as u64
}
