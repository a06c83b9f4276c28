//! Tasks whose record is in the log and in memory, and in no segment yet.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tickwheel_engine::{Place, Seq, Task};

use crate::table::record_bytes;

/// The fresh tasks, by slot and in the order of their places.
///
/// The next checkpoint writes them into segments, so there are never more than the log has commits since the last one. The
/// record itself is shared with the engine while that has the task too.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Fresh {
    slots: Vec<Option<Held>>,
    free: Vec<u32>,
    by_place: BTreeMap<Place, u32>,
    /// Bytes of all records, about and not below.
    bytes: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct Held {
    task: Arc<Task>,
    /// The change whose record in the log has the body.
    body_seq: Seq,
}

impl Fresh {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The task in this slot.
    pub(crate) fn get(&self, slot: u32) -> &Arc<Task> {
        &self.held(slot).task
    }

    /// The change whose record in the log has the body of the task in this slot.
    pub(crate) fn body_seq(&self, slot: u32) -> Seq {
        self.held(slot).body_seq
    }

    fn held(&self, slot: u32) -> &Held {
        self.slots[slot as usize].as_ref().expect("a slot is known for as long as its task is fresh")
    }

    pub(crate) fn insert(&mut self, task: Arc<Task>, body_seq: Seq) -> u32 {
        self.bytes += record_bytes(&task);
        let place = Place::of(&task);
        let held = Some(Held { task, body_seq });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = held;
                slot
            }
            None => {
                self.slots.push(held);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 tasks between two checkpoints")
            }
        };
        let before = self.by_place.insert(place, slot);
        debug_assert!(before.is_none(), "two tasks have the place {place:?}");
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Arc<Task> {
        let held =
            self.slots[slot as usize].take().expect("a slot is known for as long as its task is fresh");
        self.by_place.remove(&Place::of(&held.task));
        self.bytes -= record_bytes(&held.task);
        self.free.push(slot);
        held.task
    }

    /// The first one behind `after`.
    pub(crate) fn first_behind(&self, after: Place) -> Option<(Place, &Arc<Task>)> {
        let (place, slot) = self.by_place.range((Bound::Excluded(after), Bound::Unbounded)).next()?;
        Some((*place, self.get(*slot)))
    }

    /// Those behind `after`, in order.
    pub(crate) fn behind(&self, after: Place) -> impl Iterator<Item = &Arc<Task>> {
        self.by_place.range((Bound::Excluded(after), Bound::Unbounded)).map(|(_, slot)| self.get(*slot))
    }
}
