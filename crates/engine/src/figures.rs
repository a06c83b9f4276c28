//! [`QueueFigures`]: counts of the events of one queue, for monitoring.

/// Upper bounds of the lateness histogram of an engine (ms). The histogram has one more count, for every lateness above the last bound.
pub const LATENESS_BOUNDS_MS: [u64; 14] =
    [0, 1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000, 60_000, 3_600_000];

/// Upper bounds of a queue's lateness histogram (ms). The histogram has one more count, for every lateness above the last bound.
///
/// Each bound is also in [`LATENESS_BOUNDS_MS`](crate::LATENESS_BOUNDS_MS). There are few bounds, because each queue has its own histogram.
pub const QUEUE_LATENESS_BOUNDS_MS: [u64; 5] = [10, 100, 1_000, 5_000, 60_000];

/// The events that are counted twice: once for the shard and once for the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A live task was put, imported, or made by a schedule.
    Put,
    /// A lease was granted.
    Delivered,
    /// A lease ended by ack.
    Acked,
    /// A lease ended by nack.
    Nacked,
    /// A lease ran out.
    Expired,
    /// An owner cancelled a task, which a worker may have had.
    Cancelled,
    /// A task was given up.
    Dead,
    /// A task became ready because its instant came.
    Fired {
        /// How late the task became ready (ms). Never negative, because no task fires early.
        late_ms: u64,
    },
}

const BUCKETS: usize = QUEUE_LATENESS_BOUNDS_MS.len() + 1;

/// Counts of the events in a queue since the queue appeared. Events from before the start of the engine are not counted.
///
/// Unlike [`QueueTotals`](crate::QueueTotals), these figures are kept when the queue is empty. The figures end when the engine forgets the
/// queue: an hour after the queue was emptied, when the queue is deleted, or when 10,000 other queues were emptied after it. Figures that
/// have ended are part of [`Stats::forgotten`](crate::Stats::forgotten), so the sum over all queues loses no event. No figure falls while
/// the engine keeps the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueFigures {
    /// Live tasks added or replaced, by puts, imports and schedules.
    pub put: u64,
    /// Leases granted.
    pub delivered: u64,
    /// Leases that ended by ack.
    pub acked: u64,
    /// Leases that ended by nack.
    pub nacked: u64,
    /// Leases that ran out.
    pub expired: u64,
    /// Tasks cancelled, with or without a worker that had the task.
    pub cancelled: u64,
    /// Tasks given up.
    pub dead: u64,
    /// How many tasks fired with each lateness, from `due_at`, or from the put if that was later, to ready: one count for each bound in
    /// [`QUEUE_LATENESS_BOUNDS_MS`], and one count for every lateness above the last bound.
    pub lateness: [u64; BUCKETS],
    /// The sum of all latenesses (ms).
    pub lateness_sum_ms: u64,
}

impl QueueFigures {
    /// Counts a task that fired this late (ms).
    pub(crate) fn count_lateness(&mut self, late_ms: u64) {
        self.lateness[QUEUE_LATENESS_BOUNDS_MS.partition_point(|&bound| bound < late_ms)] += 1;
        self.lateness_sum_ms = self.lateness_sum_ms.saturating_add(late_ms);
    }

    /// Adds the figures of another queue.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, u64::saturating_add);
    }

    /// Returns the events since `before`, an earlier copy of these figures. A figure that is higher in `before` gives 0.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        self.merge(before, u64::saturating_sub);
        self
    }

    /// Returns, for each figure, the higher of the values in `self` and `other`.
    #[must_use]
    pub fn max(mut self, other: &Self) -> Self {
        self.merge(other, u64::max);
        self
    }

    fn merge(&mut self, other: &Self, merge: impl Fn(u64, u64) -> u64) {
        let Self { put, delivered, acked, nacked, expired, cancelled, dead, lateness, lateness_sum_ms } =
            other;
        for (mine, other) in [
            (&mut self.put, put),
            (&mut self.delivered, delivered),
            (&mut self.acked, acked),
            (&mut self.nacked, nacked),
            (&mut self.expired, expired),
            (&mut self.cancelled, cancelled),
            (&mut self.dead, dead),
            (&mut self.lateness_sum_ms, lateness_sum_ms),
        ]
        .into_iter()
        .chain(self.lateness.iter_mut().zip(lateness))
        {
            *mine = merge(*mine, *other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_a_queue_are_bounds_of_the_engine() {
        assert!(QUEUE_LATENESS_BOUNDS_MS.iter().all(|bound| LATENESS_BOUNDS_MS.contains(bound)));
        assert!(QUEUE_LATENESS_BOUNDS_MS.is_sorted());
    }

    #[test]
    fn a_task_is_counted_in_the_bucket_whose_bound_it_does_not_exceed() {
        let mut figures = QueueFigures::default();
        for late_ms in [0, 10, 11, 5_000, 60_001] {
            figures.count_lateness(late_ms);
        }
        assert_eq!((figures.lateness, figures.lateness_sum_ms), ([2, 1, 0, 1, 0, 1], 65_022));
    }

    #[test]
    fn each_figure_is_merged() {
        let all = |n| QueueFigures {
            put: n,
            delivered: n,
            acked: n,
            nacked: n,
            expired: n,
            cancelled: n,
            dead: n,
            lateness: [n; BUCKETS],
            lateness_sum_ms: n,
        };
        let mut sum = all(2);
        sum.add(&all(3));
        assert_eq!(sum, all(5));
        assert_eq!((all(5).since(&all(3)), all(3).since(&all(5))), (all(2), all(0)));
        assert_eq!((all(5).max(&all(3)), all(3).max(&all(5))), (all(5), all(5)));
    }
}
