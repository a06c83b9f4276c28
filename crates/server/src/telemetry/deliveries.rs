//! How late workers that were waiting got their tasks.

use std::sync::{Mutex, PoisonError};

use tickwheel_queue::{LATENESS_BOUNDS_MS, Leased, Timestamp};

/// A histogram of the time from `due_at` to the moment the answer is made, of tasks that fell due while their worker was
/// waiting. A task that was ready before anybody asked says nothing about the server and is not counted.
///
/// It stands beside the lateness that the queue measures, `due_at` to ready: the difference is the rim's.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<DeliveryLateness>);

/// The counts, in the buckets of [`LATENESS_BOUNDS_MS`] and one beyond.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryLateness {
    pub(crate) counts: [u64; LATENESS_BOUNDS_MS.len() + 1],
    pub(crate) sum_ms: u64,
}

impl Deliveries {
    /// Counts what a call that began at `asked` answers at `now`.
    pub(crate) fn count(&self, leased: &[Leased], asked: Timestamp, now: Timestamp) {
        let fell_due = leased.iter().filter(|task| task.due_at > asked);
        let mut lateness = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for late_ms in fell_due.map(|task| now.ms_since(task.due_at)) {
            lateness.counts[LATENESS_BOUNDS_MS.partition_point(|&bound| bound < late_ms)] += 1;
            lateness.sum_ms = lateness.sum_ms.saturating_add(late_ms);
        }
    }

    /// The counts so far.
    pub(crate) fn lateness(&self) -> DeliveryLateness {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
