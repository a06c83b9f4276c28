//! The lateness of deliveries to workers that were waiting.

use std::sync::{Mutex, PoisonError};

use tickwheel_queue::{LATENESS_BOUNDS_MS, Leased, Timestamp};

/// A histogram of the time from `due_at` to the moment when the answer is made, for tasks that became due while their
/// worker was waiting. A task that was ready before the call says nothing about the server and is not counted.
///
/// The queue measures another lateness, from `due_at` to ready; the difference is the time in the service and the
/// door.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<DeliveryLateness>);

/// The counts, in the buckets of [`LATENESS_BOUNDS_MS`] and one for later deliveries.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryLateness {
    pub(crate) counts: [u64; LATENESS_BOUNDS_MS.len() + 1],
    pub(crate) sum_ms: u64,
}

impl Deliveries {
    /// Counts the tasks that a call, begun at `asked`, returns at `now`.
    pub(crate) fn count(&self, leased: &[Leased], asked: Timestamp, now: Timestamp) {
        let fell_due = leased.iter().filter(|task| task.due_at > asked);
        let mut lateness = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for late_ms in fell_due.map(|task| now.ms_since(task.due_at)) {
            lateness.counts[LATENESS_BOUNDS_MS.partition_point(|&bound| bound < late_ms)] += 1;
            lateness.sum_ms = lateness.sum_ms.saturating_add(late_ms);
        }
    }

    /// The counts until now.
    pub(crate) fn lateness(&self) -> DeliveryLateness {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
