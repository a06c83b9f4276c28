//! Tasks whose record is in the log and in memory, and in no segment yet.

use std::sync::Arc;

use tickwheel_engine::{DueKey, Seq, Task};

use super::order::{Entry, Order};
use crate::table::record_bytes;

/// The tasks in the memtable, by slot and in the order of their due keys.
///
/// Each checkpoint writes the tasks of the memtable into segments, except tasks that change meanwhile. So the memtable never has more tasks
/// than the log has changes since the start of the last durable checkpoint. The memtable and the engine share a record while the engine has
/// the task too.
#[derive(Clone, Debug)]
pub(crate) struct Memtable {
    slots: Vec<Option<Held>>,
    free: Vec<u32>,
    order: Order,
    /// Bytes of all records, as an estimate that is not too low.
    bytes: u64,
}

/// A task, with copies of some of its values. The values are needed so often that reading them should not cost a fetch of the record from
/// memory.
#[derive(Clone, Debug)]
struct Held {
    task: Arc<Task>,
    place: DueKey,
    seq: Seq,
    /// The change whose log record has the body of the task.
    body_seq: Seq,
    bytes: u64,
}

impl Held {
    fn new(task: Arc<Task>, body_seq: Seq) -> Self {
        Self { place: DueKey::of(&task), seq: task.seq, body_seq, bytes: record_bytes(&task), task }
    }
}

impl Memtable {
    /// Makes an empty memtable. At any time, fewer than `tail_max` of its newest entries are unsorted.
    pub(crate) fn new(tail_max: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), order: Order::new(tail_max), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the task in this slot.
    pub(crate) fn get(&self, slot: u32) -> &Arc<Task> {
        &self.held(slot).task
    }

    /// Returns the number of the last change of the task in this slot.
    pub(crate) fn seq(&self, slot: u32) -> Seq {
        self.held(slot).seq
    }

    /// Returns the number of the change whose log record has the body of the task in this slot.
    pub(crate) fn body_seq(&self, slot: u32) -> Seq {
        self.held(slot).body_seq
    }

    fn held(&self, slot: u32) -> &Held {
        self.slots[slot as usize]
            .as_ref()
            .expect("a slot is known for as long as its task is in the memtable")
    }

    pub(crate) fn insert(&mut self, task: Arc<Task>, body_seq: Seq) -> u32 {
        let held = Held::new(task, body_seq);
        let place = held.place;
        self.bytes += held.bytes;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(held);
                slot
            }
            None => {
                self.slots.push(Some(held));
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 tasks between two checkpoints")
            }
        };
        self.order.enter(place, slot);
        slot
    }

    /// Gives the task in this slot a new record.
    pub(crate) fn replace(&mut self, slot: u32, task: Arc<Task>, body_seq: Seq) {
        let held = Held::new(task, body_seq);
        let place = held.place;
        self.bytes += held.bytes;
        let before = self.slots[slot as usize].replace(held);
        let before = before.expect("a slot is known for as long as its task is in the memtable");
        self.bytes -= before.bytes;
        if before.place != place {
            self.order.enter(place, slot);
            self.order.died(|entry| is_live(&self.slots, entry));
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Arc<Task> {
        let held = self.slots[slot as usize]
            .take()
            .expect("a slot is known for as long as its task is in the memtable");
        self.order.died(|entry| is_live(&self.slots, entry));
        self.bytes -= held.bytes;
        self.free.push(slot);
        held.task
    }

    /// Returns the tasks behind `after`, in the order of their due keys.
    pub(crate) fn behind(&self, after: DueKey) -> impl Iterator<Item = (DueKey, &Arc<Task>)> {
        let mut last = after;
        self.order.behind(after).filter_map(move |entry| {
            let (place, slot) = entry;
            // A slot whose due key changed and later changed back has two equal entries.
            if place == last || !is_live(&self.slots, entry) {
                return None;
            }
            last = place;
            Some((place, self.get(slot)))
        })
    }

    /// Loads the beginning of the record of the task in this slot into the processor's cache, if the slot has a task. See
    /// [`Ids::touch`](crate::index::Ids::touch).
    pub(crate) fn touch(&self, slot: u32) {
        if let Some(held) = &self.slots[slot as usize] {
            core::hint::black_box(held.task.id);
        }
    }

    /// Loads the beginnings of these tasks' records, bodies, keys and payloads into the processor's cache.
    pub(crate) fn touch_records(&self, entries: &[(DueKey, u32)]) {
        let tasks = || entries.iter().filter_map(|(_, slot)| self.slots[*slot as usize].as_ref());
        // Each round follows one pointer of every task: to the task, to its body, to the bytes. So the waits for memory of one round
        // overlap.
        tasks().for_each(|held| _ = core::hint::black_box(held.task.id));
        tasks().for_each(|held| _ = core::hint::black_box(held.task.body.payload.len()));
        for held in tasks() {
            let task = &held.task;
            core::hint::black_box((
                task.key.as_str().as_bytes().first().copied(),
                task.body.payload.first().copied(),
            ));
        }
    }

    /// Returns the due keys and slots of all tasks in the memtable, in order. The snapshot does not change when the tasks do; see
    /// [`at`](Self::at).
    pub(crate) fn snapshot(&self) -> Vec<(DueKey, u32)> {
        self.order.sorted(|entry| is_live(&self.slots, entry))
    }

    /// Returns the task of an entry of a snapshot, if its slot still has a task with the same due key and without a change after `seq`.
    pub(crate) fn at(&self, entry: (DueKey, u32), seq: Seq) -> Option<&Arc<Task>> {
        let held = self.slots[entry.1 as usize].as_ref()?;
        (held.place == entry.0 && held.seq <= seq).then_some(&held.task)
    }
}

fn is_live(slots: &[Option<Held>], (place, slot): Entry) -> bool {
    slots[slot as usize].as_ref().is_some_and(|held| held.place == place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Compares the memtable with an ordered map. Tasks are added, changed with the same or another due time, and removed, so often that
    /// runs are merged and dead entries are swept.
    #[test]
    fn it_has_what_an_ordered_map_has() {
        let (mut memtable, mut model) = (Memtable::new(512), BTreeMap::new());
        let mut slots: Vec<u32> = Vec::new();
        let mut state = 3_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for seq in 1..=30_000_u64 {
            let due_ms = random(5_000) as i64;
            let mut task = crate::conformance::sample_task(seq, seq, "q", &format!("k{seq}"), due_ms);
            // The set of tasks grows and shrinks in turns.
            let grows = random(10) < if (seq / 6_000) % 2 == 0 { 7 } else { 2 };
            let chosen = (!slots.is_empty()).then(|| random(slots.len() as u64) as usize);
            match chosen {
                Some(at) if !grows && random(3) > 0 => {
                    let gone = memtable.remove(slots.swap_remove(at));
                    assert!(model.remove(&DueKey::of(&gone)).is_some());
                }
                Some(at) if !grows => {
                    let before = Arc::clone(memtable.get(slots[at]));
                    if random(2) == 0 {
                        (task.due_at, task.put_seq) = (before.due_at, before.put_seq);
                    }
                    model.remove(&DueKey::of(&before));
                    model.insert(DueKey::of(&task), seq);
                    memtable.replace(slots[at], Arc::new(task), Seq(seq));
                }
                _ => {
                    model.insert(DueKey::of(&task), seq);
                    slots.push(memtable.insert(Arc::new(task), Seq(seq)));
                }
            }
            if seq % 997 == 0 || seq < 700 {
                let all: Vec<_> = model.iter().map(|(place, seq)| (*place, *seq)).collect();
                let found = memtable.behind(DueKey::START).map(|(place, task)| (place, task.seq.0));
                assert_eq!(found.collect::<Vec<_>>(), all, "after {seq}");
                if let Some((middle, _)) = all.get(all.len() / 2) {
                    let behind = memtable.behind(*middle).count();
                    assert_eq!(behind, all.len() - all.len() / 2 - 1);
                }
                let snapshot = memtable.snapshot();
                let places: Vec<_> = snapshot.iter().map(|(place, _)| *place).collect();
                assert_eq!(places, model.keys().copied().collect::<Vec<_>>());
                assert!(snapshot.iter().all(|entry| memtable.at(*entry, Seq(seq)).is_some()));
            }
        }
        let bytes: u64 = slots.iter().map(|slot| record_bytes(memtable.get(*slot))).sum();
        assert_eq!(memtable.bytes(), bytes);
    }
}
