//! Calls on a live task that is named by its key: run the task now, or release it from its worker.

use crate::calls::{ByKey, ByKeyError, KeyAct, State, TaskView};
use crate::residence::{At, Slot};
use crate::task::{Ended, Redriven};
use crate::tasks::{Tasks, revoke};

impl Tasks<'_> {
    /// Acts on the live task of a key. The caller has looked the key up: the task is in memory, or `gone` is the end of the key's last
    /// task, if the store has one.
    pub(crate) fn by_key(&mut self, by_key: &ByKey, gone: Option<&Ended>) -> Result<TaskView, ByKeyError> {
        self.ledger.check_changes()?;
        let ByKey { queue, key, act, if_version } = by_key;
        let Some(slot) = self.residence.live(queue, key) else {
            if self.residence.dead(queue, key).is_some() {
                return Err(match act {
                    KeyAct::Run => ByKeyError::Dead,
                    KeyAct::Release => ByKeyError::NotLeased,
                });
            }
            let done = self.is_done(queue, key, gone);
            return Err(if done { ByKeyError::Done } else { ByKeyError::NotFound });
        };
        let entry = self.residence.get(slot);
        let current = entry.task.version;
        if if_version.is_some_and(|version| version != current) {
            return Err(ByKeyError::VersionMismatch { current });
        }
        let is_leased = entry.state() == Some(State::Leased);
        match (act, entry.state()) {
            (KeyAct::Run, Some(State::Scheduled)) => self.hasten(slot, Redriven::ByOwner)?,
            (KeyAct::Run, _) if is_leased => return Err(ByKeyError::Leased),
            (KeyAct::Run, _) => {}
            (KeyAct::Release, _) if !is_leased => return Err(ByKeyError::NotLeased),
            (KeyAct::Release, _) => self.release(slot),
        }
        Ok(self.view(slot))
    }

    /// Takes a task from its worker and makes it ready. The attempt counts, but does not make the task dead, even if the retry policy
    /// allows no more attempts, because the owner wants another worker to have the task. A task that has expired is given up.
    fn release(&mut self, slot: Slot) {
        let At::Leased(lease) = &self.residence.get(slot).at else {
            unreachable!("only a leased task has a worker")
        };
        let no = lease.no;
        self.unplace(slot);
        self.renew(slot, |task, now, seq| {
            revoke(task, now, no);
            task.version = seq;
        });
        self.make_ready(slot, self.now.wall);
        self.back_from_worker(slot);
    }
}
