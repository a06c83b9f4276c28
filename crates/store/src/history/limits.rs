//! Limits of how many ended tasks are remembered, and how long.

use tickwheel_engine::Retention;

/// Limits of how many ended tasks are remembered, and how long. Tasks beyond any limit are forgotten. In a queue the oldest go first. Of
/// all queues together the tasks that ended first go first, whatever the owners of the queues set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HistoryLimits {
    /// The limit of each queue, unless its owner set another one.
    pub queue: Retention,
    /// The limit of ended tasks of all queues together.
    pub total: usize,
}

impl HistoryLimits {
    /// Remembers for ever, and this many ended tasks of each queue.
    #[must_use]
    pub fn last(per_queue: usize) -> Self {
        let queue = Retention { keep_ms: u64::MAX, keys: per_queue as u64 };
        Self { queue, total: usize::MAX }
    }
}

impl Default for HistoryLimits {
    /// 24 hours and 100,000 tasks of each queue, 250,000 of all queues: each takes about 200 bytes of memory, and is in each checkpoint.
    fn default() -> Self {
        Self { queue: Retention { keep_ms: 86_400_000, keys: 100_000 }, total: 250_000 }
    }
}
