//! How long commits take.

use std::time::Duration;

/// Upper bounds of the histogram (µs). One more count stands behind the last.
pub const COMMIT_BOUNDS_US: [u64; 14] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 2_000_000, 10_000_000];

/// A histogram of the time from handing a commit to the store until it is durable.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitSeconds {
    /// Commits in each bucket of [`COMMIT_BOUNDS_US`] and one beyond.
    pub buckets: [u64; COMMIT_BOUNDS_US.len() + 1],
    /// The sum of these times.
    pub sum: Duration,
}

impl CommitSeconds {
    pub(crate) fn count(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[COMMIT_BOUNDS_US.partition_point(|&bound| bound < us)] += 1;
        self.sum += took;
    }
}
