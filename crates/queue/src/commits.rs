//! [`CommitSeconds`]: a histogram of the durations of commits.

use std::time::Duration;

/// The upper bounds of the buckets (µs). One more bucket counts the commits that are longer than the last bound.
pub const COMMIT_BOUNDS_US: [u64; 14] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 2_000_000, 10_000_000];

/// A histogram of the durations of commits, each from the request to the store until the store reported the commit as done.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitSeconds {
    /// The number of commits in each bucket of [`COMMIT_BOUNDS_US`], and in one more bucket for longer commits.
    pub buckets: [u64; COMMIT_BOUNDS_US.len() + 1],
    /// The sum of the durations of all commits.
    pub sum: Duration,
}

impl CommitSeconds {
    /// Returns the number of all commits.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn count(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[COMMIT_BOUNDS_US.partition_point(|&bound| bound < us)] += 1;
        self.sum += took;
    }

    /// Adds the commits of another shard.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum += other.sum;
    }
}
