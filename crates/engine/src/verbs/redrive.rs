//! Redrive: a dead task lives again.

use std::sync::Arc;

use crate::calls::{Answer, Redrive, RedriveError, TaskView};
use crate::input::CallId;
use crate::ledger::task_bytes;
use crate::reads::Keyed;
use crate::seam::Found;
use crate::slot::Slot;
use crate::task::Redriven;
use crate::tasks::Tasks;
use crate::time::Now;

impl Tasks<'_> {
    /// The store answered with the task that is to be redriven. Only that task is taken into memory.
    pub(crate) fn dead_found(
        &mut self,
        now: Now,
        call: CallId,
        redrive: Redrive,
        found: Found,
    ) -> Option<Keyed> {
        if let Found::Live(task) = found
            && task.dead().is_some()
            && task.queue == redrive.queue
        {
            self.load(now, task);
        }
        match self.residence.by_id(redrive.id) {
            Some(slot) => self.redrive_known(call, redrive, slot),
            None => {
                self.ledger.answer(call, Answer::Redrive(Err(RedriveError::NotFound)));
                None
            }
        }
    }

    /// Starts the redrive of a task in memory. Returns the command on its key, which has to run first.
    pub(crate) fn redrive_known(&mut self, call: CallId, redrive: Redrive, slot: Slot) -> Option<Keyed> {
        let entry = self.residence.get(slot);
        if !entry.is_dead() || entry.task.queue != redrive.queue {
            // The task may still be dead: the state in memory was perhaps not written down, and never will be.
            let why =
                self.ledger.check_changes().map_or_else(RedriveError::from, |()| RedriveError::NotFound);
            self.ledger.answer(call, Answer::Redrive(Err(why)));
            return None;
        }
        let key = entry.task.key.clone();
        Some(Keyed::Redrive { redrive, key })
    }

    /// Redrives a task whose key is in memory, or known to lead to no task. Returns the command if the task has left memory.
    pub(crate) fn redrive_keyed(&mut self, now: Now, call: CallId, redrive: Redrive) -> Option<Redrive> {
        let Some(slot) = self.residence.by_id(redrive.id) else {
            // The task left memory while its key was looked up.
            return Some(redrive);
        };
        let answer = self.decide_redrive(now, slot, Redriven::ByOwner);
        self.ledger.answer(call, Answer::Redrive(answer));
        self.evict(slot, now);
        None
    }

    /// Gives a dead task another life.
    pub(crate) fn decide_redrive(
        &mut self,
        now: Now,
        slot: Slot,
        by: Redriven,
    ) -> Result<TaskView, RedriveError> {
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
            tasks.live_again(now, slot, by);
        });
        self.residence.index_key(slot);
        self.dispatch.task_revived(&task);
        self.ledger.counters_mut().scheduled_total += u64::from(by == Redriven::ByOwner);
        self.place(slot, now);
        Ok(self.view(slot))
    }
}
