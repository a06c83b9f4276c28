//! A graceful stop: no new calls, no waits, and the leases written down.

use crate::residence::At;
use crate::slot::Slot;
use crate::task::StoredLease;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Ends the waits and writes down the running leases, so that they go on after the next start. Calls that already wait for a look-up or
    /// a commit are still answered.
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

    /// Writes a running lease down, to go on after the next start.
    pub(crate) fn write_lease_down(&mut self, slot: Slot) {
        let At::Leased(lease) = &self.residence.get(slot).at else {
            unreachable!("only a leased task has a lease")
        };
        let lease =
            StoredLease { no: lease.no, until: lease.until, written_in: self.ledger.ownership().epoch };
        // The fence must let exactly this token pass.
        self.record(slot, |task| {
            task.lease = Some(lease);
            task.lease_fence = lease.no;
        });
    }
}
