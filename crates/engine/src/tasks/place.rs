//! Where a task stands, and how time moves it: this is the one place that says so.

use super::Tasks;
use crate::lease_end::LeaseEnd;
use crate::residence::At;
use crate::slot::Slot;
use crate::task::Task;
use crate::time::{Now, Timestamp};

/// How late a task is ready (ms). For a task that was put after its instant, the time counts from the put: the rest is by its owner's wish.
pub(super) fn lateness_ms(task: &Task, now: Now) -> u64 {
    now.wall.ms_since(task.due_at.max(task.put_at))
}

impl Tasks<'_> {
    /// Makes ready what is due and ends the leases that ran out, in this order: an expired lease puts its task in its old
    /// place among those that are due.
    pub(crate) fn pass_time(&mut self) {
        self.dispatch.pass_time(self.now);
        for slot in self.residence.pop_due(self.now) {
            self.fall_due(slot);
        }
        self.stubs_fall_due();
        self.expire();
        self.dispatch.end_pauses(self.ledger, self.now);
        self.recurrence.fall_due(self.ledger, self.now);
        self.leases_end();
    }

    fn leases_end(&mut self) {
        let ended = self.dispatch.pop_ended(self.now);
        // Once the store has failed, the end of a lease cannot be written down: the task stays with its worker, and the next life gives it
        // to another worker.
        if self.ledger.has_failed() {
            return;
        }
        for slot in ended {
            self.dispatch.lease_expired(self.ledger, self.residence.task(slot));
            self.lease_ended(slot, LeaseEnd::EXPIRED);
        }
    }

    /// The instant of an entry that stands nowhere has come.
    fn fall_due(&mut self, slot: Slot) {
        if self.residence.get(slot).is_dead() {
            return self.forget(slot);
        }
        let late_ms = lateness_ms(self.residence.task(slot), self.now);
        self.join_ready(slot, self.now.wall, Some(late_ms));
    }

    /// Puts an entry that stands nowhere where its `due_at` says.
    pub(crate) fn place(&mut self, slot: Slot) {
        if self.residence.task(slot).due_at <= self.now.wall {
            self.fall_due(slot);
        } else {
            self.residence.start_timer(slot, self.now);
        }
    }

    /// Puts an entry that stands nowhere into its line, where it was before or where a call wants it: its instant did not come just now.
    pub(crate) fn make_ready(&mut self, slot: Slot, since: Timestamp) {
        self.join_ready(slot, since, None);
    }

    /// `late_ms`: how long ago its instant came (ms), if it came just now.
    fn join_ready(&mut self, slot: Slot, since: Timestamp, late_ms: Option<u64>) {
        self.residence.get_mut(slot).at = At::Ready { since };
        self.dispatch.join(self.ledger, self.residence.task(slot), slot, late_ms);
    }

    /// Takes an entry out of the index that it stands in. The caller gives it a new place at once.
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
