//! What every change by an owner has to pass: the instant is not too far, a timeline rises, a worker does not have the task.

use crate::calls::{Due, OnLease};
use crate::name::{Key, QueueName};
use crate::residence::At;
use crate::slot::Slot;
use crate::task::{Ended, LeaseNo, Moment, Outcome};
use crate::tasks::Tasks;
use crate::time::{Now, Timestamp};

/// The instant is beyond what is allowed.
pub(crate) struct TooFar;

/// A worker has the task.
pub(crate) struct IsLeased;

impl Tasks<'_> {
    /// Whether the owner may change the task now; if that takes it from a worker, the lease that is revoked.
    pub(crate) fn may_change(&self, slot: Slot, on_lease: OnLease) -> Result<Option<LeaseNo>, IsLeased> {
        match (&self.residence.get(slot).at, on_lease) {
            (At::Leased(_), OnLease::Refuse) => Err(IsLeased),
            (At::Leased(held), OnLease::Revoke) => Ok(Some(held.no)),
            _ => Ok(None),
        }
    }

    /// Whether the last task of a key that is not live was acked: memory knows it best, then what the store found.
    pub(crate) fn is_done(&self, now: Now, queue: &QueueName, key: &Key, gone: Option<&Ended>) -> bool {
        match self.residence.by_key(queue, key).map(|slot| &self.residence.get(slot).at) {
            Some(At::Ended(outcome)) => matches!(outcome, Outcome::Done(_)),
            _ => gone
                .is_some_and(|ended| matches!(ended.outcome, Outcome::Done(_)) && self.is_kept(now, ended)),
        }
    }

    /// Whether a task that ended is still to be remembered. The store may know it for longer.
    pub(crate) fn is_kept(&self, now: Now, ended: &Ended) -> bool {
        self.dispatch.remembers(now, ended, self.config.history_ms)
    }

    /// The instant that `due` means now.
    pub(crate) fn instant(&self, now: Now, due: Due) -> Result<Timestamp, TooFar> {
        let due_at = match due {
            Due::Now => now.wall,
            Due::After { ms } => now.due_after(ms).ok_or(TooFar)?,
            Due::At(instant) => instant,
        };
        let farthest = now.wall.saturating_plus_ms(self.config.farthest_ms);
        // A delay of exactly the limit is allowed, though rounding it up may add a millisecond.
        if due_at > farthest.saturating_plus_ms(1) { Err(TooFar) } else { Ok(due_at) }
    }

    pub(crate) fn nack_instant(&self, now: Now, delay_ms: u64) -> Option<Timestamp> {
        self.instant(now, Due::After { ms: delay_ms }).ok()
    }
}

/// An instant of a timeline that is not after the one before.
pub(crate) struct NotRising(pub(crate) usize);

pub(crate) fn check_timeline(timeline: &[Moment]) -> Result<(), NotRising> {
    let falls = timeline.windows(2).position(|pair| pair[1].at <= pair[0].at);
    falls.map_or(Ok(()), |index| Err(NotRising(index + 1)))
}

/// When a task with this timeline is due first.
pub(crate) fn due_of(timeline: &[Moment]) -> Option<Due> {
    timeline.first().map(|moment| Due::At(moment.at))
}
