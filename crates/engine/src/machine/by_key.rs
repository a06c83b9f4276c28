//! What is done to a live task that is known by its key: it runs now, or is taken from its worker.

use super::Engine;
use super::dead::fail;
use super::entries::{At, Slot};
use crate::calls::{Answer, ByKey, ByKeyError, KeyAct, State, TaskView};
use crate::input::CallId;
use crate::task::{Ended, Failed, Redriven};
use crate::time::Now;

impl Engine {
    /// Acts on a task whose key is in memory, or of which `gone` says what the store knows.
    pub(super) fn by_key(&mut self, now: Now, call: CallId, by_key: &ByKey, gone: Option<&Ended>) {
        let answer = match self.refusal_of_changes() {
            Some(why) => Err(why.into()),
            None => self.decide_by_key(now, by_key, gone),
        };
        self.answer(call, Answer::ByKey(answer));
    }

    fn decide_by_key(
        &mut self,
        now: Now,
        by_key: &ByKey,
        gone: Option<&Ended>,
    ) -> Result<TaskView, ByKeyError> {
        let ByKey { queue, key, act, if_version } = by_key;
        let Some(slot) = self.live(queue, key) else {
            if self.dead(queue, key).is_some() {
                return Err(match act {
                    KeyAct::Run => ByKeyError::Dead,
                    KeyAct::Release => ByKeyError::NotLeased,
                });
            }
            let done = self.is_done(now, queue, key, gone);
            return Err(if done { ByKeyError::Done } else { ByKeyError::NotFound });
        };
        let entry = self.entries.get(slot);
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

    /// Takes a task from its worker. The attempt counts, and is not the last one, whatever the retry policy allows: its owner wants another
    /// worker to have it.
    fn release(&mut self, now: Now, slot: Slot) {
        let At::Leased(held) = &self.entries.get(slot).at else {
            unreachable!("only a leased task has a worker")
        };
        let no = held.no;
        self.unplace(slot);
        let (fence, version) = (self.next_lease, self.applied.next());
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
