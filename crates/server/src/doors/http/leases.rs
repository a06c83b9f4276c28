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
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::doors::http::stream;
use crate::service::caller::Leasing;
use crate::translate::{self, Tokens, token_results};

handlers! {
    Lease => lease,
    Ack => ack,
    Nack => nack,
    Extend => extend,
}

/// `POST lease`: ready tasks, or a wait for the first one.
///
/// The wait ends early, with an empty answer, when the server stops. If the client leaves, this future is dropped,
/// and the call with it. Tasks that were leased for it at that moment are given back.
async fn lease(mut call: Call) -> Result<Response, Refusal> {
    let request = call.json().await?.read(LeaseBody::parse).await?;
    let (app, trace) = (call.app(), call.trace());
    let stopping = app.background.stopping();
    let lax = call.caller.lax_json();
    // A stopping server answers at once, with the tasks that are ready.
    let wait = if stopping.is_given() { Duration::ZERO } else { Duration::from_millis(request.wait_ms) };
    let watched = call.turn.watch();
    let begun = app.observed.requests().wait_begins();
    let lease = translate::lease(call.queue(), &request, wait);
    let leasing =
        call.caller.lease(lease, wait, trace.as_deref(), pending::<Result<(), Infallible>>()).await?;
    let Leasing { leased, held, .. } = leasing?;
    // From here on the client has the tasks. They are not given back if it leaves while they are written.
    drop(watched);
    let waited = (!wait.is_zero()).then(|| app.observed.requests().waited(begun));
    let bytes = |task: &Leased| task.body.payload_at(task.step).0.len();
    let answer = stream::tasks(leased, bytes, translate::leased_task, lax, String::new()).await;
    let mut answer = answer::holding(answer, held);
    if let Some(waited) = waited {
        answer.extensions_mut().insert(waited);
    }
    Ok(answer)
}

/// `POST ack`: the work on tasks is done.
async fn ack(mut call: Call) -> Result<Response, Refusal> {
    let tokens = Tokens::read(&call.read(AckBody::parse).await?.tokens);
    let answers = call.caller.ack(tokens.ack(call.queue()))?.await?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}

/// `POST nack`: tasks go back, at once or after a delay.
async fn nack(mut call: Call) -> Result<Response, Refusal> {
    let body = call.read(NackBody::parse).await?;
    let tokens = Tokens::read(&body.tokens);
    let answers = call.caller.nack(tokens.nack(call.queue(), body.delay_ms, body.reason))?.await;
    let answers = answers.map_err(|error| translate::nack_refused(&error))?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}

/// `POST extend`: leases get more time.
async fn extend(mut call: Call) -> Result<Response, Refusal> {
    let body = call.read(ExtendBody::parse).await?;
    let tokens = Tokens::read(&body.tokens);
    let answers = call.caller.extend(tokens.extend(call.queue(), body.lease_ms))?.await?;
    Ok(answer::json(StatusCode::OK, &token_results(&answers)))
}
