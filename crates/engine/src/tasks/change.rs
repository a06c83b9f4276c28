//! Changes of a task: add, replace, give up, forget, end.

use std::sync::Arc;

use super::Tasks;
use crate::calls::{State, TaskView};
use crate::dispatch::Holder;
use crate::figures::Event;
use crate::name::Key;
use crate::residence::{At, Entry, Slot};
use crate::task::{Dead, Death, Ended, Outcome, Redriven, Task};
use crate::time::{Now, Seq, Timestamp};

impl Tasks<'_> {
    /// Gives a task a new record, which `change` makes from the old one. The task stays in the index (wheel, line or leases) that it is in.
    /// If the task is live, the schedule of its name learns that in the same batch.
    pub(crate) fn record(&mut self, slot: Slot, change: impl FnOnce(&mut Task)) {
        self.together(|tasks| {
            tasks.residence.record(tasks.ledger, slot, change);
            let task = tasks.residence.task(slot);
            if task.dead().is_none() {
                tasks.recurrence.task_lives(tasks.ledger, task);
            }
        });
    }

    /// Changes a task as [`record`](Self::record) does. Also makes the tokens of all earlier leases void, and removes the lease that a stop
    /// wrote down. `change` also gets the current moment and the number of the change.
    pub(crate) fn renew(&mut self, slot: Slot, change: impl FnOnce(&mut Task, Now, Seq)) {
        let (now, fence, seq) = (self.now, self.dispatch.fence(), self.ledger.applied().next());
        self.record(slot, |task| {
            change(task, now, seq);
            task.lease_fence = fence;
            task.lease = None;
        });
    }

    /// Counts the put of a live task in its queue, and watches the task's expiry. An imported dead task is not counted, because its former
    /// store has counted it.
    pub(crate) fn enter(&mut self, slot: Slot) {
        let task = Arc::clone(self.residence.task(slot));
        if task.dead().is_none() {
            self.dispatch.count(self.ledger, &task.queue, Event::Put);
        }
        self.watch_expiry(&task);
    }

    /// Adds a task and returns the slot of the task. If a dead task has the key, `dead` is the slot of the dead task, which loses the key.
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

    /// Counts a task that was put, and watches its expiry. Then makes the task ready or starts its wait, as its `due_at` says.
    pub(crate) fn begin(&mut self, slot: Slot) {
        self.enter(slot);
        self.place_asked(slot);
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
        // A keyless task has lost its key to another task. So the end is recorded under a key made of the id, and says nothing about the
        // other task.
        let key = if task.is_keyed() { task.key.clone() } else { Key::from_id(task.id) };
        self.unwatch_expiry(&task);
        self.dispatch.task_ended(self.ledger, &task, outcome);
        let ended = Ended { id: task.id, queue: task.queue.clone(), key, seq, at: self.now.wall, outcome };
        self.together(|tasks| {
            tasks.residence.end(tasks.ledger, slot, ended);
            tasks.recurrence.task_ended(tasks.ledger, tasks.now, &task);
        });
    }

    /// Makes a task dead. The caller has taken the task out of every index (wheel, line and leases). The dead task is kept, so that users
    /// can look at it.
    pub(crate) fn die(&mut self, slot: Slot, why: Death) {
        let forgotten_at = self.forgotten_at(self.now, why);
        self.together(|tasks| {
            tasks.renew(slot, |task, now, _| {
                let dead = Dead { at: now.wall, due_at: task.due_at, why, keyless: false };
                task.extra_mut().dead = Some(dead);
                task.due_at = forgotten_at;
            });
            tasks.recurrence.task_ended(tasks.ledger, tasks.now, tasks.residence.task(slot));
        });
        let task = Arc::clone(self.residence.task(slot));
        self.unwatch_expiry(&task);
        self.dispatch.task_died(self.ledger, &task);
        self.place(slot);
    }

    /// Returns when a task is forgotten that is given up at `now`. For a buried task, also notes the returned instant as used.
    pub(crate) fn forgotten_at(&mut self, now: Now, why: Death) -> Timestamp {
        match why {
            Death::MaxAttempts | Death::Expired | Death::Refused | Death::Template | Death::TooLarge => {
                now.wall.saturating_plus_ms(self.config.dead_ms)
            }
            // A buried task is never forgotten. Each buried task gets a later instant than the ones before it, even if both were buried in
            // one millisecond or the clock has stepped back.
            Death::Buried => self.residence.next_buried(now),
        }
    }

    /// Forgets a dead task whose time has come. If the engine takes no changes any more, the dead task stays in memory, in no index.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.residence.get_mut(slot).at = At::Far;
        if self.ledger.takes_changes() {
            self.end(slot, Outcome::Forgotten);
        }
    }

    /// Takes the key from a dead task, because another task is about to get it. Then the dead task is found by its id alone.
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
            // Keeps the delay that the task had, because `due_at` and `dead` are about to change.
            let delay_ms = extra.dead.take().map(|dead| dead.due_at.ms_since(put_at));
            extra.tally.delay_ms = extra.tally.delay_ms.or(delay_ms);
            extra.expire_at = None;
            extra.tally.count_redrive(by);
            task.attempts = 0;
            task.due_at = now.wall;
            // The version also rises if a worker leases the dead task. So of two tasks that had the same key, the one that got the key
            // later has the higher version.
            task.version = seq;
        });
    }
}
