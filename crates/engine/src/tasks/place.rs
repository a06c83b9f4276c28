//! Moves tasks between the wheel and the ready lines, as time passes and as their records say.

use super::Tasks;
use crate::residence::{At, Slot};
use crate::task::Task;
use crate::tasks::LeaseEnd;
use crate::time::{Now, Timestamp};

/// Returns how late a task becomes ready (ms). For a task that was put after its due time, the lateness starts at the put, because the
/// owner chose a due time in the past.
pub(super) fn lateness_ms(task: &Task, now: Now) -> u64 {
    now.wall.ms_since(task.due_at.max(task.put_at))
}

impl Tasks<'_> {
    /// Does what is due by now: makes due tasks ready, gives up expired tasks, ends pauses, lets schedules go on, and ends the leases that
    /// ran out. The leases come last, so that the task of an ended lease takes its old place among the due tasks.
    pub(crate) fn pass_time(&mut self) {
        self.dispatch.pass_time(self.now);
        for slot in self.residence.pop_due(self.now) {
            self.fall_due(slot);
        }
        self.stubs_fall_due();
        self.expire();
        self.dispatch.end_pauses(self.ledger, self.now);
        self.recurrence.fall_due(self.ledger, self.now.unheld());
        self.leases_end();
    }

    fn leases_end(&mut self) {
        let ended = self.dispatch.pop_ended(self.now);
        // Once the store has failed, the end of a lease cannot be written down. So the task stays with its worker, and the owner in the
        // next epoch gives the task to another worker.
        if self.ledger.has_failed() {
            return;
        }
        for slot in ended {
            self.dispatch.lease_expired(self.ledger, self.residence.task(slot));
            self.lease_ended(slot, LeaseEnd::EXPIRED);
        }
    }

    /// Handles an entry in no index whose instant has come: forgets a dead task, makes a live task ready.
    fn fall_due(&mut self, slot: Slot) {
        if self.residence.get(slot).is_dead() {
            return self.forget(slot);
        }
        let late_ms = lateness_ms(self.residence.task(slot), self.now);
        self.join_ready(slot, self.now.wall, Some(late_ms));
    }

    /// Starts the wait of an entry that is in no index, if its `due_at` is in the future. Otherwise makes a live task ready, or forgets a
    /// dead one.
    pub(crate) fn place(&mut self, slot: Slot) {
        if self.residence.task(slot).due_at <= self.now.falls_due() {
            self.fall_due(slot);
        } else {
            self.residence.start_timer(slot, self.now);
        }
    }

    /// Does as [`place`](Self::place) for an entry that a caller has just put or changed. If it is due at this very moment by the wall clock, it
    /// was asked for now, and a start holds it back no more than the call. An instant that the caller named goes by
    /// [`Now::falls_due`], like all others.
    pub(crate) fn place_asked(&mut self, slot: Slot) {
        if self.residence.task(slot).due_at == self.now.wall {
            self.fall_due(slot);
        } else {
            self.place(slot);
        }
    }

    /// Puts an entry that is in no index into its line. `since`: when the task became ready. No lateness is counted, because the task did
    /// not become due just now.
    pub(crate) fn make_ready(&mut self, slot: Slot, since: Timestamp) {
        self.join_ready(slot, since, None);
    }

    /// Puts an entry into its line. `late_ms`: how late the task becomes ready (ms); `None`: no lateness is counted.
    fn join_ready(&mut self, slot: Slot, since: Timestamp, late_ms: Option<u64>) {
        self.residence.get_mut(slot).at = At::Ready { since };
        self.dispatch.join(self.ledger, self.residence.task(slot), slot, late_ms);
    }

    /// Takes an entry out of the index that it is in: the wheel, its line, or the leases. The caller at once puts the entry elsewhere, ends
    /// it or removes it.
    pub(crate) fn unplace(&mut self, slot: Slot) {
        match core::mem::replace(&mut self.residence.get_mut(slot).at, At::Far) {
            At::Far | At::Ended(_) => {}
            At::Waiting(handle) => self.residence.cancel_timer(handle, slot),
            At::Rewound => self.residence.cancel_rewound(slot),
            At::Ready { .. } => self.dispatch.leave(self.residence.task(slot), slot),
            At::Leased(lease) => {
                self.residence.lease_ends(slot);
                self.dispatch.end_lease(self.residence.task(slot), &lease);
            }
        }
    }
}
