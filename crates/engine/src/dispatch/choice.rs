//! Which ready tasks a lease gets.

use std::collections::BTreeMap;

use super::Dispatch;
use super::line::InLine;
use super::ready::ReadyKey;
use crate::name::{Group, QueueName};
use crate::residence::Residence;
use crate::runs::Ordered;
use crate::slot::Slot;
use crate::time::Now;

/// Which ready tasks a lease gets.
#[derive(Debug)]
pub(super) enum Choice {
    These(Vec<Slot>),
    /// Records have to be fetched first, before the tasks are known.
    Unknown,
}

impl Dispatch {
    /// Which ready tasks of a queue a lease of at most `max` gets now. Tasks that the limit of their group holds up are parked on the way.
    pub(super) fn choose(&mut self, residence: &Residence, now: Now, name: &QueueName, max: usize) -> Choice {
        let Some(no) = self.queues.number(name) else { return Choice::These(Vec::new()) };
        let queue = self.queues.numbered_mut(no);
        let allowed = usize::try_from(queue.allowance(now)).unwrap_or(usize::MAX).min(max);
        let per_group = queue.record.settings.max_in_flight_per_group;
        let mut counted: BTreeMap<&Group, u64> = BTreeMap::new();
        let (mut chosen, mut full) = (Vec::new(), Vec::new());
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
            chosen.push(place.slot);
        }
        let is_unknown = chosen.len() < allowed && queue.line.stubs().first().is_some();
        for (place, group) in full {
            queue.line.remove(&place);
            queue.park(group, InLine::Whole(place));
        }
        if is_unknown { Choice::Unknown } else { Choice::These(chosen) }
    }

    /// The next task of this queue for a lease, with its key in the ready order, so that it can be compared with those of other queues.
    /// `None`: the queue hands nothing out.
    pub(super) fn choose_first(
        &mut self,
        residence: &Residence,
        now: Now,
        name: &QueueName,
    ) -> Option<(ReadyKey, Choice)> {
        let choice = self.choose(residence, now, name, 1);
        let key = match &choice {
            Choice::These(slots) => slots.first().map(|&slot| ReadyKey::of(residence.task(slot))),
            // No whole task in front of this stub may be handed out.
            Choice::Unknown => {
                self.queues.get(name).and_then(|queue| queue.line.stubs().first()).map(Ordered::key)
            }
        };
        key.map(|key| (key, choice))
    }
}
