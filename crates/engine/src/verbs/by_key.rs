//! Calls on a live task that is known by its key: it runs now, or is taken from its worker.

use crate::calls::{ByKey, ByKeyError, KeyAct, State, TaskView};
use crate::residence::At;
use crate::slot::Slot;
use crate::task::{Ended, Failed, Redriven};
use crate::tasks::{Tasks, fail};
use crate::time::Now;

impl Tasks<'_> {
    /// Acts on a task whose key is in memory. If it is not, `gone` is what the store knows of the last task of the key.
    pub(crate) fn by_key(
        &mut self,
        now: Now,
        by_key: &ByKey,
        gone: Option<&Ended>,
    ) -> Result<TaskView, ByKeyError> {
        self.ledger.check_changes()?;
        let ByKey { queue, key, act, if_version } = by_key;
        let Some(slot) = self.residence.live(queue, key) else {
            if self.residence.dead(queue, key).is_some() {
                return Err(match act {
                    KeyAct::Run => ByKeyError::Dead,
                    KeyAct::Release => ByKeyError::NotLeased,
                });
            }
            let done = self.is_done(now, queue, key, gone);
            return Err(if done { ByKeyError::Done } else { ByKeyError::NotFound });
        };
        let entry = self.residence.get(slot);
        let current = entry.task.version;
        if if_version.is_some_and(|version| version != current) {
            return Err(ByKeyError::VersionMismatch { current });
        }
        let is_leased = entry.state() == Some(State::Leased);
        match (act, entry.state()) {
            (KeyAct::Run, Some(State::Scheduled)) => self.hasten(now, slot, Redriven::ByOwner)?,
            (KeyAct::Run, _) if is_leased => return Err(ByKeyError::Leased),
            (KeyAct::Run, _) => {}
            (KeyAct::Release, _) if !is_leased => return Err(ByKeyError::NotLeased),
            (KeyAct::Release, _) => self.release(now, slot),
        }
        Ok(self.view(slot))
    }

    /// Takes a task from its worker. The attempt counts, but is never the last one, even if the retry policy allows no more: its owner
    /// wants another worker to have the task.
    fn release(&mut self, now: Now, slot: Slot) {
        let At::Leased(lease) = &self.residence.get(slot).at else {
            unreachable!("only a leased task has a worker")
        };
        let no = lease.no;
        self.unplace(slot);
        let (fence, version) = (self.dispatch.fence(), self.ledger.applied().next());
        self.record(slot, |task| {
            fail(task, now, Failed::Revoked, None);
            task.revoked = Some(no);
            task.attempts = task.attempts.saturating_add(1);
            task.version = version;
            task.lease_fence = fence;
            task.lease = None;
        });
        self.make_ready(slot, now.wall);
        self.back_from_worker(slot, now);
    }
}
