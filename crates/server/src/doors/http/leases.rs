//! `/v1/queues/{q}/lease`, `ack`, `nack` and `extend`: the worker's side.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{AckBody, ExtendBody, LeaseBody, NackBody, TraceContext};
use tickwheel_queue::{Leased, QueueName, Timestamp};

use crate::access::refusal::Refusal;
use crate::doors::http::Shared;
use crate::doors::http::answer;
use crate::doors::http::body::JsonBytes;
use crate::doors::http::header::Trace;
use crate::doors::http::path::QueueAt;
use crate::doors::http::query::NoQuery;
use crate::doors::http::stream;
use crate::doors::http::wire::Turn;
use crate::telemetry::span::{Attribute, Span, SpanKind};
use crate::translate::{self, Tokens, token_results};

/// `POST lease`: ready tasks, or a wait for the first one.
///
/// The wait ends early, with an empty answer, when the server stops. A client that leaves drops this future and with it
/// the call: what was leased for it in that moment is given back.
pub(crate) async fn lease(
    app: Shared,
    turn: Turn,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    Trace(trace): Trace,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let request = body.read(LeaseBody::parse).await?;
    drop(body);
    // A server that stops answers at once with what is ready, if anything.
    let wait = if app.stopping.is_given() { Duration::ZERO } else { Duration::from_millis(request.wait_ms) };
    let watched = turn.watch();
    let begun = app.requests.wait_begins();
    let asked = app.queue.now();
    let leased = app.queue.lease(translate::lease(&queue, &request, wait), wait);
    let leased = tokio::select! {
        biased;
        leased = leased => leased.map_err(|error| translate::unavailable(&error))?,
        () = app.stopping.wait(), if !wait.is_zero() => Vec::new(),
    };
    // They are the client's from here on, also where it leaves while they are written: nobody gives them back.
    drop(watched);
    let waited = (!wait.is_zero()).then(|| app.requests.waited(begun));
    let now = app.queue.now();
    app.deliveries.count(&leased, asked, now);
    if let Some(spans) = &app.spans {
        let parent = trace.as_deref().and_then(TraceContext::read);
        leased.iter().for_each(|task| spans.take(span(&queue, task, now, parent.clone())));
    }
    let bytes = |task: &Leased| task.body.payload_at(task.step).0.len();
    let mut answer = stream::tasks(leased, bytes, translate::leased_task, String::new()).await;
    if let Some(waited) = waited {
        answer.extensions_mut().insert(waited);
    }
    Ok(answer)
}

/// The way of a task from its instant into a worker's hands.
fn span(queue: &QueueName, task: &Leased, now: Timestamp, parent: Option<TraceContext>) -> Span {
    let at = |instant: Timestamp| UNIX_EPOCH + Duration::from_millis(instant.as_tick());
    Span {
        name: format!("deliver {}", queue.as_str()),
        kind: SpanKind::Consumer,
        begun: at(task.due_at.min(now)),
        ended: at(now),
        parent,
        link: task.trace.as_deref().and_then(TraceContext::read),
        attributes: vec![
            ("messaging.system", Attribute::Text("tickwheel".to_owned())),
            ("messaging.operation.name", Attribute::Text("deliver".to_owned())),
            ("messaging.operation.type", Attribute::Text("receive".to_owned())),
            ("messaging.destination.name", Attribute::Text(queue.as_str().to_owned())),
            ("messaging.message.id", Attribute::Text(task.id.to_string())),
            ("tickwheel.attempt", Attribute::Number(task.attempt.into())),
        ],
        failed: false,
    }
}

/// `POST ack`: the work is done.
pub(crate) async fn ack(
    app: Shared,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let tokens = Tokens::read(&body.read(AckBody::parse).await?.tokens);
    let answers = app.queue.ack(tokens.ack(&queue)).await;
    let answers = answers.map_err(|error| translate::unavailable(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}

/// `POST nack`: the task goes back, at once or after a delay.
pub(crate) async fn nack(
    app: Shared,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let body = body.read(NackBody::parse).await?;
    let tokens = Tokens::read(&body.tokens);
    let answers = app.queue.nack(tokens.nack(&queue, body.delay_ms, body.reason)).await;
    let answers = answers.map_err(|error| translate::nack_refused(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}

/// `POST extend`: the work goes on.
pub(crate) async fn extend(
    app: Shared,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let body = body.read(ExtendBody::parse).await?;
    let tokens = Tokens::read(&body.tokens);
    let answers = app.queue.extend(tokens.extend(&queue, body.lease_ms)).await;
    let answers = answers.map_err(|error| translate::unavailable(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}
