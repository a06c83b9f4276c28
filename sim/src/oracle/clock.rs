//! Both clocks of the server over the whole run.

use std::fmt;

/// The index of a reading: the part of a run between two changes of a clock. Inside it both clocks stand still.
pub(super) type Moment = usize;

/// Every reading of the clocks, in order. A look-up of a span costs time in proportion to its number of readings.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Monotonic ms, wall ms.
    readings: Vec<(u64, i64)>,
    /// The starts that held back what fell due: the reading with which the hold began, and for it and each later one the wall ms by which tasks
    /// fell due. A hold is over with the first reading that it does not have.
    holds: Vec<(Moment, Vec<i64>)>,
    /// For each reading: the earliest earlier reading from which on both clocks advanced equally.
    alike_since: Vec<Moment>,
    /// How far the last reading of the wall clock is ahead of the monotonic clock (ns).
    apart_ns: i128,
}

impl Clock {
    pub(super) fn new(mono_ns: u64, wall_ns: i128) -> Self {
        let readings = vec![in_ms(mono_ns, wall_ns)];
        Clock { readings, holds: Vec::new(), alike_since: vec![0], apart_ns: wall_ns - i128::from(mono_ns) }
    }

    /// Adds a reading, unless it is equal to the last one.
    pub(super) fn read(&mut self, mono_ns: u64, wall_ns: i128) {
        let reading = in_ms(mono_ns, wall_ns);
        let apart_ns = wall_ns - i128::from(mono_ns);
        let alike = apart_ns == self.apart_ns;
        let was_held =
            self.holds.last().is_some_and(|(begun, falls_due)| begun + falls_due.len() > self.now());
        if alike && reading == self.last() && !was_held {
            return;
        }
        let now = self.readings.len();
        self.alike_since.push(if alike { self.alike_since[now - 1] } else { now });
        self.readings.push(reading);
        self.apart_ns = apart_ns;
    }

    /// Adds a reading of a server that holds back what fell due after `falls_due_ns`. `begins`: the server has just started.
    pub(super) fn read_held(&mut self, mono_ns: u64, wall_ns: i128, falls_due_ns: i128, begins: bool) {
        let reading = in_ms(mono_ns, wall_ns);
        self.alike_since.push(self.readings.len());
        self.readings.push(reading);
        self.apart_ns = wall_ns - i128::from(mono_ns);
        let falls_due_ms = in_ms(mono_ns, falls_due_ns).1;
        match self.holds.last_mut() {
            Some((_, falls_due)) if !begins => falls_due.push(falls_due_ms),
            _ => self.holds.push((self.now(), vec![falls_due_ms])),
        }
    }

    /// The wall clock by which a task falls due at this reading, if the task is as it was at `since` (ms).
    fn falls_due(&self, at: Moment, since: Moment) -> i64 {
        let hold =
            self.holds.iter().rev().find(|(begun, _)| *begun <= at).filter(|(begun, _)| *begun > since);
        let held = hold.and_then(|(begun, falls_due)| falls_due.get(at - begun));
        held.copied().unwrap_or(self.readings[at].1)
    }

    pub(super) fn now(&self) -> Moment {
        self.readings.len() - 1
    }

    /// The present readings of both clocks: monotonic ms, wall ms.
    pub(super) fn last(&self) -> (u64, i64) {
        self.readings[self.now()]
    }

    pub(super) fn mono(&self, at: Moment) -> u64 {
        self.readings[at.min(self.now())].0
    }

    pub(super) fn wall(&self, at: Moment) -> i64 {
        self.readings[at.min(self.now())].1
    }

    /// Whether both clocks advanced equally from `from` to `to`.
    pub(super) fn ran_alike(&self, from: Moment, to: Moment) -> bool {
        self.alike_since[to.min(self.now())] <= from
    }

    /// The wall clock by which everything that was due in `from..=to` certainly fell due (ms); a `to` in the future means now. It is behind the
    /// lowest reading while a start holds back what fell due.
    pub(super) fn surely_due(&self, from: Moment, to: Moment) -> i64 {
        let span = from..=to.min(self.now()).max(from);
        span.map(|at| self.readings[at].1.min(self.falls_due(at, 0))).min().unwrap_or(i64::MIN)
    }

    /// The lowest and the highest reading of the wall clock in `from..=to` (ms); a `to` in the future means now. For the highest, a start that
    /// came after `from` and held back what fell due counts as the wall clock by which tasks fell due.
    pub(super) fn walls(&self, from: Moment, to: Moment) -> (i64, i64) {
        let span = from..=to.min(self.now()).max(from);
        span.fold((i64::MAX, i64::MIN), |(low, high), at| {
            (low.min(self.readings[at].1), high.max(self.falls_due(at, from)))
        })
    }
}

/// Both readings in milliseconds, rounded down.
fn in_ms(mono_ns: u64, wall_ns: i128) -> (u64, i64) {
    let wall_ms = i64::try_from(wall_ns.div_euclid(1_000_000)).expect("runs end long before time does");
    (mono_ns / 1_000_000, wall_ms)
}

impl fmt::Display for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mono, wall) = self.last();
        write!(out, "{mono} ms, wall {wall}")
    }
}
