//! [`HistoryLimits`]: how many ended tasks are remembered, and for how long.

use tickwheel_engine::Retention;

/// How many ended tasks are remembered, and for how long. Tasks beyond any limit are forgotten. In a queue, the oldest ended tasks are
/// forgotten first. If all queues together have too many, the tasks that ended first are forgotten first, even if their queue has a limit
/// of its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HistoryLimits {
    /// The limit of each queue that has no limit of its own.
    pub queue: Retention,
    /// The most ended tasks that are remembered of all queues together.
    pub total: usize,
}

impl HistoryLimits {
    /// Returns a limit of `per_queue` ended tasks for each queue, with no limit on their age and none for all queues together.
    #[must_use]
    pub fn last(per_queue: usize) -> Self {
        let queue = Retention { keep_ms: u64::MAX, keys: per_queue as u64 };
        Self { queue, total: usize::MAX }
    }
}

impl Default for HistoryLimits {
    /// Returns the default limits: 24 hours and 100,000 tasks for each queue, and 250,000 tasks for all queues together. Each task takes
    /// about 200 bytes of memory, and is written to each checkpoint.
    fn default() -> Self {
        Self { queue: Retention { keep_ms: 86_400_000, keys: 100_000 }, total: 250_000 }
    }
}
