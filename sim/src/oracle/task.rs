//! A live task, as far as answers have shown it, and its lease.

use super::call::{BACKOFF_MS_MAX, CallId, Delivery, Due, backoff_of, steps_of};
use super::clock::{Clock, Moment};
use super::world::{Broken, Op};

/// A live task. `None` in `id` or `version`: no answer has shown it yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    pub(super) id: Option<u64>,
    pub(super) version: Option<u64>,
    /// The earliest and the latest possible due instant (wall clock, ms); equal once an answer has shown it.
    pub(super) due: (i64, i64),
    /// The earliest of the due instants that the owner replaced before they came.
    pub(super) was_due: Option<i64>,
    /// The instants of its timeline that come after this one.
    pub(super) steps: Vec<i64>,
    /// The token that acked the previous instant of the timeline.
    pub(super) stepped: Option<String>,
    /// The earliest and the latest possible instant of the first of the debounced puts (wall clock, ms).
    pub(super) put_at: (i64, i64),
    /// Whether a debounced put goes on with the row of puts before it.
    pub(super) row: Row,
    /// The earliest and the latest possible instant at which the task expires (wall clock, ms); `None`: never.
    pub(super) expires: Option<(i64, i64)>,
    /// The earliest moment at which `expires` may have been set.
    pub(super) born: Moment,
    /// The possible due instants before the last nack with a delay. If the task had already expired at that nack, one
    /// of them is the due instant with which it died.
    pub(super) was_due_before: Option<(i64, i64)>,
    /// The earliest moment at which `due` may have been set, or the last restart after that.
    pub(super) since: Moment,
    pub(super) payload: u64,
    pub(super) leases_ended: u32,
    /// The put that gave the task its place among tasks of equal priority and due instant.
    pub(super) put_by: CallId,
    /// `Some(true)`: certainly ready. `Some(false)`: ready if the wall clock has shown `due`. `None`: ready or not.
    pub(super) ready: Option<bool>,
    pub(super) leased: bool,
    /// The lease. If the task is not leased: the lease that a crash ended, if no other worker has got the task since.
    pub(super) lease: Option<Lease>,
}

/// The row of debounced puts that made a task.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    #[default]
    GoesOn,
    /// A call without an answer may have made the task due before its time.
    MayHaveEnded,
    /// The owner made the task live again, or due before its time.
    Ended,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lease {
    /// `None` if no answer has shown the token.
    pub(super) token: Option<String>,
    /// The earliest instant at which the lease may end by the monotonic clock (ms).
    pub(super) until: u64,
    /// The earliest instant at which the lease may end by the wall clock (ms since 1970). It is used only if `written`
    /// is true.
    pub(super) wall_until: i64,
    /// The latest instant at which the lease ends by the monotonic clock (ms); `u64::MAX`: unknown.
    pub(super) latest: u64,
    /// The least and the most that a stop may have written down as what was left of the lease (ms). It is used only if `written` is true.
    pub(super) left: (u64, u64),
    /// The end of the lease as the answer told it to the worker (wall clock, ms); `None` if no answer has shown the end of this lease.
    pub(super) told: Option<i64>,
    /// When the lease began.
    pub(super) since: Moment,
    /// Whether a graceful stop wrote the lease down. It then goes on after the restart, and ends by the clock that reaches its end first.
    pub(super) written: bool,
    /// Number of restarts since a crash ended the lease. After two restarts the server may have forgotten that no other
    /// worker got the task since.
    pub(super) restarts: u8,
    /// The lease call named the task by its id, so no limit applied.
    pub(super) by_id: bool,
}

impl Task {
    /// Ends the lease: the task waits again.
    pub(super) fn wait(&mut self, leases_ended: u32, ready: Option<bool>) {
        self.leases_ended += leases_ended;
        (self.leased, self.lease, self.ready) = (false, None, ready);
    }

    /// Sets a new due instant of a waiting task.
    pub(super) fn due_again(&mut self, due: Due, op: &Op, clock: &Clock) {
        (self.due, self.since, self.ready) = (instant(due, op, clock), op.from, Some(false));
        self.was_due_before = None;
    }

    /// The owner made the task live again, or due before its time. Without an answer, perhaps the task was due already.
    pub(super) fn end_row(&mut self, is_certain: bool) {
        self.row = self.row.max(if is_certain { Row::Ended } else { Row::MayHaveEnded });
    }

    /// Returns when the row of a debounced put at `now` began, which replaces this task.
    pub(super) fn row_begin(&self, now: (i64, i64)) -> (i64, i64) {
        match self.row {
            Row::GoesOn => self.put_at,
            Row::MayHaveEnded => (self.put_at.0.min(now.0), self.put_at.1.max(now.1)),
            Row::Ended => now,
        }
    }

    pub(super) fn grant(&mut self, token: Option<String>, lease_ms: u64, op: &Op, clock: &Clock) {
        // If a stop wrote the lease down, a crash may bring back the end that was written. So the earlier of both ends
        // counts.
        let written = self.lease.take().filter(|lease| lease.written);
        let wall_until = clock.walls(op.from, op.to).0.saturating_add_unsigned(lease_ms);
        // The reading is rounded down, and the server rounds the end up on each clock. A call without an answer takes effect at an unknown moment.
        let latest = clock.mono(op.to).saturating_add(lease_ms).saturating_add(3);
        self.lease = Some(Lease {
            token,
            until: clock.mono(op.from).saturating_add(lease_ms),
            wall_until: written.as_ref().map_or(wall_until, |old| old.wall_until.min(wall_until)),
            latest: if op.said.is_some() { latest } else { u64::MAX },
            left: written.as_ref().map_or((u64::MAX, 0), |old| old.left),
            told: None,
            since: op.from,
            written: written.is_some(),
            restarts: 0,
            by_id: false,
        });
        (self.leased, self.ready) = (true, None);
    }

    /// The task is leased. If the answer came, it told the worker when the lease ends.
    pub(super) fn grant_found(&mut self, found: Option<&Delivery>, lease_ms: u64, op: &Op, clock: &Clock) {
        self.grant(found.map(|found| found.token.clone()), lease_ms, op, clock);
        let lease = self.lease.as_mut().expect("it was just granted");
        lease.told = found.map(|found| found.lease_until);
    }

    /// Whether the lease certainly goes on at `to`: both clocks have advanced equally since it began, and the wall
    /// clock has not reached the end that the worker was told.
    pub(super) fn is_as_told(&self, to: Moment, clock: &Clock) -> bool {
        let told =
            self.lease.as_ref().filter(|_| self.leased).and_then(|lease| Some((lease.since, lease.told?)));
        told.is_some_and(|(since, told)| clock.ran_alike(since, to) && clock.wall(to) < told)
    }

    /// The earliest due instant that was replaced before it came, by this change or by an earlier one.
    pub(super) fn taken_back(&self, op: &Op, clock: &Clock) -> Option<i64> {
        let low = clock.walls(op.from, op.to).0;
        let mine = Some(self.due.1).filter(|due| self.ready == Some(false) && *due > low);
        [mine, self.was_due.filter(|old| *old > low)].into_iter().flatten().min()
    }

    /// Whether the due instant has certainly not come yet. The highest reading of the wall clock counts, because the
    /// clock may have gone back.
    pub(super) fn waits_for_certain(&self, clock: &Clock) -> bool {
        self.ready == Some(false) && !self.leased && clock.walls(self.since, clock.now()).1 < self.due.0
    }

    /// Whether its lease comes from a call that named the task by its id.
    pub(super) fn is_taken_by_id(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.by_id)
    }

    /// Whether the lease still runs by the monotonic clock but has run out by the wall clock.
    pub(super) fn ended_by_wall(&self, to: Moment, clock: &Clock) -> bool {
        let lease = self.lease.as_ref().filter(|_| self.leased);
        lease.is_some_and(|lease| {
            clock.mono(to) < lease.until && clock.walls(lease.since, to).1 >= lease.wall_until
        })
    }

    /// Compares the expiry that a view shows with what is known, and learns it.
    pub(super) fn expires_at(&mut self, shown: Option<i64>) -> Result<(), Broken> {
        match (self.expires, shown) {
            (None, None) => {}
            (Some((first, last)), Some(at)) if (first..=last).contains(&at) => self.expires = Some((at, at)),
            _ => return Err(("P1", format!("given up at {shown:?}, but {self:?}"))),
        }
        Ok(())
    }

    /// The wait of the task after a nack that names no delay (ms), by the retry policy; `None`: no wait.
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

    /// Makes the task ready, if it can be ready at `to`: it is ready already, or the wall clock has shown the due instant since it was set.
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

/// The earliest and the latest instant that a call with this `due` may mean (wall clock, ms).
pub(super) fn instant(due: Due, op: &Op, clock: &Clock) -> (i64, i64) {
    match due {
        Due::At(at) => (at, at),
        Due::In(ms) => {
            let (low, high) = clock.walls(op.from, op.to);
            // The server reads the clock within a millisecond, and rounds the sum up to the next one.
            (low.saturating_add_unsigned(ms), high.saturating_add_unsigned(ms).saturating_add(1))
        }
    }
}
