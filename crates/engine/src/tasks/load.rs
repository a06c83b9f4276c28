//! Loads tasks into memory, whole or as stubs.

use std::sync::Arc;

use super::Tasks;
use super::place::lateness_ms;
use crate::dispatch::{BegunLease, Holder, ReadyStub};
use crate::name::{Key, QueueName};
use crate::residence::{Entry, QueueNo, Slot, WaitingStub, is_bulky};
use crate::seam::{DueKey, Found};
use crate::task::{Ended, StoredLease, Task};
use crate::time::Timestamp;

/// The state of a loaded task according to its stub.
#[derive(Copy, Clone, Debug)]
enum Met {
    Waiting,
    Ready { since: Timestamp },
}

impl Tasks<'_> {
    /// Loads a task of the store into memory, whole. The task takes the place of its stub, if it has one. A task without a stub goes on
    /// with the lease that the last owner's stop wrote down, if there is such a lease. A task that has expired and is not leased is given
    /// up. Returns `None` if the task is whole in memory already.
    pub(crate) fn load(&mut self, task: Arc<Task>) -> Option<Slot> {
        if self.residence.by_id(task.id).is_some() {
            return None;
        }
        if task.is_keyed()
            && let Some(slot) = self.residence.by_key(&task.queue, &task.key)
            && self.residence.get(slot).is_live()
        {
            unreachable!(
                "the store has task {} on a key that task {} holds",
                task.id,
                self.residence.task(slot).id
            )
        }
        let met = self.take_stub(&task);
        let stored = task.lease.filter(|_| self.goes_on(&task));
        self.watch_expiry(&task);
        if task.expire_at().is_some() {
            self.dispatch.end_expired_stub(&task.queue, task.id);
        }
        let slot = self.residence.insert(Entry::new(task, true));
        match (met, stored) {
            (Some(Met::Ready { since }), _) => self.make_ready(slot, since),
            (Some(Met::Waiting), _) | (None, None) => self.place_stored(slot),
            (None, Some(lease)) => {
                let StoredLease { no, until, left_ms, written_in: _ } = lease;
                let until = self.now.ends_within(until, left_ms);
                let begun = BegunLease { no, ready_since: self.now.wall, until, holder: Holder::default() };
                self.dispatch.begin_lease(self.residence, slot, begun, self.now);
            }
        }
        self.expire_one(slot);
        Some(slot)
    }

    /// Whether the record has a lease that a stop wrote down in the epoch before this one.
    pub(crate) fn goes_on(&self, task: &Task) -> bool {
        task.lease.is_some_and(|lease| lease.written_in.0 + 1 == self.ledger.ownership().epoch.0)
    }

    /// Takes in the store's answer about a key. Returns the slot of the task that this call loaded, or the end of the key's last task.
    /// Returns neither if the store has neither. Also returns neither if a task of the key is in memory already, for example from a scan or
    /// a token: memory knows the key better than the store.
    pub(crate) fn take_found(
        &mut self,
        queue: &QueueName,
        key: &Key,
        found: Found,
    ) -> (Option<Slot>, Option<Ended>) {
        match found {
            _ if self.residence.by_key(queue, key).is_some() => (None, None),
            Found::Live(task) => (self.load(task), None),
            Found::Ended(ended) => (None, Some(ended)),
            Found::Absent => (None, None),
        }
    }

    /// Takes into memory a durable task that a scan has read, unless memory has the task already. The task becomes a stub if its body is
    /// large or memory is nearly full, but stays whole if its stored lease goes on.
    pub(crate) fn take_in(&mut self, task: Arc<Task>) {
        if self.residence.by_id(task.id).is_some() || self.has_stub(&task) {
            return;
        }
        let whole = !is_bulky(&task) && !self.residence.is_full();
        if whole || self.goes_on(&task) {
            self.load(task);
        } else if task.dead().is_some() {
            self.add_waiting_stub(&task);
        } else if task.due_at <= self.now.falls_due() {
            let late_ms = self.late_ms(&task);
            let queue = self.dispatch.number(&task.queue);
            self.join_stub(queue, ReadyStub::of(WaitingStub::of(&task, queue), self.now.wall), late_ms);
            self.watch_stub(&task);
        } else {
            self.watch_stub(&task);
            self.add_waiting_stub(&task);
        }
    }

    /// Moves the stubs that are due by now into their lines. For a stub of a dead task, asks for the record, to forget the task.
    pub(super) fn stubs_fall_due(&mut self) {
        while let Some(stub) = self.residence.pop_due_stub(self.now) {
            if stub.dead {
                self.forget_stub(stub.id);
                continue;
            }
            let late_ms = self.now.wall.ms_since(stub.due_at);
            self.join_stub(stub.queue, ReadyStub::of(stub, self.now.wall), Some(late_ms));
        }
    }

    pub(super) fn add_waiting_stub(&mut self, task: &Task) {
        let queue = self.dispatch.number(&task.queue);
        self.residence.add_stub(WaitingStub::of(task, queue));
    }

    /// Adds a stub to the line of its queue. `late_ms`: how late the task becomes ready (ms); `None`: the task was ready before, and is not
    /// counted again.
    fn join_stub(&mut self, queue: QueueNo, stub: ReadyStub, late_ms: Option<u64>) {
        self.residence.stub_joined();
        self.dispatch.join_stub(self.ledger, queue, stub, late_ms);
    }

    /// Whether memory has a stub of this task. The stub has the same due key as the record in the store, because a change of the task needs
    /// the whole task in memory.
    fn has_stub(&self, task: &Task) -> bool {
        self.residence.has_stub(DueKey::of(task)) || self.dispatch.has_stub(task)
    }

    /// Removes the stub of this task, because the whole task is about to be in memory. Returns the state that the stub had; `None`: there
    /// was no stub.
    fn take_stub(&mut self, task: &Task) -> Option<Met> {
        if self.residence.take_stub(DueKey::of(task)) {
            return Some(Met::Waiting);
        }
        let since = self.dispatch.take_stub(task)?;
        self.residence.stub_left();
        Some(Met::Ready { since })
    }

    /// Makes a loaded task, which is in no index yet, ready or starts its wait, as its `due_at` says. Forgets a dead task whose time has
    /// come. A task that was ready in an earlier epoch is not counted as newly ready.
    fn place_stored(&mut self, slot: Slot) {
        let task = self.residence.task(slot);
        if task.dead().is_none() && task.due_at <= self.now.falls_due() && self.late_ms(task).is_none() {
            return self.make_ready(slot, self.now.wall);
        }
        self.place(slot);
    }

    /// Returns how late a due task of the store becomes ready (ms); `None`: the task was ready before this epoch began, and was counted
    /// then.
    fn late_ms(&self, task: &Task) -> Option<u64> {
        let fires_now = task.due_at.max(task.put_at) > self.residence.ready_before();
        fires_now.then(|| lateness_ms(task, self.now))
    }
}
