//! `/metrics`: the metrics of the queue and the server, in the text formats of Prometheus.
//!
//! A scrape asks the queue and writes its answer, so a program that embeds the queue can show the same values. The
//! tasks of each queue are counted page by page; the counts of one page are from one moment. The server itself counts
//! only what the queue cannot see.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::response::Response;
use tickwheel_api::Problem;
use tickwheel_queue::{
    COMMIT_BOUNDS_US, CommitSeconds, Health, LATENESS_BOUNDS_MS, ListQueues, QUEUE_LATENESS_BOUNDS_MS,
    QueueFigures, Stats, Timestamp,
};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::base::pieces::Pieces;
use crate::base::queue_pages::QueuePages;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::app::App;
use crate::service::backups::BackupFigures;
use crate::service::supervisor::TaskFigures;
use crate::telemetry::deliveries::DeliveryLateness;
use crate::telemetry::metrics::Figures as DoorFigures;
use crate::telemetry::metrics::accept;
use crate::telemetry::metrics::page::{Histogram, Labels, Page, Unit};
use crate::telemetry::metrics::process::Process;
use crate::telemetry::metrics::queue_labels::{Labelled, Others};
use crate::telemetry::requests::{OfRoute, REQUEST_BOUNDS_US, Seen, WAIT_BOUNDS_US};
use crate::translate;
use crate::translate::twin::Twin;

handlers! {
    Metrics => metrics,
}

/// No queue can have this name, because names cannot contain `{`.
const OTHER_QUEUES: &str = "{other}";

/// `GET`: all metrics.
async fn metrics(call: Call) -> Result<Response, Refusal> {
    let (app, format) = (call.app(), accept::format(call.headers()));
    let (queues, stats) = look(app).await?;
    let figures = Figures {
        queues,
        now: app.queue.now(),
        stats,
        health: app.queue.health(),
        commits: app.queue.commit_seconds(),
        deliveries: app.deliveries.lateness(),
        refusals: app.refusals.counts(),
        doors: app.figures.clone(),
        background: app.supervisor.figures(),
        backups: app.backups.figures(),
        requests: app.requests.seen(),
        lease_waits: app.requests.waits(),
    };
    // The text has about twenty values for each of a thousand queues, and files of the system are read, so another
    // thread writes it.
    let written = aside(move || {
        let mut page = Page::new(Pieces::default(), format);
        figures.write(&mut page).and_then(|()| Process::read().write(&mut page)).and_then(|()| page.end())
    });
    let body = written.await?.map_err(|_| Problem::internal("the metrics cannot be written"))?;
    let mut response = Response::new(body.into_body());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// Reads the counts of all queues, page by page. Scrapes run one after the other, because each continues the labels
/// of the last one.
async fn look(app: &App) -> Result<(Queues, Box<Stats>), Refusal> {
    let mut labels = app.queue_labels.lock().await;
    let mut scrape = labels.scrape();
    let mut pages = QueuePages::new(&app.queue, ListQueues::default());
    // The counts of forgotten queues come from before the first page, so that a queue that is forgotten later is not
    // counted twice.
    let (mut forgotten, mut stats) = (None, Box::default());
    while let Some((page, figures)) =
        pages.next_with_stats().await.map_err(|error| translate::unavailable(&error))?
    {
        forgotten.get_or_insert(figures.forgotten);
        page.into_iter().for_each(|counts| scrape.add(counts));
        stats = figures;
    }
    let (labelled, others) = scrape.end(&forgotten.unwrap_or_default());
    Ok((Queues { labelled, others }, stats))
}

/// The values of one scrape.
struct Figures {
    queues: Queues,
    now: Timestamp,
    stats: Box<Stats>,
    health: Health,
    commits: CommitSeconds,
    deliveries: DeliveryLateness,
    refusals: Vec<(&'static str, u64)>,
    doors: Vec<Arc<dyn DoorFigures>>,
    background: Vec<TaskFigures>,
    /// `None`: there is no directory for backups. An alert for an old backup must not fire then.
    backups: Option<BackupFigures>,
    requests: Vec<OfRoute>,
    lease_waits: Seen<{ WAIT_BOUNDS_US.len() + 1 }>,
}

/// All queues: those with labels, and the sum of the others.
#[derive(Debug)]
struct Queues {
    labelled: Vec<Labelled>,
    others: Others,
}

impl Queues {
    /// The due time of the oldest ready task.
    fn oldest_due(&self) -> Option<Timestamp> {
        self.labelled.iter().map(|one| one.oldest_due).chain([self.others.oldest_due]).flatten().min()
    }

    fn figures(&self) -> impl Iterator<Item = (&str, &QueueFigures)> {
        let labelled = self.labelled.iter().map(|one| (one.queue.as_str(), &one.figures));
        labelled.chain([(OTHER_QUEUES, &self.others.figures)])
    }

    fn write(&self, page: &mut Page<Pieces>, now: Timestamp) -> fmt::Result {
        self.write_gauges(page, now)?;
        for (name, help, of) in COUNTERS {
            let labels: Vec<_> =
                self.figures().map(|(queue, figures)| ([("queue", queue)], of(figures))).collect();
            page.counters_of(name, help, None, labels.iter().map(|(labels, value)| (&labels[..], *value)))?;
        }
        let bounds_s = QUEUE_LATENESS_BOUNDS_MS.map(seconds_of_ms);
        let labels: Vec<_> = self.figures().map(|(queue, figures)| ([("queue", queue)], figures)).collect();
        let histograms = labels.iter().map(|(labels, figures)| {
            let sum_s = seconds_of_ms(figures.lateness_sum_ms);
            (&labels[..], Histogram { bounds_s: &bounds_s, counts: &figures.lateness, sum_s })
        });
        page.histograms_of("queue_fire_lateness", "From due_at to ready, by queue", histograms)
    }

    /// Writes the current state. If each queue has a label, `{other}` has no series.
    fn write_gauges(&self, page: &mut Page<Pieces>, now: Timestamp) -> fmt::Result {
        let labelled = self
            .labelled
            .iter()
            .map(|one| (one.queue.as_str(), one.tasks, one.oldest_due, u64::from(one.paused)));
        let others =
            self.others.tasks.map(|tasks| (OTHER_QUEUES, tasks, self.others.oldest_due, self.others.paused));
        let all: Vec<_> = labelled.chain(others).collect();
        let tasks: Vec<_> = all
            .iter()
            .flat_map(|(queue, tasks, ..)| {
                let states = ["scheduled", "ready", "leased", "dead"].into_iter().zip(tasks);
                states.map(|(state, count)| ([("queue", *queue), ("state", state)], *count))
            })
            .collect();
        let tasks = tasks.iter().map(|(labels, count)| (&labels[..], *count));
        page.gauges_of("tasks", "Live and dead tasks, by queue and state", None, tasks)?;
        let queues: Vec<_> = all.iter().map(|(queue, ..)| [("queue", *queue)]).collect();
        let paused = queues.iter().zip(&all).map(|(labels, (.., paused))| (&labels[..], *paused));
        let help = "1 if the queue is paused, otherwise 0; for queues without a label of their own, the number of paused ones";
        page.gauges_of("queue_paused", help, None, paused)?;
        let ages =
            queues.iter().zip(&all).map(|(labels, (_, _, due_at, _))| (&labels[..], age_s(*due_at, now)));
        let help = "Age of the due time of the oldest ready task of the queue; 0 if none is ready";
        page.gauges_of("queue_oldest_due_age", help, Some(Unit::Seconds), ages)
    }
}

/// The age of a due time in seconds; 0 if there is none.
fn age_s(due_at: Option<Timestamp>, now: Timestamp) -> f64 {
    seconds_of_ms(due_at.map_or(0, |due_at| now.ms_since(due_at)))
}

/// The counters of each queue: the name, the help text, and the value.
type OfQueue = (&'static str, &'static str, fn(&QueueFigures) -> u64);
const COUNTERS: [OfQueue; 7] = [
    ("queue_put", "Puts taken, including those of schedules, by queue", |figures| figures.put),
    ("queue_delivered", "Leases granted, by queue", |figures| figures.delivered),
    ("queue_acked", "Leases that ended by ack, by queue", |figures| figures.acked),
    ("queue_nacked", "Leases that ended by nack, by queue", |figures| figures.nacked),
    ("queue_expired", "Leases that ran out, by queue", |figures| figures.expired),
    ("queue_cancelled", "Tasks cancelled or revoked, by queue", |figures| figures.cancelled),
    ("queue_dead_lettered", "Tasks that became dead, by queue", |figures| figures.dead),
];

impl Figures {
    fn write(&self, page: &mut Page<Pieces>) -> fmt::Result {
        self.queues.write(page, self.now)?;
        self.write_tasks(page)?;
        self.write_lateness(page)?;
        self.write_store(page)?;
        let help = "Refused calls, lines of batches and connections, by the type of the problem";
        page.counters("refused", help, "problem", &self.refusals)?;
        self.doors.iter().try_for_each(|door| door.write(page))?;
        self.write_background(page)?;
        self.write_backups(page)?;
        self.write_health(page)?;
        self.write_requests(page)?;
        let build = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("os", std::env::consts::OS),
            ("arch", std::env::consts::ARCH),
            ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }),
        ];
        page.info("build", "The version of the program and its platform, as labels; always 1", &build)
    }

    /// Writes the counters of tasks and schedules.
    fn write_tasks(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let stats = &self.stats;
        page.counter("scheduled", "Puts and patches taken", stats.scheduled_total)?;
        page.counter("fired", "Tasks that became ready because their instant came", stats.fired_total)?;
        page.counter("cancelled", "Tasks cancelled or revoked", stats.cancelled_total)?;
        page.counter("dead_lettered", "Tasks that became dead", stats.dead_total)?;
        page.counter("leased", "Leases granted", stats.leased_total)?;
        let ends =
            [("acked", stats.acked_total), ("nacked", stats.nacked_total), ("expired", stats.expired_total)];
        page.counters("delivered", "Leases that ended, by result", "result", &ends)?;
        let help = "Lease calls that wait for a task";
        page.gauge("waiting_leases", help, None, saturated(stats.waiting))?;
        page.gauge("schedules", "Number of schedules", None, saturated(stats.schedules))?;
        let occurrences = [("made", stats.made_total), ("skipped", stats.skipped_total)];
        let help = "Instants of schedules that have passed, by result";
        page.counters("occurrences", help, "result", &occurrences)?;
        let help = "Instants of schedules that wait for the end of an earlier task";
        page.gauge("waiting_occurrences", help, None, saturated(stats.instants_waiting))
    }

    /// Writes the delays: how late tasks fire, how late they are delivered, and how long calls wait.
    fn write_lateness(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let bounds_s = LATENESS_BOUNDS_MS.map(seconds_of_ms);
        let Stats { lateness, lateness_sum_ms, .. } = &*self.stats;
        let help = "From due_at to ready";
        page.histogram("fire_lateness", help, &bounds_s, lateness, seconds_of_ms(*lateness_sum_ms))?;
        let DeliveryLateness { counts, sum_ms } = &self.deliveries;
        let help = "From due_at to the answer of a worker that was waiting";
        page.histogram("delivery_lateness", help, &bounds_s, counts, seconds_of_ms(*sum_ms))?;
        let oldest_s = age_s(self.queues.oldest_due(), self.now);
        let help = "Age of the due time of the oldest ready task, of any priority; 0 if none is ready";
        page.gauge("oldest_due_age", help, Some(Unit::Seconds), oldest_s)
    }

    fn write_store(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let CommitSeconds { buckets, sum, .. } = &self.commits;
        let help = "From handing a commit to the store until it is durable";
        page.histogram("commit", help, &COMMIT_BOUNDS_US.map(seconds_of_us), buckets, sum.as_secs_f64())?;
        page.gauge(
            "store_room",
            "Bytes by which the store can still grow",
            Some(Unit::Bytes),
            self.stats.room,
        )?;
        let help = "Approximate memory of the tasks in memory";
        page.gauge("near_memory", help, Some(Unit::Bytes), self.stats.near_bytes)?;
        let help = "Limit on the memory of the tasks; tasks beyond it are read from disk when they are due";
        page.gauge("near_memory_max", help, Some(Unit::Bytes), self.stats.near_bytes_max)
    }

    fn write_background(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let labels: Vec<_> = self.background.iter().map(|task| ([("task", task.name)], task)).collect();
        let up = labels.iter().map(|(labels, task)| (&labels[..], u64::from(task.is_up)));
        let help = "1 if the background task runs, otherwise 0";
        page.gauges_of("background_task_up", help, None, up)?;
        let failures = labels.iter().map(|(labels, task)| (&labels[..], task.failures));
        let help = "Number of times that the background task ended although the server did not stop";
        page.counters_of("background_task_failures", help, None, failures)
    }

    fn write_backups(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let results = self.backups.unwrap_or_default().results();
        let help =
            "Backups that ended, by result, and scheduled ones that were skipped because another was running";
        page.counters("backups", help, "result", &results)?;
        let Some(backups) = &self.backups else { return Ok(()) };
        let seconds = |ms: f64| ms / 1_000.0;
        let help = "When the last complete backup ended, by the system's clock; 0 if there is none";
        let last = seconds(backups.last_success_ms as f64);
        page.gauge("backup_last_success_timestamp", help, Some(Unit::Seconds), last)?;
        let took = seconds(backups.duration_ms as f64);
        let help = "Duration of the last complete backup";
        page.gauge("backup_last_success_duration", help, Some(Unit::Seconds), took)?;
        let help = "Size of the last complete backup";
        page.gauge("backup_last_success", help, Some(Unit::Bytes), backups.bytes)
    }

    fn write_health(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let health = &self.health;
        let offset_s = health.clock_offset_ms as f64 / 1_000.0;
        let help = "How far the wall clock is ahead of the time that the server believes";
        page.gauge("clock_offset", help, Some(Unit::Seconds), offset_s)?;
        page.counter(
            "clock_steps",
            "Number of steps of the wall clock that the server noticed",
            health.clock_steps,
        )?;
        let read_only = u64::from(health.read_only.is_some());
        page.gauge(
            "read_only",
            "1 if the store failed and the server is read-only, otherwise 0",
            None,
            read_only,
        )?;
        let mode: &Labels<'_> = &[
            ("durability", health.durability.twin().name()),
            ("clock", if health.virtual_clock { "virtual" } else { "real" }),
        ];
        let help = "The durability of acknowledged calls and the kind of clock, as labels; always 1";
        page.gauges_of("mode", help, None, [(mode, 1u64)])
    }

    fn write_requests(&self, page: &mut Page<Pieces>) -> fmt::Result {
        let bounds_s = REQUEST_BOUNDS_US.map(seconds_of_us);
        let labels: Vec<_> = self
            .requests
            .iter()
            .map(|seen| ([("route", seen.route), ("class", seen.class)], &seen.times))
            .collect();
        let histograms = labels.iter().map(|(labels, times)| {
            let sum_s = seconds_of_us(times.sum_us);
            (&labels[..], Histogram { bounds_s: &bounds_s, counts: &times.counts, sum_s })
        });
        let help = "From the head of a call to the head of its answer, without the wait of a lease";
        page.histograms_of("http_request", help, histograms)?;
        let Seen { counts, sum_us } = &self.lease_waits;
        let help = "How long HTTP lease calls with `wait` waited for a task";
        page.histogram("lease_wait", help, &WAIT_BOUNDS_US.map(seconds_of_us), counts, seconds_of_us(*sum_us))
    }
}

fn seconds_of_ms(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

fn seconds_of_us(us: u64) -> f64 {
    Duration::from_micros(us).as_secs_f64()
}

fn saturated(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
