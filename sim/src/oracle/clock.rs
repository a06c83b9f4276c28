//! Both clocks of the server over the whole run.

use std::fmt;

/// The index of a reading: the part of a run between two changes of a clock. Inside it both clocks stand still.
pub(super) type Moment = usize;

/// Every reading of the clocks, in order. A look-up of a span costs time in proportion to its number of readings.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Monotonic ms, wall ms.
    readings: Vec<(u64, i64)>,
    /// For each reading: the earliest earlier reading from which on both clocks advanced equally.
    alike_since: Vec<Moment>,
    /// How far the last reading of the wall clock is ahead of the monotonic clock (ns).
    apart_ns: i128,
}

impl Clock {
    pub(super) fn new(mono_ns: u64, wall_ns: i128) -> Self {
        let readings = vec![in_ms(mono_ns, wall_ns)];
        Clock { readings, alike_since: vec![0], apart_ns: wall_ns - i128::from(mono_ns) }
    }

    /// Adds a reading, unless it is equal to the last one.
    pub(super) fn read(&mut self, mono_ns: u64, wall_ns: i128) {
        let reading = in_ms(mono_ns, wall_ns);
        let apart_ns = wall_ns - i128::from(mono_ns);
        let alike = apart_ns == self.apart_ns;
        if alike && reading == self.last() {
            return;
        }
        let now = self.readings.len();
        self.alike_since.push(if alike { self.alike_since[now - 1] } else { now });
        self.readings.push(reading);
        self.apart_ns = apart_ns;
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

    /// The lowest and the highest reading of the wall clock in `from..=to` (ms); a `to` in the future means now.
    pub(super) fn walls(&self, from: Moment, to: Moment) -> (i64, i64) {
        let span = &self.readings[from..=to.min(self.now()).max(from)];
        span.iter().fold((i64::MAX, i64::MIN), |(low, high), &(_, wall)| (low.min(wall), high.max(wall)))
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
