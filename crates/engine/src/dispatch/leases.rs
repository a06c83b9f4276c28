//! [`Leases`]: the running leases, the worker of each lease, and the instant at which each lease ends.

use core::ops::Bound;
use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_core::{TimerQueue, Wheel};

use super::Dispatch;
use crate::calls::{LEASES_PAGE_MAX, LeasePage, LeaseView, ListLeases, Unavailable};
use crate::cursor::LeaseCursor;
use crate::ledger::Ledger;
use crate::residence::{At, Residence, RunningLease, Slot};
use crate::task::LeaseNo;
use crate::time::{Epoch, Now, Timestamp};

/// The worker that has a task, and since when. Both are in memory only: after a restart, a lease of an earlier epoch has neither.
#[derive(Clone, Default, Debug)]
pub(crate) struct Holder {
    pub(crate) since: Option<Timestamp>,
    /// The name that the worker gave when it asked for the task.
    pub(crate) worker: Option<Arc<str>>,
}

/// A lease that begins, is extended, or goes on after a restart.
#[derive(Clone, Debug)]
pub(crate) struct BegunLease {
    pub(crate) no: LeaseNo,
    /// The instant at which the task became ready. A restart loses this instant; then the field has the instant at which the lease went on.
    pub(crate) ready_since: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) holder: Holder,
}

/// The running leases, by number and by their end.
#[derive(Debug)]
pub(crate) struct Leases {
    epoch: Epoch,
    running: BTreeMap<LeaseNo, (Slot, Holder)>,
    /// The slots of the leased tasks, by the end of the lease (monotonic ms).
    ends: Wheel<Slot>,
    next: LeaseNo,
}

impl Leases {
    pub(super) fn new(epoch: Epoch, now: Now) -> Self {
        let next = LeaseNo::first_of(epoch).next();
        Self { epoch, running: BTreeMap::new(), ends: Wheel::new(now.mono_tick()), next }
    }

    /// Returns the number that the next lease gets, without taking it.
    pub(super) fn next(&self) -> LeaseNo {
        self.next
    }

    /// Takes the number for a new lease.
    pub(super) fn take_no(&mut self) -> LeaseNo {
        let no = self.next;
        self.next = no.next();
        assert_eq!(self.next.epoch(), self.epoch, "an epoch has fewer than 2^40 leases");
        no
    }

    /// Starts a lease, and keeps it until [`end`](Self::end). The lease runs out when the wheel of lease ends reaches its deadline, by the
    /// monotonic clock.
    pub(super) fn begin(&mut self, slot: Slot, begun: BegunLease, now: Now) -> RunningLease {
        let BegunLease { no, ready_since, until, holder } = begun;
        let deadline = now.mono_deadline(until).clamp(self.ends.now() + 1, u64::MAX - 1);
        let timer = match self.ends.insert(deadline, slot) {
            Ok(timer) => timer,
            Err(refused) => {
                unreachable!("deadline {deadline} is inside the wheel's range: {:?}", refused.why)
            }
        };
        self.running.insert(no, (slot, holder));
        RunningLease { no, timer, until, ready_since, paced: false }
    }

    /// Ends a lease: takes it out of the list of running leases, and out of the wheel.
    pub(super) fn end(&mut self, lease: &RunningLease) {
        self.running.remove(&lease.no);
        self.ends.cancel(lease.timer);
    }

    /// Takes out of the wheel the slots of the leases that have run out by now. The leases count as running until the caller ends each of
    /// them with [`end`](Self::end).
    pub(super) fn pop_ended(&mut self, now: Now) -> Vec<Slot> {
        let mut ended: Vec<Slot> = Vec::new();
        self.ends.advance_with(now.mono_tick(), |_, slot| ended.push(slot));
        ended
    }

    /// Returns when the wheel of lease ends has work next (monotonic ms): never later than the first end of a lease.
    pub(super) fn next_end_ms(&self) -> Option<u64> {
        self.ends.next_wake()
    }

    /// Returns how long the lease still runs, by the monotonic clock (ms), rounded up.
    pub(crate) fn left_ms(&self, lease: &RunningLease, now: Now) -> u64 {
        self.ends.deadline(lease.timer).unwrap_or_default().saturating_sub(now.mono_tick())
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.running.values().map(|&(slot, _)| slot)
    }

    pub(crate) fn holder(&self, no: LeaseNo) -> Holder {
        self.running.get(&no).map(|(_, holder)| holder.clone()).unwrap_or_default()
    }
}

impl Dispatch {
    /// Returns one page of the running leases, in the order of their numbers. Looks at up to `list.max` leases, at least 1 and at most
    /// [`LEASES_PAGE_MAX`]; the page has the leases among them that are of the wanted queue and worker.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and it is unknown whether the last change of a task that was looked at is
    /// durable.
    pub(crate) fn page_of_leases(
        &self,
        residence: &Residence,
        ledger: &Ledger,
        list: &ListLeases,
    ) -> Result<LeasePage, Unavailable> {
        let ListLeases { queue, worker, after, max } = list;
        let mut page = LeasePage::default();
        let shard = ledger.ownership().shard.number();
        let Some(behind) = after.map_or(Some(Bound::Unbounded), |after| after.behind_in(shard)) else {
            return Ok(page);
        };
        let mut behind = self.leases.running.range((behind, Bound::Unbounded));
        let mut last = None;
        for (&no, (slot, holder)) in behind.by_ref().take((*max).clamp(1, LEASES_PAGE_MAX)) {
            let cursor = LeaseCursor { shard, no };
            last = Some(cursor);
            let entry = residence.get(*slot);
            // If the store has failed, it may or may not have the last change of this task.
            ledger.doubt_if(|| entry.dirty.is_some())?;
            let is_wanted = queue.as_ref().is_none_or(|queue| *queue == entry.task.queue)
                && worker.as_ref().is_none_or(|worker| holder.worker.as_ref() == Some(worker));
            if is_wanted {
                let At::Leased(lease) = &entry.at else {
                    unreachable!("a running lease is of a leased task")
                };
                page.leases.push(LeaseView {
                    cursor,
                    queue: entry.task.queue.clone(),
                    key: entry.task.key.clone(),
                    attempt: entry.task.attempts.saturating_add(1),
                    worker: holder.worker.clone(),
                    since: holder.since,
                    until: lease.until,
                });
            }
        }
        page.next = last.filter(|_| behind.next().is_some());
        Ok(page)
    }
}
