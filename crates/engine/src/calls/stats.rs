//! The engine's own figures.

use std::collections::BTreeMap;

use tickwheel_core::Ring;

use super::queues::ListQueues;
use crate::figures::{Event, LATENESS_BOUNDS_MS, QueueFigures};
use crate::queue_view::{QueuePage, QueueTotals};
use crate::time::Timestamp;

/// Returns the engine's own figures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GetStats(
    /// The page of queues that the answer has beside the figures.
    pub ListQueues,
);

/// Returns a view of the wheel that holds the scheduled and dead tasks that are whole in memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct GetWheel;

/// A picture of the wheel that holds the scheduled and dead tasks that are whole in memory. A tick is a millisecond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WheelView {
    /// The wall-clock time of the engine. After the wall clock has stepped back, the hands of the rings are ahead of `now`.
    pub now: Timestamp,
    /// Number of tasks in the wheel, including dead tasks that wait to be forgotten. Tasks that are due after the end of the turn of the
    /// last ring are in no slot.
    pub tasks: u64,
    /// The rings, from the finest to the coarsest.
    pub rings: [Ring; 4],
}

/// The engine's own figures. Counts of events begin at the engine's start, or at that of an earlier engine, see
/// [`Engine::count_on`](crate::Engine::count_on).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// The page of queues that the call asked for.
    pub page: QueuePage,
    /// Totals of the queues that have ended, by namespace. A namespace is kept only while it has other queues. Empty unless the page is the
    /// last.
    pub gone: BTreeMap<String, QueueTotals>,
    /// Sum of the figures of all queues that the engine has forgotten.
    pub forgotten: QueueFigures,
    /// The number of queues that have appeared. No queue has a higher [`appeared`](crate::QueueCounts::appeared).
    pub queues_appeared: u64,
    /// Puts, patches and redrives that were taken, scheduled tasks that an owner made due at once, and live tasks that came from schedules
    /// and imports.
    pub scheduled_total: u64,
    /// Tasks added to queues.
    pub added_total: u64,
    /// Tasks that became ready because their due time came.
    pub fired_total: u64,
    /// Tasks cancelled or revoked.
    pub cancelled_total: u64,
    /// Leases granted.
    pub leased_total: u64,
    /// Leases that ended by ack.
    pub acked_total: u64,
    /// Leases that ended by nack, also because a worker went away or gave the task up.
    pub nacked_total: u64,
    /// Leases that ran out.
    pub expired_total: u64,
    /// Tasks that became dead.
    pub dead_total: u64,
    /// Schedules that are configured now.
    pub schedules: usize,
    /// Instants of schedules that became tasks.
    pub made_total: u64,
    /// Instants of schedules that were left out, for example because they were missed, or because another task with the name was live.
    pub skipped_total: u64,
    /// Instants of schedules that have come and wait until the live tasks with the name have ended.
    pub instants_waiting: usize,
    /// Lateness of the tasks that fired, from `due_at` or a later put to ready: the number of tasks in each bucket of
    /// [`LATENESS_BOUNDS_MS`], and in one bucket beyond the last bound.
    pub lateness: [u64; LATENESS_BOUNDS_MS.len() + 1],
    /// Sum of the lateness (ms).
    pub lateness_sum_ms: u64,
    /// The bytes by which tasks may still grow.
    pub room: u64,
    /// Lease calls of workers that wait for a ready task. Those of targets are left out.
    pub waiting: usize,
    /// Whether the store has failed, so that only reads are answered.
    pub read_only: bool,
    /// The size of the tasks in memory (bytes, about).
    pub near_bytes: u64,
    /// The memory budget for tasks (bytes), see [`EngineConfig::near_bytes_max`](crate::EngineConfig::near_bytes_max).
    pub near_bytes_max: u64,
    /// All task ids that were ever given out are below this number.
    pub ids_below: u64,
}

impl Stats {
    /// Adds the figures of another shard of the same data set. The page of queues stays as it is.
    pub fn add(&mut self, other: &Self) {
        let Self {
            page: _,
            gone,
            forgotten,
            queues_appeared,
            scheduled_total,
            added_total,
            fired_total,
            cancelled_total,
            leased_total,
            acked_total,
            nacked_total,
            expired_total,
            dead_total,
            schedules,
            made_total,
            skipped_total,
            instants_waiting,
            lateness,
            lateness_sum_ms,
            room,
            waiting,
            read_only,
            near_bytes,
            near_bytes_max,
            ids_below,
        } = other;
        for (namespace, totals) in gone {
            self.gone.entry(namespace.clone()).or_default().add(totals);
        }
        self.forgotten.add(forgotten);
        // Each shard numbers its queues by itself.
        self.queues_appeared = self.queues_appeared.max(*queues_appeared);
        for (sum, more) in [
            (&mut self.scheduled_total, scheduled_total),
            (&mut self.added_total, added_total),
            (&mut self.fired_total, fired_total),
            (&mut self.cancelled_total, cancelled_total),
            (&mut self.leased_total, leased_total),
            (&mut self.acked_total, acked_total),
            (&mut self.nacked_total, nacked_total),
            (&mut self.expired_total, expired_total),
            (&mut self.dead_total, dead_total),
            (&mut self.made_total, made_total),
            (&mut self.skipped_total, skipped_total),
            (&mut self.lateness_sum_ms, lateness_sum_ms),
            (&mut self.near_bytes, near_bytes),
            (&mut self.near_bytes_max, near_bytes_max),
        ]
        .into_iter()
        .chain(self.lateness.iter_mut().zip(lateness))
        {
            *sum = sum.saturating_add(*more);
        }
        for (sum, more) in [
            (&mut self.schedules, schedules),
            (&mut self.instants_waiting, instants_waiting),
            (&mut self.waiting, waiting),
        ] {
            *sum += more;
        }
        self.room = self.room.min(*room);
        self.read_only |= read_only;
        self.ids_below = self.ids_below.max(*ids_below);
    }

    /// Returns the counts of events alone. They only rise, unlike the figures of the present state, which are left out.
    #[must_use]
    pub fn totals(&self) -> Self {
        // A figure of the present state has to be set here: the others are taken as counts of events.
        Self {
            page: QueuePage::default(),
            gone: BTreeMap::new(),
            schedules: 0,
            instants_waiting: 0,
            room: u64::MAX,
            waiting: 0,
            read_only: false,
            near_bytes: 0,
            near_bytes_max: 0,
            ..*self
        }
    }

    /// Counts an event for the engine and for its queue. So the figures of all queues, with those of forgotten queues, add up to the
    /// figures of the engine. One figure is higher than the sum: [`scheduled_total`](Self::scheduled_total) also counts patches, redrives,
    /// and scheduled tasks that an owner made due at once, which no queue counts.
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
