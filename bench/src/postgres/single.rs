//! One put at a time.

use std::time::{Duration, Instant};

use super::subject::Subject;
use crate::embedded::Load;

/// Puts before the measurement.
const BEFORE: u64 = 50;

/// Returns the median of the time of one durable put (ms), by one caller who waits for each.
pub(super) fn p50_ms(subject: &dyn Subject, load: &Load, puts: u64) -> anyhow::Result<f64> {
    let mut workers = subject.workers(load)?;
    let (worker, queues) = &mut workers[0];
    let mut times = Vec::new();
    for n in 0..BEFORE + puts {
        if n == BEFORE {
            subject.base().settle()?;
        }
        let task = load.task(queues[0], n);
        let begun = Instant::now();
        worker.put_one(queues[0], task)?;
        if n >= BEFORE {
            times.push(begun.elapsed());
        }
    }
    Ok(median_ms(&mut times))
}

/// Returns the median of at least one time (ms).
pub(super) fn median_ms(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
