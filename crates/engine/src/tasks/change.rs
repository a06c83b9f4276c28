//! Changes of a task: it is added, replaced, given up, forgotten, ended.

use std::sync::Arc;

use super::Tasks;
use crate::calls::{State, TaskView};
use crate::dispatch::Holder;
use crate::figures::Event;
use crate::name::Key;
use crate::residence::{At, Entry};
use crate::slot::Slot;
use crate::task::{Dead, Death, Ended, Outcome, Redriven, Task};
use crate::time::{Now, Seq, Timestamp};

impl Tasks<'_> {
    /// Gives a live task a new record, which `change` makes from the old one, and leaves it where it stands.
    pub(crate) fn record(&mut self, slot: Slot, change: impl FnOnce(&mut Task)) {
        self.residence.record(self.ledger, slot, change);
    }

    /// Changes a task as [`record`](Self::record) does, makes the tokens of all earlier leases void, and forgets the lease that
    /// a stop wrote down. `change` gets the moment and the number of the change as well.
    pub(crate) fn renew(&mut self, slot: Slot, change: impl FnOnce(&mut Task, Now, Seq)) {
        let (now, fence, seq) = (self.now, self.dispatch.fence(), self.ledger.applied().next());
        self.record(slot, |task| {
            change(task, now, seq);
            task.lease_fence = fence;
            task.lease = None;
        });
    }

    /// Counts a task that was put, and watches its expiry. A task that comes dead from another store is not counted: that store counted it.
    pub(crate) fn enter(&mut self, slot: Slot) {
        let task = Arc::clone(self.residence.task(slot));
        if task.dead().is_none() {
            self.dispatch.count(self.ledger, &task.queue, Event::Put);
        }
        self.watch_expiry(&task);
    }

    /// Adds a task whose key is free, or takes the key from a dead task for it.
    pub(crate) fn add(&mut self, task: Task, dead: Option<Slot>) -> Slot {
        let Some(dead) = dead else { return self.create(task) };
        self.together(|tasks| {
            tasks.take_key_from(dead);
            tasks.create(task)
        })
    }

    fn create(&mut self, mut task: Task) -> Slot {
        if task.id == 0 {
            task.id = self.ledger.take_id();
            self.ledger.note_owners_key(&task.key);
        }
        self.dispatch.task_added(&task);
        self.ledger.counters_mut().added_total += 1;
        let slot = self.residence.insert(Entry::new(Arc::new(task), false));
        self.renew(slot, |task, _, seq| (task.put_seq, task.version) = (seq, seq));
        slot
    }

    pub(crate) fn replace(&mut self, slot: Slot, new: Task) -> Slot {
        self.unplace(slot);
        let old = Arc::clone(self.residence.task(slot));
        self.unwatch_expiry(&old);
        self.renew(slot, |task, _, seq| {
            let revoked = new.revoked.or(task.revoked);
            let acked = task.acked();
            *task = Task { id: task.id, put_seq: seq, version: seq, revoked, ..new };
            if acked.is_some() {
                task.extra_mut().acked = acked;
            }
        });
        slot
    }

    /// Begins the life of a task that was put, in the place that its `due_at` says.
    pub(crate) fn begin(&mut self, slot: Slot) {
        self.enter(slot);
        self.place(slot);
    }

    pub(crate) fn view(&self, slot: Slot) -> TaskView {
        let entry = self.residence.get(slot);
        let view = TaskView::new(&entry.task, entry.state().unwrap_or(State::Scheduled));
        let At::Leased(lease) = &entry.at else { return view };
        let Holder { since: leased_since, worker: leased_by } = self.dispatch.leases().holder(lease.no);
        TaskView { leased_until: Some(lease.until), leased_since, leased_by, ..view }
    }

    /// Ends a task, live or dead.
    pub(crate) fn end(&mut self, slot: Slot, outcome: Outcome) {
        self.unplace(slot);
        let seq = self.ledger.next_seq();
        let task = Arc::clone(self.residence.task(slot));
        // The key of a keyless task belongs to another task by now: the end of this one says nothing about the key.
        let key = if task.is_keyed() { task.key.clone() } else { Key::from_id(task.id) };
        self.unwatch_expiry(&task);
        self.dispatch.task_ended(self.ledger, &task, outcome);
        let ended = Ended { id: task.id, queue: task.queue.clone(), key, seq, at: self.now.wall, outcome };
        self.together(|tasks| {
            tasks.residence.end(tasks.ledger, slot, ended);
            tasks.recurrence.task_ended(tasks.ledger, tasks.now, task.id);
        });
    }

    /// Gives up a task that stands nowhere. The dead task is kept for a while, so that people can look at it.
    pub(crate) fn die(&mut self, slot: Slot, why: Death) {
        let forgotten_at = self.forgotten_at(self.now, why);
        self.together(|tasks| {
            tasks.renew(slot, |task, now, _| {
                let dead = Dead { at: now.wall, due_at: task.due_at, why, keyless: false };
                task.extra_mut().dead = Some(dead);
                task.due_at = forgotten_at;
            });
            tasks.recurrence.task_ended(tasks.ledger, tasks.now, tasks.residence.task(slot).id);
        });
        let task = Arc::clone(self.residence.task(slot));
        self.unwatch_expiry(&task);
        self.dispatch.task_died(self.ledger, &task);
        self.place(slot);
    }

    /// When a task that is given up now is forgotten.
    pub(crate) fn forgotten_at(&mut self, now: Now, why: Death) -> Timestamp {
        match why {
            Death::MaxAttempts | Death::Expired => now.wall.saturating_plus_ms(self.config.dead_ms),
            // Never. Each buried task comes after the earlier ones, even if both were buried in one millisecond or the clock has stepped
            // back.
            Death::Buried => self.residence.next_buried(now),
        }
    }

    /// Forgets a dead task when its time has come.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.residence.get_mut(slot).at = At::Far;
        if self.ledger.takes_changes() {
            self.end(slot, Outcome::Forgotten);
        }
    }

    /// Takes the key from a dead task, because another task is about to get it. From now on the dead task is found by its id alone.
    pub(crate) fn take_key_from(&mut self, slot: Slot) {
        debug_assert!(self.residence.get(slot).is_dead(), "only the dead lose their keys");
        self.record(slot, |task| {
            if let Some(dead) = &mut task.extra_mut().dead {
                dead.keyless = true;
            }
        });
    }

    pub(crate) fn live_again(&mut self, slot: Slot, by: Redriven) {
        self.renew(slot, |task, now, seq| {
            let put_at = task.put_at;
            let extra = task.extra_mut();
            // The delay that the task was given stays known.
            let delay_ms = extra.dead.take().map(|dead| dead.due_at.ms_since(put_at));
            extra.tally.delay_ms = extra.tally.delay_ms.or(delay_ms);
            extra.expire_at = None;
            extra.tally.count_redrive(by);
            task.attempts = 0;
            task.due_at = now.wall;
            // The version also rises if a worker takes the task: of two tasks that had a key, the one that has it later has the higher
            // version.
            task.version = seq;
        });
    }
}
