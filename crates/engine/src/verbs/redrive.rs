//! Redrive: makes a dead task live again.

use std::sync::Arc;

use crate::calls::{RedriveError, TaskView};
use crate::ledger::task_bytes;
use crate::name::QueueName;
use crate::residence::Slot;
use crate::task::Redriven;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Makes a dead task of this queue live again, for its owner.
    pub(super) fn redrive(&mut self, queue: &QueueName, slot: Slot) -> Result<TaskView, RedriveError> {
        // A failed store is reported first. The state in memory may not have been written down, so a task that is dead in the store may not
        // seem dead in memory.
        self.ledger.check_changes()?;
        if self.residence.task(slot).queue != *queue {
            return Err(RedriveError::NotFound);
        }
        self.decide_redrive(slot, Redriven::ByOwner)
    }

    /// Makes a dead task live again and due at once, unless a live task has its key or the queue drains or is full. If another dead task has the key,
    /// takes the key from that task.
    pub(super) fn decide_redrive(&mut self, slot: Slot, by: Redriven) -> Result<TaskView, RedriveError> {
        self.ledger.check_changes()?;
        let task = Arc::clone(self.residence.task(slot));
        if !self.residence.get(slot).is_dead() {
            return Err(RedriveError::NotFound);
        }
        if let Some(live) = self.residence.live(&task.queue, &task.key) {
            let live = self.residence.task(live);
            return Err(RedriveError::Live { id: live.id, version: live.version });
        }
        self.dispatch.may_grow(&task.queue)?;
        // The body of the task may have to be written again, so room is taken for the whole record.
        self.ledger.take_room(task_bytes(&task, false))?;
        let other = self.residence.dead(&task.queue, &task.key).filter(|&other| other != slot);
        self.unplace(slot);
        self.together(|tasks| {
            if let Some(other) = other {
                tasks.take_key_from(other);
            }
            tasks.live_again(slot, by);
        });
        self.residence.index_key(slot);
        self.dispatch.task_revived(&task);
        self.ledger.counters_mut().scheduled_total += u64::from(by == Redriven::ByOwner);
        self.place_asked(slot);
        Ok(self.view(slot))
    }
}
