//! `/metrics`: the metrics of the queue and the server, in the text formats of Prometheus.
//!
//! A scrape asks the queue and writes its answer, so a program that embeds the queue can show the same values. The
//! tasks of each queue are counted page by page; the counts of one page are from one moment. The server itself counts
//! only what the queue cannot see.

use std::fmt;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::VARY;
use axum::response::Response;
use tickwheel_api::{ConnectionState, Problem};
use tickwheel_push::{Histogram, PUSH_BOUNDS_MS, TargetState};
use tickwheel_queue::{
    COMMIT_BOUNDS_US, CommitSeconds, Health, LATENESS_BOUNDS_MS, QUEUE_LATENESS_BOUNDS_MS, QueueFigures,
    Stats, Timestamp,
};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::aside::aside;
use crate::base::pieces::Pieces;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::events;
use crate::service::backups::BackupFigures;
use crate::service::caller::Caller;
use crate::targets::{TargetFigures, Targets};
use crate::telemetry::deliveries::DeliveryLateness;
use crate::telemetry::metrics::Scrapes;
use crate::telemetry::metrics::accept;
use crate::telemetry::metrics::page::{Page, Samples, metrics};
use crate::telemetry::metrics::process::Process;
use crate::telemetry::metrics::queue_labels::{Labelled, Others, QUEUES_MAX};
use crate::telemetry::requests::{OfRoute, REQUEST_BOUNDS_US, Seen, WAIT_BOUNDS_US};
use crate::translate::twin::Twin;

handlers! {
    Metrics => metrics,
}

/// No queue can have this name, because names cannot contain `{`.
const OTHER_QUEUES: &str = "{other}";

/// `GET`: all metrics.
async fn metrics(call: Call) -> Result<Response, Refusal> {
    let (caller, format) = (call.caller.clone(), accept::format(call.headers()));
    let (queues, stats, has_answer) = look(&caller).await?;
    let figures = Figures {
        queues,
        now: caller.now(),
        stats,
        has_answer,
        health: caller.health(),
        targets: caller.targets(Right::Read, None)?.clone(),
        caller,
    };
    // The text has about twenty values for each of a thousand queues, and files of the system are read, so another
    // thread writes it.
    let written = aside(move || {
        let mut page = Page::new(Pieces::default(), format);
        figures.write(&mut page).and_then(|()| Process::read().write(&mut page)).and_then(|()| page.end())
    });
    let body = written.await?.map_err(|_| Problem::internal("the metrics cannot be written"))?;
    let mut response = answer::of(body.into_body(), format.content_type());
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// Reads the counts of all queues, page by page. Scrapes run one after the other, because each continues the labels
/// of the last one. A shard that does not answer leaves the figures of the others as they are. Returns also whether any
/// shard has answered.
async fn look(caller: &Caller) -> Result<(Queues, Box<Stats>, bool), Refusal> {
    let mut scrapes = caller.app().observed.scrapes().lock().await;
    let Scrapes { labels, totals, without_label } = &mut *scrapes;
    let mut scrape = labels.scrape();
    let mut pages = caller.shard_pages(totals)?;
    // The counts of forgotten queues come from before the first page, so that a queue that is forgotten later is not
    // counted twice.
    let (mut forgotten, mut stats) = (None, Box::default());
    while let Some((page, figures)) = pages.next().await {
        forgotten.get_or_insert(figures.forgotten);
        page.into_iter().for_each(|counts| scrape.add(counts));
        stats = figures;
    }
    let (labelled, others) = scrape.end(&forgotten.unwrap_or_default(), |queue| pages.is_silent(queue));
    let is_short = others.queues > 0 && labelled.len() >= QUEUES_MAX;
    if is_short && !*without_label {
        let queues = others.queues;
        tracing::info!(
            event = events::QUEUES_WITHOUT_LABEL,
            queues,
            "some queues have no label in the metrics and share {{other}}"
        );
    }
    *without_label = is_short;
    Ok((Queues { labelled, others }, stats, pages.has_answer()))
}

/// The values of one scrape. Those of the service are read when they are written.
struct Figures {
    queues: Queues,
    now: Timestamp,
    stats: Box<Stats>,
    /// Whether `stats` has the present state of a shard.
    has_answer: bool,
    health: Health,
    targets: Targets,
    caller: Caller,
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

    /// Writes one counter of each queue.
    fn counts(&self, out: &mut Samples<'_>, of: fn(&QueueFigures) -> u64) -> fmt::Result {
        self.figures().try_for_each(|(queue, figures)| out.put(&[queue], of(figures)))
    }

    /// The present state of each queue: tasks by state, the oldest due time, and whether it is paused. If each queue has
    /// a label, `{other}` has no state.
    fn present(&self) -> impl Iterator<Item = (&str, [u64; 4], Option<Timestamp>, u64)> {
        let labelled = self.labelled.iter();
        let labelled =
            labelled.map(|one| (one.queue.as_str(), one.tasks, one.oldest_due, u64::from(one.paused)));
        let Others { tasks, oldest_due, paused, .. } = self.others;
        labelled.chain(tasks.map(|tasks| (OTHER_QUEUES, tasks, oldest_due, paused)))
    }
}

impl Figures {
    /// Writes a figure of the present state, unless no shard has told its state.
    fn present(&self, out: &mut Samples<'_>, of: impl FnOnce(&Stats) -> u64) -> fmt::Result {
        if self.has_answer { out.is(of(&self.stats)) } else { Ok(()) }
    }

    fn write(&self, page: &mut Page<Pieces>) -> fmt::Result {
        page.write(METRICS, self)?;
        page.write(TARGETS, &self.targets.figures())?;
        // Without a directory for backups, an alert for an old backup must not fire.
        self.caller
            .app()
            .background
            .backups()
            .figures()
            .iter()
            .try_for_each(|backups| page.write(BACKUPS, backups))?;
        self.caller.app().observed.figures().iter().try_for_each(|door| door.write(page))
    }
}

metrics! {
    const METRICS: Figures;

    /// Live and dead tasks, by queue and state
    ///
    /// Live tasks are `scheduled`, `ready` or `leased`. 1,000 queues have a series of their own, those with tasks
    /// first, and the others share `{other}`. A queue that was emptied keeps its series, at 0, for an hour while there
    /// is a place
    Gauge tickwheel_tasks {queue, state}:
        |figures, out| figures.queues.present().try_for_each(|(queue, tasks, ..)| {
            let mut states = ["scheduled", "ready", "leased", "dead"].into_iter().zip(tasks);
            states.try_for_each(|(state, count)| out.put(&[queue, state], count))
        });
    /// 1 if the queue is paused, otherwise 0; for `{other}`, the number of paused queues
    Gauge tickwheel_queue_paused {queue}:
        |figures, out| figures.queues.present().try_for_each(|(queue, .., paused)| out.put(&[queue], paused));
    /// Queues that share `{other}`
    ///
    /// 1,000 queues have a series of their own, and each scrape gives it to 50 new ones at most
    Gauge tickwheel_queues_without_label: |figures, out| out.is(figures.queues.others.queues);
    /// Age of the due time of the oldest ready task of the queue; 0 if none is ready
    ///
    /// Tasks of any priority count; of more than 1,000 priorities, those of the 1,000 most urgent
    Gauge tickwheel_queue_oldest_due_age in Seconds {queue}:
        |figures, out| figures.queues.present().try_for_each(|(queue, _, due_at, _)| out.put(&[queue], age_s(due_at, figures.now)));
    /// Puts taken, by queue: tasks added or replaced, including those of schedules and imports
    Counter tickwheel_queue_put {queue}: |figures, out| figures.queues.counts(out, |of| of.put);
    /// Leases granted, by queue
    Counter tickwheel_queue_delivered {queue}: |figures, out| figures.queues.counts(out, |of| of.delivered);
    /// Leases that ended by ack, by queue
    ///
    /// Each instant of a timeline has one
    Counter tickwheel_queue_acked {queue}: |figures, out| figures.queues.counts(out, |of| of.acked);
    /// Leases that ended by nack, by queue
    Counter tickwheel_queue_nacked {queue}: |figures, out| figures.queues.counts(out, |of| of.nacked);
    /// Leases that ran out, by queue
    Counter tickwheel_queue_expired {queue}: |figures, out| figures.queues.counts(out, |of| of.expired);
    /// Tasks cancelled or revoked, by queue
    Counter tickwheel_queue_cancelled {queue}: |figures, out| figures.queues.counts(out, |of| of.cancelled);
    /// Tasks that became dead, by queue
    Counter tickwheel_queue_dead_lettered {queue}: |figures, out| figures.queues.counts(out, |of| of.dead);
    /// From `due_at` to ready, by queue
    ///
    /// There are six buckets. The count says how many tasks became ready because their instant came, while the server
    /// ran or since it ended last. What was due before the last commit that the server wrote was ready then, and is not
    /// counted again after a restart
    Histogram tickwheel_queue_fire_lateness in Seconds {queue}:
        |figures, out| figures.queues.figures().try_for_each(|(queue, of)| {
            let bounds_s = QUEUE_LATENESS_BOUNDS_MS.map(seconds_of_ms);
            out.histogram(&[queue], &bounds_s, &of.lateness, seconds_of_ms(of.lateness_sum_ms))
        });
    /// Puts and patches taken, including tasks of schedules and imports
    Counter tickwheel_scheduled: |figures, out| out.is(figures.stats.scheduled_total);
    /// Tasks that became ready because their instant came
    Counter tickwheel_fired: |figures, out| out.is(figures.stats.fired_total);
    /// Tasks cancelled or revoked
    Counter tickwheel_cancelled: |figures, out| out.is(figures.stats.cancelled_total);
    /// Tasks that became dead
    Counter tickwheel_dead_lettered: |figures, out| out.is(figures.stats.dead_total);
    /// Leases granted
    Counter tickwheel_leased: |figures, out| out.is(figures.stats.leased_total);
    /// Leases that ended, by result
    ///
    /// The results are `acked`, `nacked` (also for a bury and for a connection that closed) and `expired`
    Counter tickwheel_delivered {result}: |Figures { stats, .. }, out| {
        out.each(&[("acked", stats.acked_total), ("nacked", stats.nacked_total), ("expired", stats.expired_total)])
    };
    /// Lease calls of workers that wait for a task. Those that the server makes for its targets are left out
    Gauge tickwheel_waiting_leases: |figures, out| figures.present(out, |stats| stats.waiting as u64);
    /// Number of schedules
    Gauge tickwheel_schedules: |figures, out| figures.present(out, |stats| stats.schedules as u64);
    /// Instants of schedules that have passed, by result
    ///
    /// The results are `made` and `skipped`
    Counter tickwheel_occurrences {result}:
        |Figures { stats, .. }, out| out.each(&[("made", stats.made_total), ("skipped", stats.skipped_total)]);
    /// Instants of schedules that wait for the end of live tasks
    Gauge tickwheel_waiting_occurrences:
        |figures, out| figures.present(out, |stats| stats.instants_waiting as u64);
    /// From `due_at` to ready
    Histogram tickwheel_fire_lateness in Seconds: |Figures { stats, .. }, out| {
        out.histogram(&[], &LATENESS_BOUNDS_MS.map(seconds_of_ms), &stats.lateness, seconds_of_ms(stats.lateness_sum_ms))
    };
    /// From `due_at` to the answer of a worker that was waiting
    Histogram tickwheel_delivery_lateness in Seconds: |figures, out| {
        let DeliveryLateness { counts, sum_ms } = figures.caller.app().observed.deliveries().lateness();
        out.histogram(&[], &LATENESS_BOUNDS_MS.map(seconds_of_ms), &counts, seconds_of_ms(sum_ms))
    };
    /// Age of the due time of the oldest ready task of all queues, of any priority; 0 if none is ready
    Gauge tickwheel_oldest_due_age in Seconds:
        |figures, out| if figures.has_answer { out.is(age_s(figures.queues.oldest_due(), figures.now)) } else { Ok(()) };
    /// From handing a commit to the store until it is durable
    Histogram tickwheel_commit in Seconds: |figures, out| {
        let CommitSeconds { buckets, sum, .. } = figures.caller.commit_seconds();
        out.histogram(&[], &COMMIT_BOUNDS_US.map(seconds_of_us), &buckets, sum.as_secs_f64())
    };
    /// Bytes by which the store can still grow
    Gauge tickwheel_store_room in Bytes: |figures, out| figures.present(out, |stats| stats.room);
    /// Approximate memory of the tasks in memory
    Gauge tickwheel_near_memory in Bytes: |figures, out| figures.present(out, |stats| stats.near_bytes);
    /// Limit on the memory of the tasks; tasks beyond it are read from disk when they are due
    Gauge tickwheel_near_memory_max in Bytes:
        |figures, out| figures.present(out, |stats| stats.near_bytes_max);
    /// Refused calls, lines of batches and connections, by the type of the problem
    ///
    /// Refused connections are those that never became a call. `docs/reference/http.md` explains each type
    Counter tickwheel_refused {problem}:
        |figures, out| out.each(&figures.caller.app().observed.refusals().counts());
    /// 1 if the background task runs, otherwise 0
    Gauge tickwheel_background_task_up {task}:
        |figures, out| figures.caller.app().background.supervisor().figures().iter().try_for_each(|task| out.put(&[task.name], u64::from(task.is_up)));
    /// Number of times that the background task ended although the server did not stop
    Counter tickwheel_background_task_failures {task}:
        |figures, out| figures.caller.app().background.supervisor().figures().iter().try_for_each(|task| out.put(&[task.name], task.failures));
    /// Backups that ended, by result, and scheduled ones that were skipped because another was running
    ///
    /// Backups of the running server count. The results are `done`, `failed`, `stopped`, and `left_out` for those that
    /// were skipped
    Counter tickwheel_backups {result}:
        |figures, out| out.each(&figures.caller.app().background.backups().figures().unwrap_or_default().results());
    /// How far the wall clock is ahead of the time by which tasks fall due
    ///
    /// The value is above 0 for the 60 seconds in which a step ahead is doubted, or a clock that was far ahead at a start;
    /// otherwise 0
    Gauge tickwheel_clock_offset in Seconds:
        |figures, out| out.is(figures.health.clock_offset_ms as f64 / 1_000.0);
    /// By how much the clock of the database may be ahead of the time that the server believes
    ///
    /// The value is the round trip of the quickest answers, and a task may be late by as much. With a directory, the value is 0
    Gauge tickwheel_clock_width in Seconds:
        |figures, out| out.is(figures.health.clock_width.as_secs_f64());
    /// Number of steps of the wall clock that the server noticed
    Counter tickwheel_clock_steps: |figures, out| out.is(figures.health.clock_steps);
    /// 1 if the store failed and the server is read-only, otherwise 0
    Gauge tickwheel_read_only:
        |figures, out| out.is(u64::from(figures.health.read_only.is_some()));
    /// Number of shards, by state
    ///
    /// The states are `ready`, `read_only` (its store failed) and `not_ready` (it answers no calls). `/readyz` names the
    /// shards that are not ready
    Gauge tickwheel_shards {state}: |figures, out| {
        let mut counts = [("ready", 0), ("read_only", 0), ("not_ready", 0)];
        for (_, health) in figures.caller.health_of_shards() {
            let state = if !health.ready { 2 } else { usize::from(health.read_only.is_some()) };
            counts[state].1 += 1;
        }
        out.each(&counts)
    };
    /// Rows of the inbox in PostgreSQL that could not become tasks, since the start of the server
    ///
    /// The table `tickwheel.inbox_refused` has them, each with its reason. A person has to decide about them
    Counter tickwheel_inbox_rows_refused: |figures, out| out.is(figures.health.rows_refused);
    /// The durability of acknowledged calls and the kind of clock, as labels; always 1
    Gauge tickwheel_mode {durability, clock}:
        |figures, out| {
            let health = &figures.health;
            let clock = if health.virtual_clock { "virtual" } else { "real" };
            out.put(&[health.durability.twin().name(), clock], 1u64)
        };
    /// From the head of a call to the head of its answer, without the wait of a lease
    Histogram tickwheel_http_request in Seconds {route, class}:
        |figures, out| figures.caller.app().observed.requests().seen().iter().try_for_each(|OfRoute { route, class, times }| {
            out.histogram(&[route, class], &REQUEST_BOUNDS_US.map(seconds_of_us), &times.counts, seconds_of_us(times.sum_us))
        });
    /// How long HTTP lease calls with `wait` waited for a task
    Histogram tickwheel_lease_wait in Seconds: |figures, out| {
        let Seen { counts, sum_us } = figures.caller.app().observed.requests().waits();
        out.histogram(&[], &WAIT_BOUNDS_US.map(seconds_of_us), &counts, seconds_of_us(sum_us))
    };
    /// The versions of the time zones of the machine, and of those in the program, as labels; always 1
    ///
    /// A zone that the machine lacks comes from the program. `none`: the machine has no time zones. `unknown`: no file names their version
    Info tickwheel_time_zones {machine, bundled}: |_, out| {
        let zones = tickwheel_queue::zone_versions();
        out.put(&[&zones.machine, zones.bundled], 1u64)
    };
    /// The version of the program and its platform, as labels; always 1
    Info tickwheel_build {version, os, arch, profile}: |_, out| {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        out.put(&[env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH, profile], 1u64)
    };
}

metrics! {
    const TARGETS: TargetFigures;

    /// Attempts to send a message to a target, by queue, kind and outcome
    ///
    /// The outcomes are `acked`; `failed`, where the attempt counted; `dead`, where the task died at once; `given_back`,
    /// where the target failed and no attempt counted; `blocked`, where the settings of the operator block the address and no attempt counted
    Counter tickwheel_push {queue, kind, outcome}:
        |figures, out| figures.targets.iter().try_for_each(|(queue, view)| {
            let mut outcomes = view.figures.outcomes();
            outcomes.try_for_each(|(outcome, count)| out.put(&[queue.as_str(), view.kind, outcome], count))
        });
    /// How long attempts to send a message took, by the kind of the target
    Histogram tickwheel_push in Seconds {kind}:
        |figures, out| figures.kinds.iter().try_for_each(|(kind, of)| pushed(out, kind, of.seconds()));
    /// From `due_at` to the confirmation of the other side, by the kind of the target
    Histogram tickwheel_push_lateness in Seconds {kind}:
        |figures, out| figures.kinds.iter().try_for_each(|(kind, of)| pushed(out, kind, of.lateness()));
    /// Messages that are being sent to the target of the queue
    Gauge tickwheel_push_in_flight {queue}:
        |figures, out| figures.targets.iter().try_for_each(|(queue, view)| out.put(&[queue.as_str()], view.in_flight as u64));
    /// 1 for the state that the target of the queue is in, 0 for the others
    ///
    /// The states are `closed` (messages are sent), `open` (nothing is sent for a while, because the target fails),
    /// `half_open` (it is tried again), `disabled` and `paused`
    Gauge tickwheel_target_state {queue, state}:
        |figures, out| figures.targets.iter().try_for_each(|(queue, view)| {
            let mut states = TargetState::ALL.into_iter();
            states.try_for_each(|state| out.put(&[queue.as_str(), state.name()], u64::from(state == view.state)))
        });
    /// 1 if the connection to the broker is open, otherwise 0
    ///
    /// A connection that no message needs is left out
    Gauge tickwheel_push_connection_up {connection}:
        |figures, out| figures.connections.iter().filter(|row| row.state != ConnectionState::Unused).try_for_each(|row| {
            out.put(&[&row.name], u64::from(row.state == ConnectionState::Up))
        });
}

/// Writes a histogram of a kind of target.
fn pushed(out: &mut Samples<'_>, kind: &str, of: &Histogram) -> fmt::Result {
    out.histogram(&[kind], &PUSH_BOUNDS_MS.map(seconds_of_ms), &of.buckets(), seconds_of_us(of.sum_us()))
}

metrics! {
    const BACKUPS: BackupFigures;

    /// When the last complete backup ended, by the system's clock; 0 if there is none
    ///
    /// Backups of this data directory in the directory of backups count. This figure and the next two are absent
    /// without `--backup-dir`
    Gauge tickwheel_backup_last_success_timestamp in Seconds:
        |backups, out| out.is(backups.last_success_ms as f64 / 1_000.0);
    /// Duration of the last complete backup
    Gauge tickwheel_backup_last_success_duration in Seconds:
        |backups, out| out.is(backups.duration_ms as f64 / 1_000.0);
    /// Size of the last complete backup
    Gauge tickwheel_backup_last_success in Bytes: |backups, out| out.is(backups.bytes);
}

/// The age of a due time in seconds; 0 if there is none.
fn age_s(due_at: Option<Timestamp>, now: Timestamp) -> f64 {
    seconds_of_ms(due_at.map_or(0, |due_at| now.ms_since(due_at)))
}

fn seconds_of_ms(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

fn seconds_of_us(us: u64) -> f64 {
    Duration::from_micros(us).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use axum::body::Body;
    use axum::http::Request;

    use super::*;
    use crate::access::tokens::Grant;
    use crate::config::{Config, Store};
    use crate::doors::http::body::next_piece;
    use crate::doors::http::call::tests::answered;
    use crate::doors::plans::plans;
    use crate::service::app::App;
    use crate::telemetry::metrics::page::{Format, Metric};
    use crate::telemetry::metrics::process;

    fn rows<S>(table: &[Metric<S>]) -> String {
        table.iter().map(Metric::row).collect()
    }

    fn page() -> (PathBuf, String) {
        let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md"));
        let text = std::fs::read_to_string(&path).expect("the page");
        (path, text)
    }

    /// `docs/reference/metrics.md` with the table of all metrics as it should be.
    fn described() -> String {
        let (_, text) = page();
        let (before, _) = text.split_once("|---|---|---|\n| `tickwheel_tasks").expect("a table");
        let process =
            rows(process::STAT) + &rows(process::STARTED) + &rows(process::OPEN) + &rows(process::LIMIT);
        let mut doors = Page::new(Pieces::default(), Format::Text);
        let mut figures = plans(&Config::new(Store::Memory)).into_iter().filter_map(|plan| plan.figures());
        figures.try_for_each(|figures| figures.write(&mut doors)).expect("memory takes all");
        let all = rows(METRICS) + &rows(TARGETS) + &rows(BACKUPS) + &doors.rows + &process;
        format!("{before}|---|---|---|\n{all}")
    }

    /// A person on call needs the page most when the queue does not answer.
    #[tokio::test]
    async fn a_queue_that_does_not_answer_leaves_out_its_own_figures_only() {
        let app = Arc::new(App::in_memory());
        app.close();
        let request = Request::get("/metrics").body(Body::empty()).expect("a request");
        let answer = answered(&app, Grant::everything(), request).await;
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        let mut text = String::new();
        while let Some(piece) = next_piece(&mut body).await.expect("whole") {
            text.push_str(std::str::from_utf8(&piece).expect("a text"));
        }
        assert!(text.contains("tickwheel_shards{state=\"not_ready\"} 1\n"), "{text}");
        assert!(text.contains("tickwheel_scheduled_total 0\n"), "{text}");
        for unknown in
            ["\ntickwheel_store_room_bytes ", "\ntickwheel_oldest_due_age_seconds ", "\ntickwheel_schedules "]
        {
            assert!(!text.contains(unknown), "{unknown} is not known: {text}");
        }
    }

    /// If this fails: `cargo test -p tickwheel-server --lib write_the_metrics -- --ignored`.
    #[test]
    fn each_metric_is_described_by_its_entry() {
        assert_eq!(page().1, described());
    }

    #[test]
    #[ignore = "it writes docs/reference/metrics.md"]
    fn write_the_metrics() {
        std::fs::write(page().0, described()).expect("written");
    }
}
