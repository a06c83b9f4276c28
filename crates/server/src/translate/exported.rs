//! Translates lines of an export into commands of the queue, and the queue's data into lines.

use std::sync::Arc;

use tickwheel_api as api;
use tickwheel_api::{BadRequest, Problem, ProblemKind};
use tickwheel_queue as queue;
use tickwheel_queue::{Key, QueueName, ScheduleName, Timestamp};

use super::twin::Twin;
use super::{
    death, failure, group_text, moments_from, name_refused, retry, retry_body, tag_texts, timeline,
    unavailable,
};
use crate::translate::{schedule, settings};

/// The advice for a task, queue or schedule that exists already.
const EXISTING_HINT: &str =
    "import with existing=skip to leave it as it is, or with existing=replace to have what the file says";

pub(crate) fn task_line(task: &queue::TaskView) -> api::ExportTask {
    let is_leased = task.state == queue::State::Leased;
    api::ExportTask {
        queue: task.queue.as_str().to_owned(),
        key: task.key.as_str().to_owned(),
        id: task.id,
        due_at_ms: task.due_at.as_ms(),
        put_at_ms: task.put_at.as_ms(),
        state: task.extra.dead.is_none().then(|| task.state.twin()),
        payload: api::PayloadBody {
            bytes: task.body.payload.clone(),
            content_type: task.body.content_type.to_string(),
        },
        timeline: moments_from(&task.body, 0),
        step: task.extra.step,
        tags: tag_texts(&task.body),
        priority: task.priority,
        group: group_text(task.extra.group.as_ref()),
        // A running lease is not exported, and does not count as an ended attempt.
        attempt: task.attempt - u32::from(is_leased && task.attempt > 0),
        retry: task.extra.retry.map(retry_body),
        expire_at_ms: task.extra.expire_at.map(Timestamp::as_ms),
        failures: task.extra.failures.iter().map(failure).collect(),
        ttr_ms: task.extra.ttr_ms,
        origin: 0,
        tally: tally(task.extra.tally),
        trace: task.extra.trace.as_deref().and_then(api::TraceContext::read),
        death: task.extra.dead.map(|dead| api::ExportDeath { death: death(&dead), keyless: dead.keyless }),
    }
}

fn tally(tally: queue::Tally) -> api::TallyBody {
    let queue::Tally { leases, expiries, nacks, burials, redrives, delay_ms } = tally;
    api::TallyBody { leases, expiries, nacks, burials, redrives, delay_ms }
}

/// Translates a task of a file into a command.
///
/// # Errors
/// A name is not valid.
pub(crate) fn task(task: api::ExportTask) -> Result<queue::ImportTask, Box<Problem>> {
    let text = |error: &queue::NameError| name_refused(error);
    let tags: Result<Vec<_>, _> = task.tags.iter().map(|tag| queue::Tag::new(tag)).collect();
    let of_task = task.group.as_deref().map(queue::Group::new).transpose();
    let dead = task.death.map(|api::ExportDeath { death, keyless }| queue::Dead {
        at: at(death.at_ms),
        due_at: at(task.due_at_ms),
        why: death.reason.twin(),
        keyless,
    });
    let api::TallyBody { leases, expiries, nacks, burials, redrives, delay_ms } = task.tally;
    Ok(queue::ImportTask {
        id: task.id,
        queue: QueueName::new(&task.queue).map_err(|error| text(&error))?,
        key: Key::new(&task.key).map_err(|error| text(&error))?,
        due_at: at(task.due_at_ms),
        put_at: at(task.put_at_ms),
        priority: task.priority,
        attempts: task.attempt,
        body: Arc::new(queue::Body {
            payload: task.payload.bytes,
            content_type: task.payload.content_type.into(),
            tags: tags.map_err(|error| text(&error))?,
            timeline: timeline(task.timeline),
        }),
        extra: queue::Extra {
            group: of_task.map_err(|error| text(&error))?,
            ttr_ms: task.ttr_ms,
            origin: task.origin,
            expire_at: task.expire_at_ms.map(at),
            trace: task.trace.map(|trace| trace.to_text().into()),
            retry: task.retry.map(retry),
            failures: task.failures.into_iter().map(failed).collect(),
            dead,
            step: task.step,
            acked: None,
            tally: queue::Tally { leases, expiries, nacks, burials, redrives, delay_ms },
        },
    })
}

fn failed(failure: api::FailureBody) -> queue::Failure {
    queue::Failure {
        at: at(failure.at_ms),
        attempt: failure.attempt,
        how: failure.how.twin(),
        reason: failure.reason.map(Into::into),
    }
}

/// The settings of a queue as a line; `None`: its owner configured nothing.
pub(crate) fn queue_line(view: &queue::QueueView) -> Option<api::ExportQueue> {
    let queue::QueueCounts { queue, paused, draining, .. } = &view.counts;
    if !paused && !draining && view.settings == queue::QueueSettings::default() {
        return None;
    }
    let until = view.paused_until.filter(|until| *until < Timestamp::MAX);
    Some(api::ExportQueue {
        queue: queue.as_str().to_owned(),
        settings: settings::settings_body(&view.settings),
        paused: *paused,
        paused_until_ms: until.map(Timestamp::as_ms),
        draining: *draining,
    })
}

/// Translates a queue's line of a file.
///
/// # Errors
/// The name is not valid.
pub(crate) fn queue_record(line: api::ExportQueue) -> Result<(QueueName, queue::QueueRecord), Box<Problem>> {
    let name = QueueName::new(&line.queue).map_err(|error| name_refused(&error))?;
    let until = line.paused_until_ms.map_or(Timestamp::MAX, at);
    let record = queue::QueueRecord {
        settings: settings::settings(line.settings),
        paused_until: line.paused.then_some(until),
        draining: line.draining,
        // A line has no target, because a target has secrets. The import keeps the target that the queue has.
        target: None,
    };
    Ok((name, record))
}

/// A schedule as a line. `running` is the key of the task that must end first. Instants after `begun` are written as
/// not decided yet.
pub(crate) fn schedule_line(
    view: &queue::ScheduleView,
    running: Option<&Key>,
    begun: Timestamp,
) -> api::ExportSchedule {
    let record = &as_of(&view.record, begun);
    api::ExportSchedule {
        queue: view.queue.as_str().to_owned(),
        name: view.name.as_str().to_owned(),
        spec: schedule::spec(&record.schedule),
        anchor_ms: record.anchor.as_ms(),
        decided_ms: record.decided.as_ms(),
        next_at_ms: record.next.map(Timestamp::as_ms),
        last_at_ms: record.last.map(Timestamp::as_ms),
        made: record.made,
        skipped: record.skipped,
        running: running.filter(|_| !record.running.is_empty()).map(|key| key.as_str().to_owned()),
        waiting_ms: record.waiting.iter().map(|at| at.as_ms()).collect(),
    }
}

/// The schedule without the tasks that it made after `begun`. An export that began at that time may lack those
/// tasks. If their instants counted as decided, an importing server would not make them. So some tasks may be made
/// twice, but none is lost.
fn as_of(record: &queue::ScheduleRecord, begun: Timestamp) -> queue::ScheduleRecord {
    let mut record = record.clone();
    // The first instant is not before the put of the schedule.
    let before_first = Timestamp::from_ms(record.anchor.as_ms() - 1).unwrap_or_default();
    let decided = begun.max(before_first);
    let Some(last) = record.last.filter(|last| *last > decided) else { return record };
    let made_since = match record.schedule.cadence {
        queue::Cadence::Every { ms } => last.ms_since(decided).div_ceil(ms.max(1)),
        queue::Cadence::Cron { .. } | queue::Cadence::FixedDelay { .. } => 1,
    };
    if matches!(record.schedule.cadence, queue::Cadence::FixedDelay { .. }) {
        (record.next, record.running) = (Some(last), Vec::new());
    }
    record.made = record.made.saturating_sub(made_since);
    (record.decided, record.last) = (decided, None);
    record.waiting.retain(|at| *at <= decided);
    record
}

/// Translates a schedule's line of a file. A time zone that is used for the first time is read from its file.
///
/// # Errors
/// A name is not valid, or an expression or a time zone cannot be used.
pub(crate) fn schedule_of(
    line: api::ExportSchedule,
    existing: api::Existing,
) -> Result<queue::ImportSchedule, Box<Problem>> {
    let named = |error: queue::NameError| name_refused(&error);
    let schedule = schedule::schedule(line.spec).map_err(|refused| Problem::bad_request(&refused))?;
    Ok(queue::ImportSchedule {
        queue: QueueName::new(&line.queue).map_err(named)?,
        name: ScheduleName::new(&line.name).map_err(named)?,
        schedule: Arc::new(schedule),
        anchor: at(line.anchor_ms),
        decided: at(line.decided_ms),
        next: line.next_at_ms.map(at),
        last: line.last_at_ms.map(at),
        made: line.made,
        skipped: line.skipped,
        running: line.running.as_deref().map(Key::new).transpose().map_err(named)?,
        waiting: line.waiting_ms.into_iter().map(at).collect(),
        existing: existing.twin(),
        scope: None,
    })
}

pub(crate) fn import_refused(error: &queue::ImportError, queue: &QueueName, key: &Key) -> Problem {
    let (queue, key) = (queue.as_str(), key.as_str());
    match error {
        queue::ImportError::Live { version, .. } => {
            Problem::live(queue, key, version.0).with_hint(EXISTING_HINT)
        }
        queue::ImportError::Dead { .. } => Problem::dead(queue, key).with_hint(EXISTING_HINT),
        queue::ImportError::Leased => Problem::leased(queue, key),
        queue::ImportError::TooFar { limit_ms } => Problem::too_far(*limit_ms),
        queue::ImportError::NotRising { .. } | queue::ImportError::NoStep { .. } => {
            let hint = "leave the line as the export wrote it";
            Problem::bad_request(&BadRequest::member("timeline", error.to_string(), hint))
        }
        queue::ImportError::Draining => Problem::draining(queue),
        queue::ImportError::BacklogFull { limit } => Problem::backlog_full(queue, *limit),
        queue::ImportError::Unavailable(why) => unavailable(why),
    }
}

/// 409: the queue has settings, or the schedule exists, and they differ from the file.
pub(crate) fn exists(what: &str) -> Problem {
    Problem::new(ProblemKind::Exists, what).with_hint(EXISTING_HINT)
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms).expect("parsed instants are not before 1970")
}
