//! Commits beside a snapshot that another session holds open, as a dump does: VACUUM removes no row that is dead since.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::link::Link;
use super::single::median_ms;
use super::subject::{Subject, Worker};
use crate::embedded::Load;

/// The time with the snapshot is looked at in this many parts.
const PARTS: u32 = 5;
/// Cycles before the first part.
const BEFORE: u64 = 50;
/// Opens the snapshot, which lasts until the connection ends.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM pg_class";

/// Figures of one measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The median of a cycle without a snapshot (ms).
    pub(super) before_ms: f64,
    /// The median in the slowest fifth of the time with the snapshot (ms).
    pub(super) held_ms: f64,
    /// Cycles with the snapshot.
    pub(super) cycles: u64,
}

/// One caller puts a task that is due, takes it and ends it, again and again.
pub(super) fn measured(subject: &dyn Subject, load: &Load, held: Duration) -> anyhow::Result<Held> {
    let mut workers = subject.workers(load)?;
    let (worker, queues) = &mut workers[0];
    let mut cycles = Cycles { worker: &mut **worker, load, queue: queues[0], next: 0 };
    for _ in 0..BEFORE {
        cycles.one()?;
    }
    subject.base().settle()?;
    let part = held / PARTS;
    let (before_ms, _) = cycles.during(part)?;
    let mut snapshot = Link::open(&subject.base().url)?;
    snapshot.script(SNAPSHOT)?;
    let (mut held_ms, mut count) = (0.0, 0);
    for _ in 0..PARTS {
        let (ms, cycles) = cycles.during(part)?;
        held_ms = f64::max(held_ms, ms);
        count += cycles;
    }
    // The snapshot is still there, so no row was cleaned up.
    snapshot.script("SELECT count(*) FROM pg_class; COMMIT")?;
    ensure!(subject.count()? == 0, "a task is left");
    Ok(Held { before_ms, held_ms, cycles: count })
}

struct Cycles<'a> {
    worker: &'a mut dyn Worker,
    load: &'a Load,
    queue: usize,
    next: u64,
}

impl Cycles<'_> {
    fn one(&mut self) -> anyhow::Result<Duration> {
        let task = self.load.task(self.queue, self.next);
        self.next += 1;
        let begun = Instant::now();
        self.worker.put_one(self.queue, task)?;
        let taken = self.worker.take(self.queue, 1)?;
        ensure!(taken == 1, "{taken} tasks were taken");
        Ok(begun.elapsed())
    }

    /// Returns the median (ms) and the number of the cycles in this time.
    fn during(&mut self, time: Duration) -> anyhow::Result<(f64, u64)> {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while times.is_empty() || begun.elapsed() < time {
            times.push(self.one()?);
        }
        Ok((median_ms(&mut times), times.len() as u64))
    }
}
