//! [`WriteBatch`]: collects the changes of the next commits, also while a commit is in flight.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use crate::bounds::Bounds;
use crate::residence::{BatchSlot, Slot};
use crate::schedule::{ScheduleId, ScheduleRecord};
use crate::seam::{Batch, Before, TaskEffect};
use crate::settings::{Rule, RuleEffect, RuleName};
use crate::state::EngineState;
use crate::task::{Body, Task};
use crate::time::Seq;

/// A sealed batch, to which nothing more is added.
#[derive(Debug)]
pub(super) struct SealedBatch {
    pub(super) batch: Batch,
    /// The entries that the batch touches, one for each effect on a task.
    pub(super) slots: Vec<Slot>,
    /// The seq of the last change in the batch.
    pub(super) seq: Seq,
    /// The growth that the batch brings (bytes), as estimated when the room was taken.
    pub(super) growth: u64,
}

impl SealedBatch {
    /// Makes an empty batch. Its commit changes nothing; the reply tells how much room the store has.
    pub(super) fn nothing(durable: Seq) -> Self {
        Self { batch: Batch::default(), slots: Vec::new(), seq: durable, growth: 0 }
    }
}

/// Collects changes into batches. A batch has at most one effect on each task.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    /// The number of the current batch. By this number an entry can tell whether its effect is in the current batch.
    number: u64,
    batch: Batch,
    /// The index of each rule in the batch.
    rules_at: BTreeMap<RuleName, usize>,
    slots: Vec<Slot>,
    bytes: u64,
    growth: u64,
    note_time: bool,
    sealed: VecDeque<SealedBatch>,
    /// The growth of all sealed batches that were not handed to the store yet (bytes).
    growth_sealed: u64,
    /// The batch is full at this many effects, or at this many bytes.
    effects_max: usize,
    bytes_max: u64,
}

impl WriteBatch {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self { effects_max: bounds.batch_effects, bytes_max: bounds.batch_bytes, ..Self::default() }
    }

    /// Whether the batch of this effect is sealed. The batch may be durable by now.
    pub(super) fn is_sealed(&self, (number, _): BatchSlot) -> bool {
        number < self.number
    }

    /// Adds the effect on the task in `slot`. `batch_slot`: the place of the last effect on this task. If that place is in the current
    /// batch, the new effect replaces the last one. Returns the place of the new effect. `before`: the
    /// state of the task before this batch, or before this effect; an effect that replaces another keeps the state of the first.
    pub(super) fn push(
        &mut self,
        slot: Slot,
        batch_slot: Option<BatchSlot>,
        effect: TaskEffect,
        before: Before,
    ) -> BatchSlot {
        self.bytes += bytes_of(&effect);
        match batch_slot {
            Some((number, index)) if number == self.number => {
                let before = &mut self.batch.effects[index as usize];
                assert_eq!(before.id(), effect.id(), "an entry's place in the batch is its own");
                *before = effect;
                (number, index)
            }
            _ => {
                let index =
                    u32::try_from(self.batch.effects.len()).expect("a batch is closed long before 2^32");
                self.batch.effects.push(effect);
                self.batch.before.push(before);
                self.slots.push(slot);
                (self.number, index)
            }
        }
    }

    pub(super) fn set_state(&mut self, state: EngineState) {
        self.batch.state = Some(state);
    }

    /// Adds a change of a rule. The change replaces an earlier change of the same rule in this batch.
    pub(super) fn push_rule(&mut self, (name, rule): RuleEffect) {
        self.bytes += rule_bytes(&name, rule.as_deref());
        match self.rules_at.entry(name) {
            Entry::Occupied(at) => self.batch.rules[*at.get()].1 = rule,
            Entry::Vacant(free) => {
                self.batch.rules.push((free.key().clone(), rule));
                free.insert(self.batch.rules.len() - 1);
            }
        }
    }

    /// Adds the id of a row of the inbox. Its effect has to be in this batch.
    pub(super) fn push_taken(&mut self, row: u64) {
        self.bytes += ROW_BYTES;
        self.batch.taken.push(row);
    }

    pub(super) fn note_time(&mut self) {
        self.note_time = true;
    }

    pub(super) fn notes_time(&self) -> bool {
        self.note_time
    }

    pub(super) fn grow(&mut self, bytes: u64) {
        self.growth += bytes;
    }

    /// Returns the growth of the current batch and of the sealed batches that were not handed to the store yet (bytes).
    pub(super) fn growth(&self) -> u64 {
        self.growth + self.growth_sealed
    }

    pub(super) fn is_full(&self) -> bool {
        let effects = self.batch.effects.len() + self.batch.rules.len();
        effects.max(self.batch.taken.len()) >= self.effects_max || self.bytes >= self.bytes_max
    }

    fn is_empty(&self) -> bool {
        let Batch { effects, before: _, state, rules, taken } = &self.batch;
        effects.is_empty() && state.is_none() && rules.is_empty() && taken.is_empty() && !self.note_time
    }

    /// Seals the batch, and begins a new one. `seq`: the seq of the last change in the batch. Does nothing if the batch is empty.
    pub(super) fn seal(&mut self, seq: Seq) {
        if self.is_empty() {
            return;
        }
        let growth = core::mem::take(&mut self.growth);
        self.growth_sealed += growth;
        self.sealed.push_back(SealedBatch {
            batch: core::mem::take(&mut self.batch),
            slots: core::mem::take(&mut self.slots),
            seq,
            growth,
        });
        self.rules_at.clear();
        self.number += 1;
        self.bytes = 0;
        self.note_time = false;
    }

    /// Takes out the oldest sealed batch.
    pub(super) fn next_sealed(&mut self) -> Option<SealedBatch> {
        let sealed = self.sealed.pop_front()?;
        self.growth_sealed -= sealed.growth;
        Some(sealed)
    }

    /// Whether more than one sealed batch waits for its commit.
    pub(super) fn has_backlog(&self) -> bool {
        self.sealed.len() > 1
    }

    pub(super) fn has_work(&self) -> bool {
        !self.sealed.is_empty() || !self.is_empty()
    }
}

/// The space that each effect takes in the store beside its texts and its payload (bytes, about).
const FIXED_BYTES: usize = 192;
/// The size of the id of a row of the inbox (bytes).
const ROW_BYTES: u64 = 8;

/// Returns how much an effect adds to the store (bytes, about).
fn bytes_of(effect: &TaskEffect) -> u64 {
    match effect {
        TaskEffect::Stored { task, body_known } => task_bytes(task, *body_known),
        TaskEffect::Ended(ended) => {
            (FIXED_BYTES + ended.queue.as_str().len() + ended.key.as_str().len()) as u64
        }
    }
}

fn rule_bytes(name: &RuleName, rule: Option<&Rule>) -> u64 {
    match (name, rule) {
        (RuleName::Schedule(queue, name), Some(Rule::Schedule(record))) => {
            let id = (queue.clone(), name.clone());
            schedule_bytes(&id, record) + 10 * record.waiting.len() as u64
        }
        (_, Some(Rule::Job(value))) => (FIXED_BYTES + value.len()) as u64,
        (_, Some(Rule::Queue(record))) => {
            let target = record.target.as_ref().map_or(0, |target| target.value.len());
            (FIXED_BYTES + target) as u64
        }
        _ => FIXED_BYTES as u64,
    }
}

/// Returns the size of the record of a schedule, without the instants that wait (bytes, about).
pub(crate) fn schedule_bytes(id: &ScheduleId, record: &ScheduleRecord) -> u64 {
    let texts = id.0.as_str().len() + id.1.as_str().len() + record.schedule.text_bytes();
    let ids = record.running.len() * size_of::<u64>();
    (FIXED_BYTES + texts + ids) as u64
}

/// Returns how much the record of a task adds to the store (bytes, about). `body_known`: the store has the body, or an earlier batch brings
/// it.
pub(crate) fn task_bytes(task: &Task, body_known: bool) -> u64 {
    let body = if body_known { 0 } else { body_bytes(&task.body) };
    let extra = task.extra.as_ref().map_or(0, |extra| 96 + extra.text_bytes());
    (FIXED_BYTES + task.queue.as_str().len() + task.key.as_str().len() + extra + body) as u64
}

fn body_bytes(body: &Body) -> usize {
    let tags: usize = body.tags.iter().map(|tag| tag.as_str().len() + 10).sum();
    body.payload_bytes() + body.content_type.len() + tags
}
