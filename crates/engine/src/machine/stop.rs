//! A graceful stop: no new calls, no waits, and the leases written down.

use super::Engine;
use super::entries::{At, Slot};
use crate::answer::Answer;
use crate::task::StoredLease;

impl Engine {
    /// Ends the waits and writes down the leases that run, so that they go on after the next start. Calls that already
    /// wait for a look-up or a commit are still answered.
    pub(super) fn stop(&mut self) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        while let Some(call) = self.queues.first_waiting() {
            self.queues.end_wait(call);
            self.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        if self.failed.is_some() {
            return;
        }
        let leased: Vec<Slot> = self.leases.values().copied().collect();
        for slot in leased {
            let At::Leased(held) = &self.entries.get(slot).at else {
                unreachable!("the lease index holds leased tasks only")
            };
            let lease = StoredLease { no: held.no, until: held.until, written_in: self.guard.epoch };
            // The fence must let this very token pass.
            self.record(slot, |task| {
                task.lease = Some(lease);
                task.lease_fence = lease.no;
            });
        }
    }
}
