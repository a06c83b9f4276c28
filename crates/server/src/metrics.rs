//! `/metrics`: the queue's figures in the text format that Prometheus reads.
//!
//! A scrape asks the queue and writes down what it says, so a program that embeds the queue can show the same figures. The tasks of
//! each queue are counted page by page, so those of one page belong to one moment. Only what the queue cannot see is counted by the
//! server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use tickwheel_api::Problem;
use tickwheel_queue::{
    COMMIT_BOUNDS_US, CommitSeconds, Health, LATENESS_BOUNDS_MS, ListQueues, QueueCounts, QueueName, Stats,
    Timestamp,
};

use crate::app::Shared;
use crate::aside::aside;
use crate::backups::BackupFigures;
use crate::beanstalk;
use crate::deliveries::DeliveryLateness;
use crate::pieces::Pieces;
use crate::problem::Refusal;
use crate::query::NoQuery;
use crate::queue_pages::QueuePages;
use crate::translate;

/// 1,000 queues have a label of their own, and the others share [`OTHER_QUEUES`]. More time series would make the scrape, and the
/// server that stores it, the largest user of the machine. Queues with tasks come first, in the order of their names, then empty ones:
/// up to 10,000 empty queues are listed, and they must not take the labels of those that have work.
const QUEUES_MAX: usize = 1_000;
/// No queue has this name: `{` is not in the alphabet of names.
const OTHER_QUEUES: &str = "{other}";
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET`: all figures.
pub(crate) async fn metrics(app: Shared, _: NoQuery) -> Result<Response, Refusal> {
    let mut pages = QueuePages::new(&app.queue, ListQueues::default());
    let (mut tasks, mut stats) = (TaskFigures::default(), Box::default());
    while let Some((page, figures)) =
        pages.next_with_stats().await.map_err(|error| translate::unavailable(&error))?
    {
        page.iter().for_each(|counts| tasks.add(counts));
        stats = figures;
    }
    let figures = Figures {
        tasks,
        now: app.queue.now(),
        stats,
        health: app.queue.health(),
        commits: app.queue.commit_seconds(),
        deliveries: app.deliveries.lateness(),
        refusals: app.refusals.counts(),
        beanstalk: Arc::clone(&app.beanstalk),
        backups: app.backups.figures(),
    };
    let mut registry = Registry::with_prefix("tickwheel");
    registry.register_collector(Box::new(figures));
    // Four figures of each of a thousand queues.
    let written = aside(move || {
        let mut body = Pieces::default();
        text::encode(&mut body, &registry).map(|()| body)
    });
    let body = written.await?.map_err(|_| Problem::internal("the metrics cannot be written"))?;
    let mut response = Response::new(body.into_body());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
    Ok(response)
}

/// What one scrape shows.
#[derive(Debug)]
struct Figures {
    tasks: TaskFigures,
    now: Timestamp,
    stats: Box<Stats>,
    health: Health,
    commits: CommitSeconds,
    deliveries: DeliveryLateness,
    refusals: Vec<(&'static str, u64)>,
    beanstalk: Arc<beanstalk::Counters>,
    backups: BackupFigures,
}

/// The tasks of all queues, summed up while the queues come page by page.
#[derive(Debug, Default)]
struct TaskFigures {
    /// By state, of queues that have tasks and a label of their own.
    named: Vec<(QueueName, [u64; 4])>,
    /// Queues without tasks, as many as there are labels.
    empty: Vec<QueueName>,
    /// Of all others, if there are any.
    others: Option<[u64; 4]>,
    /// When the oldest task that is first in its line was due.
    oldest_due: Option<Timestamp>,
}

impl TaskFigures {
    fn add(&mut self, counts: &QueueCounts) {
        self.oldest_due = self.oldest_due.into_iter().chain(counts.oldest_due).min();
        let by_state = [counts.scheduled, counts.ready, counts.leased, counts.dead];
        let is_empty = by_state == [0; 4];
        if is_empty && self.empty.len() < QUEUES_MAX {
            return self.empty.push(counts.queue.clone());
        }
        if !is_empty && self.named.len() < QUEUES_MAX {
            return self.named.push((counts.queue.clone(), by_state));
        }
        let others = self.others.get_or_insert_default();
        for (sum, count) in others.iter_mut().zip(by_state) {
            *sum += count;
        }
    }

    /// The labels and their figures: queues with tasks, then empty ones, then all others together.
    fn labelled(&self) -> impl Iterator<Item = (&str, [u64; 4])> {
        let named = self.named.iter().map(|(queue, by_state)| (queue.as_str(), *by_state));
        let left = QUEUES_MAX - self.named.len();
        let empty = self.empty.iter().take(left).map(|queue| (queue.as_str(), [0; 4]));
        let is_cut = self.empty.len() > left;
        let others = self.others.or(is_cut.then_some([0; 4]));
        named.chain(empty).chain(others.map(|by_state| (OTHER_QUEUES, by_state)))
    }
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let Stats { lateness, .. } = &*self.stats;
        page.tasks(&self.tasks)?;
        page.counter("scheduled", "Puts and patches taken", self.stats.scheduled_total)?;
        page.counter("fired", "Tasks that became ready because their instant came", self.stats.fired_total)?;
        page.counter("cancelled", "Tasks cancelled or revoked", self.stats.cancelled_total)?;
        page.counter("dead_lettered", "Tasks given up", self.stats.dead_total)?;
        page.counter("leased", "Leases granted", self.stats.leased_total)?;
        let ends = [
            ("acked", self.stats.acked_total),
            ("nacked", self.stats.nacked_total),
            ("expired", self.stats.expired_total),
        ];
        page.counters("delivered", "Leases that ended, by how", "result", &ends)?;
        page.gauge("schedules", "Schedules that are laid down", None, &saturated(self.stats.schedules))?;
        let occurrences = [("made", self.stats.made_total), ("skipped", self.stats.skipped_total)];
        let help = "Instants of schedules that came, by what became of them";
        page.counters("occurrences", help, "result", &occurrences)?;
        let help = "Instants of schedules that wait for the task before them to end";
        page.gauge("waiting_occurrences", help, None, &saturated(self.stats.instants_waiting))?;
        let bounds = LATENESS_BOUNDS_MS.map(|ms| Duration::from_millis(ms).as_secs_f64());
        let sum = Duration::from_millis(self.stats.lateness_sum_ms).as_secs_f64();
        page.histogram("fire_lateness", "From due_at to ready", &bounds, lateness, sum)?;
        let DeliveryLateness { counts, sum_ms } = self.deliveries;
        let help = "From due_at to the answer of a worker that was waiting";
        page.histogram(
            "delivery_lateness",
            help,
            &bounds,
            &counts,
            Duration::from_millis(sum_ms).as_secs_f64(),
        )?;
        let oldest_ms = self.tasks.oldest_due.map_or(0, |due_at| self.now.ms_since(due_at));
        let oldest = Duration::from_millis(oldest_ms).as_secs_f64();
        page.gauge(
            "oldest_due_age",
            "How long the oldest ready task has been due",
            Some(&Unit::Seconds),
            &oldest,
        )?;
        let bounds = COMMIT_BOUNDS_US.map(|us| Duration::from_micros(us).as_secs_f64());
        let sum = self.commits.sum.as_secs_f64();
        page.histogram(
            "commit",
            "From handing a commit to the store until it is durable",
            &bounds,
            &self.commits.buckets,
            sum,
        )?;
        page.gauge("store_room", "Growth that the store can take", Some(&Unit::Bytes), &self.stats.room)?;
        let help = "What tasks take in memory, about";
        page.gauge("near_memory", help, Some(&Unit::Bytes), &self.stats.near_bytes)?;
        let help = "What they may take: beyond it they are read from disk when they are due";
        page.gauge("near_memory_max", help, Some(&Unit::Bytes), &self.stats.near_bytes_max)?;
        page.gauge(
            "waiting_leases",
            "Lease calls that wait for a task",
            None,
            &saturated(self.stats.waiting),
        )?;
        let help = "What was refused, calls, lines of batches and connections, by the type of the problem";
        page.counters("refused", help, "problem", &self.refusals)?;
        let help = "Connections of clients of beanstalkd";
        page.gauge("beanstalk_connections", help, None, &self.beanstalk.connections())?;
        let verbs: Vec<_> = self.beanstalk.all_verbs().collect();
        page.counters("beanstalk_commands", "What clients of beanstalkd asked", "verb", &verbs)?;
        let refusals: Vec<_> = self.beanstalk.refusals().collect();
        let help = "What they were refused, by the answer; connections that were too many by `closed`";
        page.counters("beanstalk_refused", help, "answer", &refusals)?;
        page.backups(&self.backups)?;
        page.health(&self.health)
    }
}

fn saturated(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The page under way; one method for each form of metric.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn tasks(&mut self, tasks: &TaskFigures) -> fmt::Result {
        let mut metric = self.0.encode_descriptor("tasks", "Live tasks", None, MetricType::Gauge)?;
        for (queue, counts) in tasks.labelled() {
            for (state, count) in ["scheduled", "ready", "leased", "dead"].into_iter().zip(counts) {
                metric.encode_family(&[("queue", queue), ("state", state)])?.encode_gauge(&count)?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter(&value, NO_EXEMPLAR)
    }

    fn counters(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            metric.encode_family(&[(label, *of)])?.encode_counter(value, NO_EXEMPLAR)?;
        }
        Ok(())
    }

    fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: &V,
    ) -> fmt::Result {
        self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(value)
    }

    /// A histogram in seconds; `counts` has one more than `bounds_s`, for what is beyond the last.
    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        bounds_s: &[f64],
        counts: &[u64],
        sum_s: f64,
    ) -> fmt::Result {
        assert_eq!(counts.len(), bounds_s.len() + 1, "{} counts for {} bounds", counts.len(), bounds_s.len());
        let bounds = bounds_s.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
        let mut metric = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        metric.encode_histogram::<[(&str, &str); 0]>(sum_s, counts.iter().sum(), &buckets, None)
    }

    fn backups(&mut self, backups: &BackupFigures) -> fmt::Result {
        let help = "Backups that are over, by how, and those that were due while another was under way";
        self.counters("backups", help, "result", &backups.results())?;
        let seconds = |ms: f64| ms / 1_000.0;
        let help = "When the last whole backup was finished, by the clock of the system; 0 if there is none";
        let last = seconds(backups.last_success_ms as f64);
        self.gauge("backup_last_success_timestamp", help, Some(&Unit::Seconds), &last)?;
        let took = seconds(backups.duration_ms as f64);
        let help = "How long the last whole backup took";
        self.gauge("backup_last_success_duration", help, Some(&Unit::Seconds), &took)?;
        let help = "What the last whole backup has";
        self.gauge("backup_last_success", help, Some(&Unit::Bytes), &backups.bytes)
    }

    fn health(&mut self, health: &Health) -> fmt::Result {
        let offset_s = health.clock_offset_ms as f64 / 1_000.0;
        let help = "What the wall clock shows beyond the time that is believed";
        self.gauge("clock_offset", help, Some(&Unit::Seconds), &offset_s)?;
        self.counter("clock_steps", "Steps of the wall clock that were noticed", health.clock_steps)?;
        let read_only = i64::from(health.read_only.is_some());
        self.gauge("read_only", "1 if the store failed and nothing is changed any more", None, &read_only)?;
        let mode = [
            ("durability", translate::durability(health.durability)),
            ("clock", if health.virtual_clock { "virtual" } else { "real" }),
        ];
        let help = "What acknowledged calls survive, and which clock runs; always 1";
        let mut metric = self.0.encode_descriptor("mode", help, None, MetricType::Gauge)?;
        metric.encode_family(&mode)?.encode_gauge(&1i64)
    }
}

const NO_EXEMPLAR: Option<&Exemplar<[(&'static str, &'static str); 0], u64>> = None;

#[cfg(test)]
mod tests {
    use tickwheel_queue::QueueTotals;

    use super::*;

    fn counts_of(queue: &str, by_state: [u64; 4]) -> QueueCounts {
        let [scheduled, ready, leased, dead] = by_state;
        QueueCounts {
            queue: QueueName::new(queue).expect("a name"),
            scheduled,
            ready,
            leased,
            dead,
            urgent: 0,
            oldest_due: None,
            totals: QueueTotals::default(),
            paused: false,
            draining: false,
        }
    }

    fn page_of(queues: usize) -> String {
        page_with((0..queues).map(|number| counts_of(&format!("q{number:05}"), [1, 2, 3, 4])))
    }

    fn page_with(queues: impl Iterator<Item = QueueCounts>) -> String {
        let mut tasks = TaskFigures::default();
        queues.for_each(|counts| tasks.add(&counts));
        let mut body = String::new();
        #[derive(Debug)]
        struct Tasks(TaskFigures);
        impl Collector for Tasks {
            fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
                Page(encoder).tasks(&self.0)
            }
        }
        let mut registry = Registry::with_prefix("tickwheel");
        registry.register_collector(Box::new(Tasks(tasks)));
        text::encode(&mut body, &registry).expect("a string takes all");
        body
    }

    #[test]
    fn a_thousand_queues_have_labels_and_the_rest_shares_one() {
        let at_the_edge = page_of(QUEUES_MAX);
        assert!(!at_the_edge.contains(OTHER_QUEUES), "{at_the_edge}");
        assert!(
            at_the_edge.contains("tickwheel_tasks{queue=\"q00999\",state=\"dead\"} 4\n"),
            "{at_the_edge}"
        );
        let beyond = page_of(QUEUES_MAX + 3);
        assert_eq!(
            beyond.lines().filter(|line| line.starts_with("tickwheel_tasks{")).count(),
            4 * (QUEUES_MAX + 1)
        );
        assert!(beyond.contains("tickwheel_tasks{queue=\"{other}\",state=\"ready\"} 6\n"), "{beyond}");
    }

    /// The story: an application used each queue once. Its emptied queues stood before the others by name, took all labels for an hour, and
    /// the queues that had work were to be seen as `{other}` only.
    #[test]
    fn empty_queues_take_no_label_from_one_that_has_tasks() {
        let empty = (0..QUEUES_MAX + 5).map(|number| counts_of(&format!("a{number:05}"), [0; 4]));
        let busy = ["y", "z"].map(|queue| counts_of(queue, [1, 2, 3, 4]));
        let page = page_with(empty.chain(busy));
        for line in [
            "tickwheel_tasks{queue=\"y\",state=\"ready\"} 2",
            "tickwheel_tasks{queue=\"z\",state=\"dead\"} 4",
            "tickwheel_tasks{queue=\"a00997\",state=\"ready\"} 0",
            "tickwheel_tasks{queue=\"{other}\",state=\"ready\"} 0",
        ] {
            assert!(page.lines().any(|there| there == line), "no `{line}` in {page}");
        }
        let lines = page.lines().filter(|line| line.starts_with("tickwheel_tasks{")).count();
        assert_eq!(lines, 4 * (QUEUES_MAX + 1));
        let few = page_with([counts_of("a", [0; 4]), counts_of("b", [0, 1, 0, 0])].into_iter());
        assert!(few.contains("queue=\"a\"") && !few.contains(OTHER_QUEUES), "{few}");
    }
}
