//! How much is remembered.

use tickwheel_engine::Retention;

/// How much is remembered of tasks that ended. What goes beyond any of it is forgotten: of a queue the oldest first, and of all queues together
/// those that ended first, whatever their owners said.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HistoryLimits {
    /// Of each queue, unless its owner said otherwise.
    pub queue: Retention,
    /// Ended tasks of all queues.
    pub total: usize,
}

impl HistoryLimits {
    /// For ever, and so many of each queue.
    #[must_use]
    pub fn last(per_queue: usize) -> Self {
        let queue = Retention { keep_ms: u64::MAX, keys: per_queue as u64 };
        Self { queue, total: usize::MAX }
    }
}

impl Default for HistoryLimits {
    /// 24 hours and 100,000 tasks of each queue, 250,000 of all: each takes some 200 bytes of memory, and is in each checkpoint.
    fn default() -> Self {
        Self { queue: Retention { keep_ms: 86_400_000, keys: 100_000 }, total: 250_000 }
    }
}
