//! The choice of the ready tasks that a lease gets.

use std::collections::BTreeMap;

use super::Dispatch;
use super::line::InLine;
use super::ready::ReadyKey;
use crate::bounds::Bounds;
use crate::name::{Group, QueueName};
use crate::residence::{Residence, Slot};
use crate::runs::Ordered;
use crate::task::Task;
use crate::time::Now;

/// The outcome of a choice: the ready tasks that a lease gets, or `Unknown`.
#[derive(Debug)]
pub(super) enum Choice {
    These(Vec<Slot>),
    /// The tasks cannot be chosen yet, because some records have to be fetched first.
    Unknown,
}

/// The size that the bodies of one answer may still have.
#[derive(Debug)]
pub(super) struct Room {
    /// Bytes; `None`: no task was taken yet, and the first one always has room.
    left: Option<u64>,
    max: u64,
    /// A task had no room.
    is_used_up: bool,
}

impl Room {
    pub(super) fn of(bounds: &Bounds) -> Self {
        Self { left: None, max: bounds.lease_bytes, is_used_up: false }
    }

    /// Takes the room for one more task. `false`: there is not enough.
    pub(super) fn take(&mut self, task: &Task) -> bool {
        let bytes = task.body.payload_bytes() as u64;
        self.is_used_up = self.left.is_some_and(|left| bytes > left);
        if !self.is_used_up {
            self.left = Some(self.left.unwrap_or(self.max).saturating_sub(bytes));
        }
        !self.is_used_up
    }
}

impl Dispatch {
    /// Chooses the ready tasks of a queue that a lease of at most `max` tasks gets now. Their bodies together have at most
    /// [`lease_bytes`](crate::Bounds::lease_bytes), or there is one task. Parks each task that the search passes over because its group has
    /// as many tasks as the queue's settings allow, in workers' hands or chosen before in this call.
    pub(super) fn choose(&mut self, residence: &Residence, now: Now, name: &QueueName, max: usize) -> Choice {
        let Some(no) = self.queues.number(name) else { return Choice::These(Vec::new()) };
        let queue = self.queues.numbered_mut(no);
        let allowed = usize::try_from(queue.allowance(now)).unwrap_or(usize::MAX).min(max);
        let per_group = queue.record.settings.max_in_flight_per_group;
        let mut counted: BTreeMap<&Group, u64> = BTreeMap::new();
        let (mut chosen, mut full) = (Vec::new(), Vec::new());
        let mut room = Room::of(&self.bounds);
        for place in queue.line.whole_in_front() {
            if chosen.len() >= allowed {
                break;
            }
            if let Some(per_group) = per_group
                && let Some(group) = residence.task(place.slot).group()
            {
                let leased = || queue.groups.get(group).map_or(0, |of| of.leased);
                let count = counted.entry(group).or_insert_with(leased);
                if *count >= per_group {
                    full.push((*place, group));
                    continue;
                }
                *count += 1;
            }
            if !room.take(residence.task(place.slot)) {
                break;
            }
            chosen.push(place.slot);
        }
        let is_unknown = chosen.len() < allowed && !room.is_used_up && queue.line.stubs().first().is_some();
        for (place, group) in full {
            queue.line.remove(&place);
            queue.park(group, InLine::Whole(place));
        }
        if is_unknown { Choice::Unknown } else { Choice::These(chosen) }
    }

    /// Chooses the next task of this queue for a lease, as [`choose`](Self::choose) does. Returns the choice with the key of the next task
    /// in the ready order, whole or a stub, so that the caller can compare the tasks of several queues. `None`: the queue has no task that
    /// may be handed out now.
    pub(super) fn choose_first(
        &mut self,
        residence: &Residence,
        now: Now,
        name: &QueueName,
    ) -> Option<(ReadyKey, Choice)> {
        let choice = self.choose(residence, now, name, 1);
        let key = match &choice {
            Choice::These(slots) => slots.first().map(|&slot| ReadyKey::of(residence.task(slot))),
            // The first stub gives the key: no whole task in front of the stub may be handed out.
            Choice::Unknown => {
                self.queues.get(name).and_then(|queue| queue.line.stubs().first()).map(Ordered::key)
            }
        };
        key.map(|key| (key, choice))
    }
}
