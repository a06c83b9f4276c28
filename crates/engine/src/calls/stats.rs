//! The engine's own figures.

use std::collections::BTreeMap;

use super::queues::ListQueues;
use crate::figures::{Event, LATENESS_BOUNDS_MS, QueueFigures};
use crate::queue_view::{QueuePage, QueueTotals};

/// Asks for the engine's own figures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GetStats(
    /// The page of queues to show beside the figures.
    pub ListQueues,
);

/// Looks at the wheel.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct GetWheel;

/// The engine's own figures since its start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// The page of queues that was asked for.
    pub page: QueuePage,
    /// Totals of the queues that have ended, by namespace. A namespace is kept only while it has other queues. Empty unless the page is the
    /// last.
    pub gone: BTreeMap<String, QueueTotals>,
    /// Sum of the figures of all queues that are forgotten.
    pub forgotten: QueueFigures,
    /// How many queues have appeared; no queue's [`appeared`](crate::QueueCounts::appeared) is higher.
    pub queues_appeared: u64,
    /// Puts and patches taken.
    pub scheduled_total: u64,
    /// Tasks added.
    pub added_total: u64,
    /// Tasks that became ready because their instant came.
    pub fired_total: u64,
    /// Tasks cancelled or revoked.
    pub cancelled_total: u64,
    /// Leases granted.
    pub leased_total: u64,
    /// Leases that ended by ack.
    pub acked_total: u64,
    /// Leases that ended by nack.
    pub nacked_total: u64,
    /// Leases that ran out.
    pub expired_total: u64,
    /// Tasks given up.
    pub dead_total: u64,
    /// Schedules that are configured.
    pub schedules: usize,
    /// Instants of schedules that a task was made of.
    pub made_total: u64,
    /// Instants of schedules that were left out: they were missed, or the task before them had not ended.
    pub skipped_total: u64,
    /// Instants of schedules that have come and wait until the task before them ends.
    pub instants_waiting: usize,
    /// Lateness of the tasks that fired, from `due_at` to ready, in the buckets of [`LATENESS_BOUNDS_MS`] and one beyond.
    pub lateness: [u64; LATENESS_BOUNDS_MS.len() + 1],
    /// Sum of the lateness (ms).
    pub lateness_sum_ms: u64,
    /// Bytes of growth that the store can take.
    pub room: u64,
    /// Calls that wait for a ready task.
    pub waiting: usize,
    /// Whether the store failed and only reads are answered.
    pub read_only: bool,
    /// Bytes that near memory takes (about).
    pub near_bytes: u64,
    /// The budget of near memory, see [`EngineConfig::near_bytes_max`](crate::EngineConfig::near_bytes_max).
    pub near_bytes_max: u64,
    /// All task ids that were ever given out are below this one.
    pub ids_below: u64,
}

impl Stats {
    /// Counts an event in all, and in its queue. So the figures of all queues, together with those of forgotten queues, add up to the
    /// figures of the engine. Patches and redrives count in [`scheduled_total`](Self::scheduled_total), as puts do.
    pub(crate) fn count(&mut self, of_queue: &mut QueueFigures, event: Event) {
        let (in_all, in_queue) = match event {
            Event::Put => (&mut self.scheduled_total, &mut of_queue.put),
            Event::Delivered => (&mut self.leased_total, &mut of_queue.delivered),
            Event::Acked => (&mut self.acked_total, &mut of_queue.acked),
            Event::Nacked => (&mut self.nacked_total, &mut of_queue.nacked),
            Event::Expired => (&mut self.expired_total, &mut of_queue.expired),
            Event::Cancelled => (&mut self.cancelled_total, &mut of_queue.cancelled),
            Event::Dead => (&mut self.dead_total, &mut of_queue.dead),
            Event::Fired { late_ms } => {
                self.lateness[LATENESS_BOUNDS_MS.partition_point(|&bound| bound < late_ms)] += 1;
                self.lateness_sum_ms = self.lateness_sum_ms.saturating_add(late_ms);
                of_queue.count_lateness(late_ms);
                self.fired_total += 1;
                return;
            }
        };
        *in_all += 1;
        *in_queue += 1;
    }
}
