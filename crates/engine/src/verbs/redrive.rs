//! Redrive: a dead task lives again.

use std::sync::Arc;

use crate::calls::{RedriveError, TaskView};
use crate::ledger::task_bytes;
use crate::name::QueueName;
use crate::slot::Slot;
use crate::task::Redriven;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Redrives a task of this queue for its owner.
    pub(super) fn redrive(&mut self, queue: &QueueName, slot: Slot) -> Result<TaskView, RedriveError> {
        // The task may be dead and not seem so: the state in memory was perhaps not written down, and never will be.
        self.ledger.check_changes()?;
        if self.residence.task(slot).queue != *queue {
            return Err(RedriveError::NotFound);
        }
        self.decide_redrive(slot, Redriven::ByOwner)
    }

    /// Gives a dead task another life.
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
        if let Some(limit) = self.dispatch.backlog_limit(&task.queue) {
            return Err(RedriveError::BacklogFull { limit });
        }
        // The task's body may have to be written again.
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
        self.place(slot);
        Ok(self.view(slot))
    }
}
