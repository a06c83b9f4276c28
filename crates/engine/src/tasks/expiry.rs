//! Tasks expire: a task that is not done by then is given up, unless a worker has it.

use super::Tasks;
use crate::name::QueueName;
use crate::residence::{At, Expiry};
use crate::seam::Found;
use crate::slot::{QueueNo, Slot};
use crate::task::{Death, Task};

impl Tasks<'_> {
    /// Watches the expiry of a task in memory, if it has one.
    pub(crate) fn watch_expiry(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task).filter(|_| task.dead().is_none()) {
            self.residence.expiries().watch(expiry, task.due_at);
        }
    }

    /// A task leaves a stub: the stub is found by its due time only, so the watch notes that time.
    pub(super) fn watch_shrunk(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task) {
            self.residence.expiries().set_due(&expiry, task.due_at);
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

    /// Gives up the tasks that have expired by now. Tasks that workers have may still be finished.
    pub(super) fn expire(&mut self) {
        if !self.ledger.takes_changes() {
            return;
        }
        while let Some(((_, id, queue), due_at)) = self.residence.expiries().pop(self.now) {
            match self.residence.by_id(id) {
                Some(slot) => self.expire_one(slot),
                None => self.expire_stub(id, queue, due_at <= self.now.wall),
            }
        }
    }

    /// A stub has expired: it counts as dead from now on, and its record is fetched to write that down.
    fn expire_stub(&mut self, id: u64, queue: QueueNo, in_line: bool) {
        if let Some(name) = self.dispatch.stub_expired(queue, id, in_line) {
            self.residence.want_overdue(id, Some(name));
        }
    }

    /// Gives up a task that has expired, unless a worker has it.
    pub(crate) fn expire_one(&mut self, slot: Slot) {
        let entry = self.residence.get(slot);
        let expired = entry.task.expire_at().is_some_and(|at| at <= self.now.wall) && !entry.is_dead();
        let waits = matches!(entry.at, At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. });
        if expired && waits && self.ledger.takes_changes() {
            self.unplace(slot);
            self.die(slot, Death::Expired);
        }
    }

    /// Watches a task from a scan that stays a stub. If it has expired by now, it is given up like the stubs that were here before.
    pub(crate) fn watch_stub(&mut self, task: &Task) {
        match self.expiry_of(task) {
            Some((at, id, queue)) if at <= self.now.wall && self.ledger.takes_changes() => {
                self.expire_stub(id, queue, task.due_at <= self.now.wall);
            }
            Some(expiry) => self.residence.expiries().watch(expiry, task.due_at),
            None => {}
        }
    }

    /// Forgets a dead task that is a stub. Once nothing can be written down any more, the stub is left alone.
    pub(crate) fn forget_stub(&mut self, id: u64) {
        if self.ledger.takes_changes() {
            self.residence.want_overdue(id, None);
        }
    }

    /// The store answered with the record of a stub that has expired or is to be forgotten. Loading the record gives the task up or forgets
    /// it.
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
