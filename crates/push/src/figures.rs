//! [`Figures`]: the counts of one target, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::outcome::Outcome;

/// The upper bounds of the buckets of both histograms (ms).
pub const PUSH_BOUNDS_MS: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 250, 1_000, 5_000, 15_000, 60_000];

/// The counts of one target since it was started.
#[derive(Debug, Default)]
pub struct Figures {
    outcomes: [AtomicU64; Outcome::NAMES.len()],
    seconds: Histogram,
    lateness: Histogram,
}

/// A histogram with the bounds [`PUSH_BOUNDS_MS`].
#[derive(Debug, Default)]
pub struct Histogram {
    /// The counts of the buckets; the last one has what is above all bounds.
    buckets: [AtomicU64; PUSH_BOUNDS_MS.len() + 1],
    sum_us: AtomicU64,
}

impl Figures {
    /// Counts an attempt. `late_ms`: the time from the due time to the confirmation, if there was one.
    pub(crate) fn count(&self, outcome: &Outcome, took: Duration, late_ms: Option<u64>) {
        let at = Outcome::NAMES.iter().position(|name| *name == outcome.name());
        self.outcomes[at.expect("the list has all names")].fetch_add(1, Ordering::Relaxed);
        self.seconds.add(took);
        if let Some(late_ms) = late_ms {
            self.lateness.add(Duration::from_millis(late_ms));
        }
    }

    /// Returns the number of attempts with each outcome, with the word of the outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Outcome::NAMES.iter().zip(&self.outcomes).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
    }

    /// Returns how long attempts took.
    #[must_use]
    pub fn seconds(&self) -> &Histogram {
        &self.seconds
    }

    /// Returns how long after its due time each task was confirmed.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }
}

impl Histogram {
    fn add(&self, took: Duration) {
        let ms = u64::try_from(took.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        let at = PUSH_BOUNDS_MS.partition_point(|bound| *bound < ms);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Returns the counts of the buckets, not summed up. The last one has what is above all bounds.
    #[must_use]
    pub fn buckets(&self) -> [u64; PUSH_BOUNDS_MS.len() + 1] {
        std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed))
    }

    /// Returns the sum of all values (µs).
    #[must_use]
    pub fn sum_us(&self) -> u64 {
        self.sum_us.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_by_outcome_and_by_time() {
        let figures = Figures::default();
        figures.count(&Outcome::Delivered, Duration::from_millis(2), Some(3));
        figures.count(&Outcome::task_failed("no"), Duration::from_micros(2_001), None);
        figures.count(&Outcome::target_failed("no"), Duration::from_secs(100), None);
        let outcomes: Vec<_> = figures.outcomes().filter(|(_, count)| *count > 0).collect();
        assert_eq!(outcomes, [("acked", 1), ("failed", 1), ("given_back", 1)]);
        assert_eq!(figures.seconds().buckets(), [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(figures.seconds().sum_us(), 2_000 + 2_001 + 100_000_000);
        assert_eq!(figures.lateness().buckets()[2], 1);
    }
}
