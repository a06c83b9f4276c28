//! A graceful stop: refuses new calls, ends the waiting calls, and writes the leases down.

use crate::residence::{At, Slot};
use crate::task::StoredLease;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Ends the waiting calls. Unless the store has failed, writes the running leases down, so that the leases go on after the next start.
    /// Calls that wait for a look-up or a commit are still answered. A second stop does nothing.
    pub(crate) fn stop(&mut self) {
        if self.ledger.is_stopping() {
            return;
        }
        self.ledger.begin_stop();
        self.delivery().end_waits();
        if self.ledger.has_failed() {
            return;
        }
        let leased: Vec<Slot> = self.dispatch.leases().slots().collect();
        for slot in leased {
            self.write_lease_down(slot);
        }
    }

    /// Writes a running lease down, so that the lease goes on after the next start.
    pub(crate) fn write_lease_down(&mut self, slot: Slot) {
        let At::Leased(lease) = &self.residence.get(slot).at else {
            unreachable!("only a leased task has a lease")
        };
        let left_ms = self.dispatch.leases().left_ms(lease, self.now);
        let until = self.now.ends_within(lease.until, left_ms);
        let written_in = self.ledger.ownership().epoch;
        let lease = StoredLease { no: lease.no, until, left_ms, written_in };
        // With this fence, the token of this lease stays valid, and the tokens of earlier leases are void.
        self.record(slot, |task| {
            task.lease = Some(lease);
            task.lease_fence = lease.no;
        });
    }
}
