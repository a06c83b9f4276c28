//! Rules that several calls share: the version is the expected one, a timeline rises, no instant is too far, the task does not expire
//! before it is due, and no worker has the task.

use crate::calls::{Due, OnLease, PatchError, PutError};
use crate::name::{Key, QueueName};
use crate::residence::{At, Slot};
use crate::task::{Ended, LeaseNo, Moment, Outcome};
use crate::tasks::Tasks;
use crate::time::{Now, Seq, Timestamp};

/// Why a put or a patch is not admitted.
pub(crate) enum Refusal {
    VersionMismatch { current: Option<Seq> },
    NotRising { index: usize },
    TooFar { limit_ms: u64 },
    ExpiresFirst { expire_at: Timestamp, due_at: Timestamp },
}

macro_rules! say_refusals {
    ($($error:ident)*) => {$(
        impl From<Refusal> for $error {
            fn from(refusal: Refusal) -> Self {
                match refusal {
                    Refusal::VersionMismatch { current } => Self::VersionMismatch { current },
                    Refusal::NotRising { index } => Self::NotRising { index },
                    Refusal::TooFar { limit_ms } => Self::TooFar { limit_ms },
                    Refusal::ExpiresFirst { expire_at, due_at } => Self::ExpiresFirst { expire_at, due_at },
                }
            }
        }
    )*};
}
say_refusals!(PutError PatchError);

impl Tasks<'_> {
    /// Checks that the owner may change the task now. Returns the lease that the change will revoke; `None`: no worker has the task.
    ///
    /// # Errors
    /// `leased`: a worker has the task, and the owner does not want to revoke its lease.
    pub(crate) fn may_change<E>(
        &self,
        slot: Slot,
        on_lease: OnLease,
        leased: E,
    ) -> Result<Option<LeaseNo>, E> {
        match (&self.residence.get(slot).at, on_lease) {
            (At::Leased(_), OnLease::Refuse) => Err(leased),
            (At::Leased(lease), OnLease::Revoke) => Ok(Some(lease.no)),
            _ => Ok(None),
        }
    }

    /// Returns when a task is due: at the first moment of its timeline, or else as `due` says; `None`: there is neither. Refuses a timeline
    /// that does not rise, and an instant that is too far ahead.
    pub(crate) fn admit(&self, timeline: &[Moment], due: Option<Due>) -> Result<Option<Timestamp>, Refusal> {
        if let Some(index) = falls_at(timeline) {
            return Err(Refusal::NotRising { index });
        }
        let limit_ms = self.config.farthest_ms;
        let instant = |due| self.instant(due).ok_or(Refusal::TooFar { limit_ms });
        if let Some(last) = timeline.last() {
            instant(Due::At(last.at))?;
        }
        let due = timeline.first().map(|first| Due::At(first.at)).or(due);
        due.map(instant).transpose()
    }

    /// Whether the last task of a key was acked and must still be remembered. The caller knows that the key has no live task. An end in
    /// memory is newer than `gone`, the end that the store found.
    pub(crate) fn is_done(&self, queue: &QueueName, key: &Key, gone: Option<&Ended>) -> bool {
        match self.residence.by_key(queue, key).map(|slot| &self.residence.get(slot).at) {
            Some(At::Ended(outcome)) => matches!(outcome, Outcome::Done(_)),
            _ => gone.is_some_and(|ended| matches!(ended.outcome, Outcome::Done(_)) && self.is_kept(ended)),
        }
    }

    /// Whether a task that ended must still be remembered. The store may keep the end for longer.
    pub(crate) fn is_kept(&self, ended: &Ended) -> bool {
        self.dispatch.remembers(self.now, ended, self.config.history_ms)
    }

    /// Returns the instant that `due` means now; `None`: the instant is farther ahead than the configuration allows.
    pub(crate) fn instant(&self, due: Due) -> Option<Timestamp> {
        let due_at = match due {
            Due::Now => self.now.wall,
            Due::After { ms } => self.now.due_after(ms)?,
            Due::At(instant) => instant,
        };
        let farthest = self.now.latest().saturating_plus_ms(self.config.farthest_ms);
        // A delay of exactly the limit is allowed, though rounding it up may add a millisecond.
        Some(due_at).filter(|due_at| *due_at <= farthest.saturating_plus_ms(1))
    }

    /// Returns the end of a wait that began when a task was put at `put_at`. The wall clock may have shown more then, by about as much as it may
    /// now.
    pub(crate) fn end_of_wait(&self, put_at: Timestamp, wait_ms: u64) -> Timestamp {
        put_at.saturating_plus_ms(wait_ms.saturating_add(self.now.wall_width_ns.div_ceil(1_000_000)))
    }
}

/// Returns the index of the first instant of a timeline that is not after the instant before it; `None`: the timeline rises.
pub(crate) fn falls_at(timeline: &[Moment]) -> Option<usize> {
    timeline.windows(2).position(|pair| pair[1].at <= pair[0].at).map(|index| index + 1)
}

/// Checks that the task has the version that its owner expects, if the owner expects one.
pub(crate) fn admit_version(wanted: Option<Seq>, current: Option<Seq>) -> Result<(), Refusal> {
    if wanted.is_none() || wanted == current { Ok(()) } else { Err(Refusal::VersionMismatch { current }) }
}

/// Checks that the task expires after it is due and after now, so that it can be delivered before it expires.
pub(crate) fn admit_expiry(now: Now, expire_at: Option<Timestamp>, due_at: Timestamp) -> Result<(), Refusal> {
    match expire_at {
        Some(expire_at) if expire_at <= due_at.max(now.wall) => {
            Err(Refusal::ExpiresFirst { expire_at, due_at })
        }
        _ => Ok(()),
    }
}
