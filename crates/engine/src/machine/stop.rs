//! A graceful stop: no new calls, no waits, and the leases written down.

use super::Engine;
use super::entries::{At, Slot};
use crate::calls::{Answer, Unavailable};
use crate::task::StoredLease;
use crate::time::Now;

impl Engine {
    /// Ends the waits and writes down the leases that run, so that they go on after the next start. Calls that already
    /// wait for a look-up or a commit are still answered.
    pub(super) fn stop(&mut self, now: Now) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        while let Some(call) = self.queues.first_waiting() {
            let waiter = self.queues.end_wait(call);
            // Something may be ready whose record is not there yet; then it would be wrong to say that nothing is.
            let shown = waiter.is_none_or(|waiter| self.shows_all(now, &waiter.queues));
            let none = if shown { Ok(Vec::new()) } else { Err(Unavailable::Closed) };
            self.answer(call, Answer::Lease(none));
        }
        if self.failed.is_some() {
            return;
        }
        let leased: Vec<Slot> = self.leases.values().map(|running| running.slot).collect();
        for slot in leased {
            self.write_lease_down(slot);
        }
    }

    /// Writes a running lease down, to go on after the next start.
    pub(super) fn write_lease_down(&mut self, slot: Slot) {
        let At::Leased(held) = &self.entries.get(slot).at else {
            unreachable!("only a leased task has a lease")
        };
        let lease = StoredLease { no: held.no, until: held.until, written_in: self.ownership.epoch };
        // The fence must let this very token pass.
        self.record(slot, |task| {
            task.lease = Some(lease);
            task.lease_fence = lease.no;
        });
    }
}
