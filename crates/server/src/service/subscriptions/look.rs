//! One look at all queues of a scope and at the jobs.

use tickwheel_api::{EventCounters, HistogramBucket, JobBody, StateTotals, StatsEvent};
use tickwheel_queue::{
    COMMIT_BOUNDS_US, LATENESS_BOUNDS_MS, ListQueues, QUEUE_LATENESS_BOUNDS_MS, QueueCounts, QueueFigures,
    Stats, Timestamp, WhichQueues,
};

use crate::access::tokens::Grant;
use crate::service::app::App;
use crate::service::known_queues::KnownQueues;

/// A store with more room than this (bytes) has no limit: it is in memory.
const ROOM_MAX: u64 = 1 << 60;

/// The state of one scope.
pub(super) struct Look {
    pub(super) now: Timestamp,
    /// The queues of the scope.
    pub(super) queues: Vec<QueueCounts>,
    pub(super) stats: StatsEvent,
    /// The jobs on queues of the scope, the newest first.
    pub(super) jobs: Vec<JobBody>,
}

impl Look {
    /// Looks at the queues of the grant's scope, page by page.
    ///
    /// # Errors
    /// The reason why the queue or the jobs cannot be read, for the log.
    pub(super) async fn at(app: &App, grant: &Grant) -> Result<Self, String> {
        let mut queues = Vec::new();
        let mut figures = None;
        for prefix in grant.prefixes() {
            let list =
                ListQueues { which: WhichQueues::Listed, prefix: prefix.into(), ..ListQueues::default() };
            let mut pages = KnownQueues::new(&app.queue, grant, list);
            while let Some((page, stats)) = pages.next_with_stats().await.map_err(|why| why.to_string())? {
                queues.extend(page);
                figures = Some(stats);
            }
        }
        let jobs = app.background.jobs().kept().await.map_err(|problem| problem.detail)?;
        let jobs = jobs.into_iter().rev().filter(|job| grant.covers(&job.bulk.queue));
        let now = app.queue.now();
        let of_all = figures.as_deref().filter(|_| grant.is_unscoped());
        let stats = StatsEvent {
            now_ms: now.as_ms(),
            queues: queues.len() as u64,
            totals: totals(&queues),
            counters: of_all.map_or_else(|| counters(&figures_of(&queues)), counters_of_all),
            oldest_due_ms: queues.iter().filter_map(|counts| counts.oldest_due).min().map(Timestamp::as_ms),
            lateness: match of_all {
                Some(stats) => histogram(&LATENESS_BOUNDS_MS, 1_000, &stats.lateness),
                None => histogram(&QUEUE_LATENESS_BOUNDS_MS, 1_000, &figures_of(&queues).lateness),
            },
            commit: of_all.map(|_| histogram(&COMMIT_BOUNDS_US, 1, &app.queue.commit_seconds().buckets)),
            room_bytes: of_all.map(|stats| stats.room).filter(|room| *room < ROOM_MAX),
        };
        Ok(Self { now, queues, stats, jobs: jobs.map(|job| job.body).collect() })
    }
}

fn totals(queues: &[QueueCounts]) -> StateTotals {
    let mut totals = StateTotals::default();
    for counts in queues {
        totals.scheduled += counts.scheduled;
        totals.ready += counts.ready;
        totals.leased += counts.leased;
        totals.dead += counts.dead;
    }
    totals
}

fn figures_of(queues: &[QueueCounts]) -> QueueFigures {
    let mut sum = QueueFigures::default();
    queues.iter().for_each(|counts| sum.add(&counts.figures));
    sum
}

fn counters(figures: &QueueFigures) -> EventCounters {
    EventCounters {
        put: figures.put,
        fired: figures.lateness.iter().sum(),
        delivered: figures.delivered,
        acked: figures.acked,
        nacked: figures.nacked,
        expired: figures.expired,
        cancelled: figures.cancelled,
        dead: figures.dead,
    }
}

fn counters_of_all(stats: &Stats) -> EventCounters {
    EventCounters {
        put: stats.scheduled_total,
        fired: stats.fired_total,
        delivered: stats.leased_total,
        acked: stats.acked_total,
        nacked: stats.nacked_total,
        expired: stats.expired_total,
        cancelled: stats.cancelled_total,
        dead: stats.dead_total,
    }
}

/// The buckets with their own and all smaller observations. `unit_us`: the unit of the bounds (µs).
fn histogram(bounds: &[u64], unit_us: u64, counts: &[u64]) -> Vec<HistogramBucket> {
    let bounds = bounds.iter().map(|bound| Some(bound * unit_us)).chain([None]);
    let mut sum = 0;
    let bucket = |(le_us, count): (Option<u64>, &u64)| {
        sum += count;
        HistogramBucket { le_us, count: sum }
    };
    bounds.zip(counts).map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buckets_of_a_histogram_have_the_smaller_ones_in_them() {
        let buckets = histogram(&[1, 5], 1_000, &[2, 0, 3]);
        let pairs: Vec<_> = buckets.iter().map(|bucket| (bucket.le_us, bucket.count)).collect();
        assert_eq!(pairs, [(Some(1_000), 2), (Some(5_000), 2), (None, 5)]);
    }
}
