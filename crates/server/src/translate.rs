//! The translation between the API and the queue, together with the modules below. Requests become commands, and
//! answers become bodies and problems. It decides nothing.

pub(crate) mod backup;
pub(crate) mod cursor;
pub(crate) mod exported;
pub(crate) mod leases;
mod refused;
pub(crate) mod schedule;
pub(crate) mod settings;
pub(crate) mod story;
pub(crate) mod twin;

use std::time::Duration;

use tickwheel_api as api;
use tickwheel_api::{BadRequest, CancelOutcome, Readiness};
use tickwheel_queue as queue;
use tickwheel_queue::{Key, QueueName, Seq, Timestamp, Token};

use crate::access::refusal::Refusal;

use refused::cancel_refusal;
pub(crate) use refused::{
    advance_refused, by_key_refused, cancel_refused, get_refused, nack_refused, name_refused, patch_refused,
    put_refused, redrive_refused, unavailable, unknown,
};
use twin::Twin;

// Requests.

/// A put of `key`, or of a key that the server makes.
pub(crate) fn put(
    queue: &QueueName,
    key: Option<Key>,
    body: api::PutBody,
    query: api::PutQuery,
    if_version: Option<Seq>,
    levels: &api::Levels,
) -> Result<queue::Put, BadRequest> {
    body.check(query.mode)?;
    Ok(queue::Put {
        queue: queue.clone(),
        key,
        due: due(body.due, levels)?,
        body: queue::Body {
            payload: body.payload.bytes,
            content_type: body.payload.content_type.into(),
            tags: tags(&body.terms.tags),
            timeline: timeline(body.timeline),
        },
        terms: terms(&body.terms),
        ttr_ms: None,
        trace: None,
        mode: match query.mode {
            api::PutMode::Upsert => queue::PutMode::Upsert,
            api::PutMode::Create => queue::PutMode::Create,
            api::PutMode::Replace => queue::PutMode::Replace,
            api::PutMode::Debounce => queue::PutMode::Debounce { max_wait_ms: body.max_wait_ms },
        },
        if_version,
        on_lease: on_lease(query.revoke),
        may_add: true,
        asked_at: None,
    })
}

pub(crate) fn get(queue: &QueueName, key: &Key) -> queue::Get {
    queue::Get { queue: queue.clone(), key: key.clone() }
}

pub(crate) fn patch(
    queue: &QueueName,
    key: &Key,
    body: api::PatchBody,
    revoke: bool,
    if_version: Option<Seq>,
    levels: &api::Levels,
) -> Result<queue::Patch, BadRequest> {
    Ok(queue::Patch {
        queue: queue.clone(),
        key: key.clone(),
        due: body.due.map(|at| due(at, levels)).transpose()?,
        payload: body.payload.map(|payload| queue::Payload {
            bytes: payload.bytes,
            content_type: payload.content_type.into(),
        }),
        timeline: body.timeline.map(timeline),
        tags: body.terms.tags.as_deref().map(tags),
        priority: body.terms.priority,
        group: body.terms.group.map(|to| to.as_deref().map(group)),
        retry: body.terms.retry.map(|to| to.map(retry)),
        expire_after_ms: body.terms.expire_after_ms,
        if_version,
        on_lease: on_lease(revoke),
    })
}

pub(crate) fn cancel(queue: &QueueName, key: &Key, revoke: bool, if_version: Option<Seq>) -> queue::Cancel {
    queue::Cancel { queue: queue.clone(), key: key.clone(), if_version, on_lease: on_lease(revoke) }
}

pub(crate) fn by_key(
    queue: &QueueName,
    key: &Key,
    act: queue::KeyAct,
    if_version: Option<Seq>,
) -> queue::ByKey {
    queue::ByKey { queue: queue.clone(), key: key.clone(), act, if_version }
}

pub(crate) fn lease(queue: &QueueName, body: &api::LeaseBody, wait: Duration) -> queue::Lease {
    let api::LeaseBody { max, lease_ms, wait_ms: _, worker } = body;
    let worker = worker.as_deref().map(Into::into);
    queue::Lease { max: *max, lease_ms: *lease_ms, wait: !wait.is_zero(), worker, ..queue::Lease::new(queue) }
}

pub(crate) fn list(
    queue: &QueueName,
    filter: &api::TaskFilter,
    max: usize,
    after: Option<queue::TaskCursor>,
) -> queue::List {
    queue::List { queue: queue.clone(), filter: task_filter(filter), max, after }
}

/// The members of a filter that the queue knows. The service looks a key up, and searches for the texts.
pub(crate) fn task_filter(filter: &api::TaskFilter) -> queue::TaskFilter {
    let api::TaskFilter { state, due_from_ms, due_to_ms, tag, group: in_group, reason, .. } = filter;
    let instant = |ms: i64| Timestamp::from_ms(ms).expect("parsed instants are not before 1970");
    queue::TaskFilter {
        state: state.map(Twin::twin),
        due_from: due_from_ms.map(instant),
        due_to: due_to_ms.map(instant),
        tag: tag.as_deref().map(|tag| queue::Tag::new(tag).expect("parsed tags are tags")),
        group: in_group.as_deref().map(group),
        why: reason.map(Twin::twin),
        ..queue::TaskFilter::default()
    }
}

pub(crate) fn redrive(queue: &QueueName, id: u64) -> queue::Redrive {
    queue::Redrive { queue: queue.clone(), id }
}

pub(crate) fn retry(retry: api::RetryBody) -> queue::Retry {
    let api::RetryBody { max_attempts, exponential, base_ms, max_ms, jitter_percent } = retry;
    let backoff = queue::Backoff { doubles: exponential, base_ms, max_ms, jitter_percent };
    queue::Retry { max_attempts, backoff: Some(backoff) }
}

pub(crate) fn retry_body(retry: queue::Retry) -> api::RetryBody {
    let queue::Retry { max_attempts, backoff } = retry;
    match backoff {
        Some(queue::Backoff { doubles: exponential, base_ms, max_ms, jitter_percent }) => {
            api::RetryBody { max_attempts, exponential, base_ms, max_ms, jitter_percent }
        }
        // A program that embeds the queue may leave the delays out; over the wire they are 0.
        None => api::RetryBody { max_attempts, exponential: false, base_ms: 0, max_ms: 0, jitter_percent: 0 },
    }
}

fn failure(failure: &queue::Failure) -> api::FailureBody {
    api::FailureBody {
        at_ms: failure.at.as_ms(),
        attempt: failure.attempt,
        how: failure.how.twin(),
        reason: failure.reason.as_deref().map(str::to_owned),
    }
}

fn death(dead: &queue::Dead) -> api::DeathBody {
    api::DeathBody { at_ms: dead.at.as_ms(), reason: dead.why.twin() }
}

/// The outcome for one of several tasks; an error if it is not definite.
pub(crate) fn redrive_outcome(
    redriven: Result<(), queue::RedriveError>,
) -> Result<api::RedriveOutcome, Refusal> {
    match redriven {
        Ok(()) => Ok(api::RedriveOutcome::Redriven),
        Err(queue::RedriveError::NotFound) => Ok(api::RedriveOutcome::NotFound),
        Err(queue::RedriveError::Live { .. }) => Ok(api::RedriveOutcome::Live),
        Err(queue::RedriveError::Draining) => Ok(api::RedriveOutcome::Draining),
        Err(queue::RedriveError::BacklogFull { .. }) => Ok(api::RedriveOutcome::BacklogFull),
        Err(queue::RedriveError::Unavailable(why)) => Err(unavailable(&why).into()),
    }
}

/// The version of an `If-Match`.
pub(crate) fn version(number: u64) -> Seq {
    Seq(number)
}

fn due(due: api::Due, levels: &api::Levels) -> Result<queue::Due, BadRequest> {
    Ok(match due {
        api::Due::Now => queue::Due::Now,
        api::Due::After(ms) => queue::Due::After { ms },
        api::Due::At(ms) => {
            queue::Due::At(Timestamp::from_ms(ms).expect("parsed instants are not before 1970"))
        }
        api::Due::Level(level) => queue::Due::After { ms: levels.delay_ms(level)? },
    })
}

fn timeline(moments: Vec<api::MomentBody>) -> Vec<queue::Moment> {
    let moment = |api::MomentBody { at_ms, payload }| queue::Moment {
        at: Timestamp::from_ms(at_ms).expect("parsed instants are not before 1970"),
        payload: payload.bytes,
        content_type: payload.content_type.into(),
    };
    moments.into_iter().map(moment).collect()
}

/// The moments of the timeline from this step on.
fn moments_from(body: &queue::Body, step: usize) -> Vec<api::MomentBody> {
    let moment = |(step, moment): (usize, &queue::Moment)| api::MomentBody {
        at_ms: moment.at.as_ms(),
        payload: payload_body(body, step),
    };
    body.timeline.iter().enumerate().skip(step).map(moment).collect()
}

pub(crate) fn terms(terms: &api::Terms) -> queue::Terms {
    let api::Terms { tags: _, priority, group: to, retry: policy, expire_after_ms } = terms;
    queue::Terms {
        priority: *priority,
        group: to.as_deref().map(group),
        retry: policy.map(retry),
        expire_after_ms: *expire_after_ms,
    }
}

pub(crate) fn terms_body(body: &queue::Body, terms: &queue::Terms) -> api::Terms {
    let queue::Terms { priority, group, retry, expire_after_ms } = terms;
    api::Terms {
        tags: tag_texts(body),
        priority: *priority,
        group: group_text(group.as_ref()),
        retry: retry.map(retry_body),
        expire_after_ms: *expire_after_ms,
    }
}

pub(crate) fn tags(tags: &[String]) -> Vec<queue::Tag> {
    tags.iter().map(|tag| queue::Tag::new(tag).expect("parsed tags are tags")).collect()
}

fn group(group: &str) -> queue::Group {
    queue::Group::new(group).expect("parsed groups are groups")
}

pub(crate) fn on_lease(revoke: bool) -> queue::OnLease {
    if revoke { queue::OnLease::Revoke } else { queue::OnLease::Refuse }
}

/// The lease tokens of one call.
pub(crate) struct Tokens(Vec<Token>);

impl Tokens {
    pub(crate) fn read(texts: &[String]) -> Self {
        Self(texts.iter().map(|text| Token::parse(text).expect("parsed tokens are tokens")).collect())
    }

    pub(crate) fn ack(self, queue: &QueueName) -> queue::Ack {
        queue::Ack { queue: queue.clone(), tokens: self.0 }
    }

    pub(crate) fn nack(
        self,
        queue: &QueueName,
        delay_ms: Option<u64>,
        reason: Option<String>,
    ) -> queue::Nack {
        let reason = reason.map(Into::into);
        queue::Nack { delay_ms, reason, ..queue::Nack::new(queue, self.0) }
    }

    pub(crate) fn extend(self, queue: &QueueName, lease_ms: Option<u64>) -> queue::Extend {
        queue::Extend { queue: queue.clone(), tokens: self.0, lease_ms }
    }
}

/// The results for the tokens of one call, in their order.
pub(crate) fn token_results(answers: &[queue::TokenAnswer]) -> api::TokenResults {
    api::TokenResults { results: answers.iter().copied().map(Twin::twin).collect() }
}

// Answers.

pub(crate) fn put_answer(task: &queue::TaskView) -> api::PutAnswer {
    api::PutAnswer {
        queue: task.queue.as_str().to_owned(),
        key: task.key.as_str().to_owned(),
        id: task.id,
        version: task.version.0,
        state: task.state.twin(),
        due_at_ms: task.due_at.as_ms(),
        tags: tag_texts(&task.body),
        priority: task.priority,
        group: group_text(task.extra.group.as_ref()),
        attempt: task.attempt,
    }
}

pub(crate) fn task_body(task: &queue::TaskView) -> api::TaskBody {
    api::TaskBody {
        payload: Some(payload_body(&task.body, task.step())),
        timeline: moments_from(&task.body, task.step() + 1),
        ..task_head(task)
    }
}

/// The task without its payload and its timeline.
pub(crate) fn task_head(task: &queue::TaskView) -> api::TaskBody {
    api::TaskBody {
        queue: task.queue.as_str().to_owned(),
        key: task.key.as_str().to_owned(),
        id: task.id,
        version: task.version.0,
        state: task.state.twin(),
        due_at_ms: task.due_at.as_ms(),
        payload: None,
        tags: tag_texts(&task.body),
        priority: task.priority,
        group: group_text(task.extra.group.as_ref()),
        attempt: task.attempt,
        lease_until_ms: task.leased_until.map(Timestamp::as_ms),
        retry: task.extra.retry.map(retry_body),
        expire_at_ms: task.extra.expire_at.map(Timestamp::as_ms),
        failures: task.extra.failures.iter().map(failure).collect(),
        dead: task.extra.dead.as_ref().map(death),
        timeline: Vec::new(),
        trace: task.extra.trace.as_deref().and_then(api::TraceContext::read),
    }
}

pub(crate) fn leased_task(leased: &queue::Leased) -> api::LeasedTask {
    api::LeasedTask {
        key: leased.key.as_str().to_owned(),
        id: leased.id,
        payload: payload_body(&leased.body, leased.step),
        tags: tag_texts(&leased.body),
        priority: leased.priority,
        group: group_text(leased.group.as_ref()),
        due_at_ms: leased.due_at.as_ms(),
        attempt: leased.attempt,
        token: leased.token.to_string(),
        lease_until_ms: leased.lease_until.as_ms(),
        trace: leased.trace.as_deref().and_then(api::TraceContext::read),
    }
}

pub(crate) fn cancel_outcome(ended: queue::Cancelled) -> CancelOutcome {
    match ended {
        queue::Cancelled::Cancelled => CancelOutcome::Cancelled,
        queue::Cancelled::Revoked => CancelOutcome::Revoked,
    }
}

pub(crate) fn queue_counts(counts: &queue::QueueCounts) -> api::QueueCounts {
    api::QueueCounts {
        queue: counts.queue.as_str().to_owned(),
        scheduled: counts.scheduled,
        ready: counts.ready,
        leased: counts.leased,
        dead: counts.dead,
        paused: counts.paused,
        draining: counts.draining,
    }
}

pub(crate) fn now(now: Timestamp) -> api::NowBody {
    api::NowBody { now_ms: now.as_ms() }
}

/// The body of `/readyz`; `trouble` is a reason of the server itself why it is not ready.
pub(crate) fn ready(
    health: queue::Health,
    draining: bool,
    trouble: Option<String>,
    down: Vec<String>,
) -> api::ReadyBody {
    let read_only = health.read_only.map(|why| why.to_string());
    let closed = (!health.ready).then(|| "the queue is not open".to_owned());
    let full = health.short_of_room.map(|bytes| match health.lacks_descriptor {
        true => "the store gets no file descriptor for its next file: puts are refused (503); acks, cancels and leases go on".to_owned(),
        false => format!("there is little space for new tasks: puts that need more than {bytes} bytes are refused (507); acks, cancels and leases go on"),
    });
    let doubted = (health.clock_offset_ms != 0).then(|| {
        let ms = health.clock_offset_ms;
        format!("the wall clock is {ms} ms ahead of the time by which tasks fall due: it is believed once it has stood for 60 s")
    });
    let status = match (&trouble, &read_only, &closed) {
        (Some(_), None, _) | (None, None, Some(_)) => Readiness::NotReady,
        (_, Some(_), _) => Readiness::ReadOnly,
        (None, None, None) if full.is_some() || doubted.is_some() || !down.is_empty() => Readiness::Degraded,
        (None, None, None) if draining => Readiness::Draining,
        (None, None, None) => Readiness::Ok,
    };
    let ready = matches!(status, Readiness::Ok | Readiness::Draining | Readiness::Degraded);
    let mut reasons: Vec<String> =
        [trouble, read_only.clone(), closed, full, doubted].into_iter().flatten().chain(down).collect();
    reasons.dedup();
    let why =
        if ready { (!reasons.is_empty()).then(|| reasons.join("; ")) } else { reasons.first().cloned() };
    api::ReadyBody {
        ready,
        status,
        why,
        reasons,
        draining,
        durability: health.durability.twin(),
        virtual_clock: health.virtual_clock,
        read_only,
        clock: api::ClockReport { steps: health.clock_steps, offset_ms: health.clock_offset_ms },
        recovery: health.recovery.map(|report| report.to_string()),
    }
}

pub(crate) fn payload_body(body: &queue::Body, step: usize) -> api::PayloadBody {
    let (bytes, content_type) = body.payload_at(step);
    api::PayloadBody { bytes: bytes.to_vec(), content_type: content_type.to_string() }
}

fn tag_texts(body: &queue::Body) -> Vec<String> {
    body.tags.iter().map(|tag| tag.as_str().to_owned()).collect()
}

fn group_text(group: Option<&queue::Group>) -> Option<String> {
    group.map(|group| group.as_str().to_owned())
}

// Lines of a batch.

pub(crate) fn put_line(key: &Key, stored: &queue::Stored) -> api::BatchResult {
    let status = if stored.created { 201 } else { 200 };
    api::BatchResult::stored(key.as_str(), status, stored.task.version.0, stored.task.due_at.as_ms())
}

pub(crate) fn patch_line(key: &Key, task: &queue::TaskView) -> api::BatchResult {
    api::BatchResult::stored(key.as_str(), 200, task.version.0, task.due_at.as_ms())
}

/// The line of a batch for a cancel. It has the outcome, even where a single call would get a problem.
pub(crate) fn cancel_line(
    key: &Key,
    version: Option<Seq>,
    ended: Result<queue::Cancelled, queue::CancelError>,
) -> api::BatchResult {
    let outcome = match ended {
        Ok(ended) => cancel_outcome(ended),
        Err(error) => match cancel_refusal(&error, version) {
            Ok(outcome) => outcome,
            Err(problem) => return api::BatchResult::problem(Some(key.as_str().to_owned()), *problem),
        },
    };
    api::BatchResult::cancel(key.as_str(), outcome)
}
