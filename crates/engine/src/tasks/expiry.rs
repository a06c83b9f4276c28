//! Expiry: a task that is not done by its `expire_at` is given up, unless a worker has the task.

use super::Tasks;
use crate::dispatch::ReadyKey;
use crate::name::QueueName;
use crate::residence::{At, Expiry, QueueNo, Slot};
use crate::seam::Found;
use crate::task::{Death, Task};

impl Tasks<'_> {
    /// Watches the expiry of a live task in memory, if the task has one.
    pub(crate) fn watch_expiry(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task).filter(|_| task.dead().is_none()) {
            self.residence.expiries().watch(expiry, ReadyKey::of(task));
        }
    }

    /// Notes the present place of a task that is about to become a stub. When the stub expires, its due time tells whether the stub is in a
    /// line.
    pub(super) fn watch_shrunk(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task) {
            self.residence.expiries().set_key(&expiry, ReadyKey::of(task));
        }
    }

    pub(crate) fn unwatch_expiry(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task) {
            self.residence.expiries().unwatch(&expiry);
        }
    }

    fn expiry_of(&self, task: &Task) -> Option<Expiry> {
        let at = task.expire_at()?;
        Some((at, task.id, self.dispatch.number(&task.queue)))
    }

    /// Gives up the tasks whose expiry has passed, and asks for the records of expired stubs. Tasks that workers have are left alone,
    /// because they may still be finished.
    pub(super) fn expire(&mut self) {
        if !self.ledger.takes_changes() {
            return;
        }
        while let Some(((_, id, queue), key)) = self.residence.expiries().pop(self.now) {
            match self.residence.by_id(id) {
                Some(slot) => self.expire_one(slot),
                None => self.expire_stub(id, queue, key),
            }
        }
    }

    /// Takes in that a stub has expired. The queue then counts the task as dead, and the record is fetched so that the death can be written
    /// down. `key`: the place of the task in the ready order. A task that is due is in its line.
    fn expire_stub(&mut self, id: u64, queue: QueueNo, key: ReadyKey) {
        let in_line = Some(key).filter(|key| key.due_at <= self.now.falls_due());
        if let Some(name) = self.dispatch.stub_expired(queue, id, in_line) {
            self.residence.want_overdue(id, Some(name));
        }
    }

    /// Gives a task up if it has expired, unless a worker has it or the engine takes no changes any more.
    pub(crate) fn expire_one(&mut self, slot: Slot) {
        let entry = self.residence.get(slot);
        let expired = entry.task.expire_at().is_some_and(|at| at <= self.now.falls_due()) && !entry.is_dead();
        let waits = matches!(entry.at, At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. });
        if expired && waits && self.ledger.takes_changes() {
            self.unplace(slot);
            self.die(slot, Death::Expired);
        }
    }

    /// Watches the expiry of a task that a scan brought and that stays a stub. If the task has expired by now, treats it as
    /// [`expire_stub`](Self::expire_stub) does.
    pub(crate) fn watch_stub(&mut self, task: &Task) {
        match self.expiry_of(task) {
            Some((at, id, queue)) if at <= self.now.falls_due() && self.ledger.takes_changes() => {
                self.expire_stub(id, queue, ReadyKey::of(task));
            }
            Some(expiry) => self.residence.expiries().watch(expiry, ReadyKey::of(task)),
            None => {}
        }
    }

    /// Asks for the record of a dead task that is a stub, to forget the task. Does nothing once the engine takes no changes any more.
    pub(crate) fn forget_stub(&mut self, id: u64) {
        if self.ledger.takes_changes() {
            self.residence.want_overdue(id, None);
        }
    }

    /// Takes in the record of a stub that has expired (`expired` is its queue) or is to be forgotten (`None`). Loading the record gives the
    /// task up or forgets it.
    pub(crate) fn overdue_found(&mut self, id: u64, expired: Option<&QueueName>, found: Found) {
        if let Some(name) = expired {
            self.dispatch.end_expired_stub(name, id);
        }
        if let Found::Live(task) = found
            && let Some(slot) = self.load(task)
        {
            self.evict(slot);
        }
        if let Some(name) = expired {
            self.dispatch.tidy(name);
        }
    }
}
