//! A live task, as far as answers have shown it, and its lease.

use super::call::{BACKOFF_MS_MAX, CallId, Delivery, Due, backoff_of, steps_of};
use super::clock::{Clock, Moment};
use super::world::{Broken, Op};

/// A live task. `None` is what no answer has shown yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    pub(super) id: Option<u64>,
    pub(super) version: Option<u64>,
    /// The earliest and the latest instant it can be; equal once seen.
    pub(super) due: (i64, i64),
    /// The nearest instant, yet to come then, that its owner has replaced by another.
    pub(super) was_due: Option<i64>,
    /// The instants of its timeline that come after this one.
    pub(super) steps: Vec<i64>,
    /// The token by which the instant of its timeline before this one was acked.
    pub(super) stepped: Option<String>,
    /// When the first of a row of debounced puts came, the earliest and the latest.
    pub(super) put_at: (i64, i64),
    /// When it is given up, the earliest and the latest.
    pub(super) expires: Option<(i64, i64)>,
    /// When that was set at the earliest.
    pub(super) born: Moment,
    /// When it was due before its last attempt was given back: if it had expired by then it died as it was.
    pub(super) was_due_before: Option<(i64, i64)>,
    /// When `due` was set at the earliest, or the restart since then.
    pub(super) since: Moment,
    pub(super) payload: u64,
    pub(super) leases_ended: u32,
    /// The put that gave it its place among tasks of one instant.
    pub(super) put_by: CallId,
    /// Ready for certain; `Some(false)`: as the wall clock says; `None`: either.
    pub(super) ready: Option<bool>,
    pub(super) leased: bool,
    /// The lease; while not leased, the one that a crash ended, if no other worker got the task since.
    pub(super) lease: Option<Lease>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lease {
    /// `None` if the answer with it never came.
    pub(super) token: Option<String>,
    /// The earliest end by the monotonic clock (ms).
    pub(super) until: u64,
    /// The earliest end by the wall clock (ms since 1970). It counts if `written`.
    pub(super) wall_until: i64,
    /// The end of the lease that the answer told the worker; `None` if it is not known to be of this lease.
    pub(super) told: Option<i64>,
    /// When the lease began.
    pub(super) since: Moment,
    /// Whether a graceful stop wrote the lease down. It then goes on after the restart, and ends by the clock that reaches its
    /// end first.
    pub(super) written: bool,
    /// Number of restarts since a crash ended the lease. After two restarts the server may have forgotten that no other
    /// worker got the task since.
    pub(super) restarts: u8,
    /// Its worker named the task by its id, so no limit applied.
    pub(super) by_id: bool,
}

impl Task {
    /// Back to waiting, without a lease.
    pub(super) fn wait(&mut self, leases_ended: u32, ready: Option<bool>) {
        self.leases_ended += leases_ended;
        (self.leased, self.lease, self.ready) = (false, None, ready);
    }

    /// A new instant for a waiting task.
    pub(super) fn due_again(&mut self, due: Due, op: &Op, clock: &Clock) {
        (self.due, self.since, self.ready) = (instant(due, op, clock), op.from, Some(false));
        self.was_due_before = None;
    }

    pub(super) fn grant(&mut self, token: Option<String>, lease_ms: u64, op: &Op, clock: &Clock) {
        // A crash may bring back what a stop wrote: then the earlier end counts.
        let written = self.lease.take().filter(|lease| lease.written);
        let wall_until = clock.walls(op.from, op.to).0.saturating_add_unsigned(lease_ms);
        self.lease = Some(Lease {
            token,
            until: clock.mono(op.from).saturating_add(lease_ms),
            wall_until: written.as_ref().map_or(wall_until, |old| old.wall_until.min(wall_until)),
            told: None,
            since: op.from,
            written: written.is_some(),
            restarts: 0,
            by_id: false,
        });
        (self.leased, self.ready) = (true, None);
    }

    /// The task is leased, and if the answer came, its worker was told until when.
    pub(super) fn grant_found(&mut self, found: Option<&Delivery>, lease_ms: u64, op: &Op, clock: &Clock) {
        self.grant(found.map(|found| found.token.clone()), lease_ms, op, clock);
        let lease = self.lease.as_mut().expect("it was just granted");
        lease.told = found.map(|found| found.lease_until);
    }

    /// Whether its lease goes on for certain: both clocks ran alike since it began, and the wall clock does not show yet what
    /// its worker was told.
    pub(super) fn is_as_told(&self, to: Moment, clock: &Clock) -> bool {
        let told =
            self.lease.as_ref().filter(|_| self.leased).and_then(|lease| Some((lease.since, lease.told?)));
        told.is_some_and(|(since, told)| clock.ran_alike(since, to) && clock.wall(to) < told)
    }

    /// The nearest instant that a change takes back, of those that had yet to come.
    pub(super) fn taken_back(&self, op: &Op, clock: &Clock) -> Option<i64> {
        let low = clock.walls(op.from, op.to).0;
        let mine = Some(self.due.1).filter(|due| self.ready == Some(false) && *due > low);
        [mine, self.was_due.filter(|old| *old > low)].into_iter().flatten().min()
    }

    /// Whether its instant has not come yet, for certain: a wall clock that went back may have shown it before.
    pub(super) fn waits_for_certain(&self, clock: &Clock) -> bool {
        self.ready == Some(false) && !self.leased && clock.walls(self.since, clock.now()).1 < self.due.0
    }

    /// Whether it was taken by its id.
    pub(super) fn is_taken_by_id(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.by_id)
    }

    /// Whether its lease, which goes on, would be over if the wall clock had a say in it.
    pub(super) fn ended_by_wall(&self, to: Moment, clock: &Clock) -> bool {
        let lease = self.lease.as_ref().filter(|_| self.leased);
        lease.is_some_and(|lease| {
            clock.mono(to) < lease.until && clock.walls(lease.since, to).1 >= lease.wall_until
        })
    }

    /// A view shows when it is given up.
    pub(super) fn expires_at(&mut self, shown: Option<i64>) -> Result<(), Broken> {
        match (self.expires, shown) {
            (None, None) => {}
            (Some((first, last)), Some(at)) if (first..=last).contains(&at) => self.expires = Some((at, at)),
            _ => return Err(("P1", format!("given up at {shown:?}, but {self:?}"))),
        }
        Ok(())
    }

    /// How long it waits after an attempt that was given back, by its policy.
    pub(super) fn backoff_ms(&self) -> Option<u64> {
        let (base_ms, doubles) = backoff_of(self.payload)?;
        let times = if doubles { self.leases_ended.saturating_sub(1).min(30) } else { 0 };
        Some((base_ms << times).min(BACKOFF_MS_MAX))
    }

    pub(super) fn attempt(&self, shown: Option<u32>) -> Result<bool, Broken> {
        let attempt = self.leases_ended + u32::from(self.leased);
        match shown {
            Some(shown) if shown != attempt => {
                Err(("P4", format!("attempt {shown}, not {attempt}: {self:?}")))
            }
            _ => Ok(true),
        }
    }

    /// Ready, or able to be by `to`: the wall clock must have shown the instant since it was set.
    pub(super) fn become_ready(&mut self, to: Moment, clock: &Clock) -> Result<(), Broken> {
        let high = clock.walls(self.since, to).1;
        if self.ready == Some(false) && high < self.due.0 {
            let rounded = self.due.0 - high <= 1;
            let promise = if !rounded && self.was_due.is_some_and(|old| old <= high) { "P5" } else { "P2" };
            return Err((promise, format!("ready, but the clock reached only {high}: {self:?}")));
        }
        self.ready = Some(true);
        Ok(())
    }
}

/// The instants that follow the first of a timeline.
pub(super) fn steps_from(first: Due, payload: u64) -> Vec<i64> {
    let (Due::At(at), Some((count, gap_ms))) = (first, steps_of(payload)) else { return Vec::new() };
    (1..count).map(|step| at.saturating_add_unsigned(step * gap_ms)).collect()
}

/// The span in which `due` falls.
pub(super) fn instant(due: Due, op: &Op, clock: &Clock) -> (i64, i64) {
    match due {
        Due::At(at) => (at, at),
        Due::In(ms) => {
            let (low, high) = clock.walls(op.from, op.to);
            // Rounded up to the millisecond once, from an instant inside one.
            (low.saturating_add_unsigned(ms), high.saturating_add_unsigned(ms).saturating_add(1))
        }
    }
}
