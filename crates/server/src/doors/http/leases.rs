//! `/v1/queues/{q}/lease`, `ack`, `nack` and `extend`: the calls of workers.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{AckBody, ExtendBody, LeaseBody, NackBody};
use tickwheel_queue::Leased;

use crate::access::refusal::Refusal;
use crate::doors::http::answer;
use crate::doors::http::body::JsonBytes;
use crate::doors::http::header::Trace;
use crate::doors::http::path::QueueAt;
use crate::doors::http::query::NoQuery;
use crate::doors::http::stream;
use crate::doors::http::wire::Turn;
use crate::service::caller::Caller;
use crate::translate::{self, Tokens, token_results};

/// `POST lease`: ready tasks, or a wait for the first one.
///
/// The wait ends early, with an empty answer, when the server stops. If the client leaves, this future is dropped,
/// and with it the call: tasks that were leased for it in that moment are given back.
pub(crate) async fn lease(
    caller: Caller,
    turn: Turn,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    Trace(trace): Trace,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let request = body.read(LeaseBody::parse).await?;
    drop(body);
    let app = &caller.app;
    // A stopping server answers at once, with the tasks that are ready.
    let wait = if app.stopping.is_given() { Duration::ZERO } else { Duration::from_millis(request.wait_ms) };
    let watched = turn.watch();
    let begun = app.requests.wait_begins();
    let lease = translate::lease(&queue, &request, wait);
    let leased = caller.lease(lease, wait, trace.as_deref(), pending::<Result<(), Infallible>>()).await?;
    let (leased, _) = leased.map_err(|error| translate::unavailable(&error))?;
    // From here on the tasks are the client's. They are not given back if it leaves while they are written.
    drop(watched);
    let waited = (!wait.is_zero()).then(|| app.requests.waited(begun));
    let bytes = |task: &Leased| task.body.payload_at(task.step).0.len();
    let mut answer = stream::tasks(leased, bytes, translate::leased_task, String::new()).await;
    if let Some(waited) = waited {
        answer.extensions_mut().insert(waited);
    }
    Ok(answer)
}

/// `POST ack`: the work on tasks is done.
pub(crate) async fn ack(
    caller: Caller,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let tokens = Tokens::read(&body.read(AckBody::parse).await?.tokens);
    let answers = caller.ack(tokens.ack(&queue))?.await;
    let answers = answers.map_err(|error| translate::unavailable(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}

/// `POST nack`: tasks go back, at once or after a delay.
pub(crate) async fn nack(
    caller: Caller,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let body = body.read(NackBody::parse).await?;
    let tokens = Tokens::read(&body.tokens);
    let answers = caller.nack(tokens.nack(&queue, body.delay_ms, body.reason))?.await;
    let answers = answers.map_err(|error| translate::nack_refused(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}

/// `POST extend`: leases get more time.
pub(crate) async fn extend(
    caller: Caller,
    QueueAt(queue): QueueAt,
    _: NoQuery,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let body = body.read(ExtendBody::parse).await?;
    let tokens = Tokens::read(&body.tokens);
    let answers = caller.extend(tokens.extend(&queue, body.lease_ms))?.await;
    let answers = answers.map_err(|error| translate::unavailable(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}
