//! `/v1/queues/{q}/tasks` and `/v1/queues/{q}/tasks/{key}`.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;
use tickwheel_api::path::task_path;
use tickwheel_api::{BadRequest, CancelAnswer, PatchBody, PutBody, PutQuery, RevokeQuery, no_body};
use tickwheel_queue::{KeyAct, Put, PutError, PutMode, Stored};

use crate::access::refusal::Refusal;
use crate::base::aside::{LONG_BYTES, aside};
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::header::idempotency_key;
use crate::doors::http::routes::handlers;
use crate::translate;

handlers! {
    PutTask => put,
    PostTask => post,
    GetTask => get,
    PatchTask => patch,
    CancelTask => cancel,
    RunTask => run,
    ReleaseTask => release,
}

/// `PUT`: schedules the task of this key, or changes the live one.
async fn put(mut call: Call) -> Result<Response, Refusal> {
    let (key, query, version) = (call.key()?, PutQuery::parse(call.query())?, call.version()?);
    let trace = call.trace();
    let body = call.read_portable(PutBody::parse, PutBody::check_portable).await?;
    let (caller, queue) = (&call.caller, call.queue());
    let put =
        translate::put(queue, Some(key.clone()), body, query, version, caller.app().admission.levels())?;
    caller.count().await?;
    let stored = caller.put(Put { trace, ..put })?.await;
    Ok(put_answer(&stored.map_err(|error| translate::put_refused(&error, queue, Some(&key), version))?))
}

/// `POST`: schedules a task under a key that the server makes, or under that of `Idempotency-Key`.
async fn post(mut call: Call) -> Result<Response, Refusal> {
    if call.version()?.is_some() {
        return Err(no_version_yet().into());
    }
    let (key, trace) = (idempotency_key(call.headers())?, call.trace());
    let body = call.read_portable(PutBody::parse, PutBody::check_portable).await?;
    let (caller, queue) = (&call.caller, call.queue());
    let query = PutQuery::default();
    let put = translate::put(queue, key.clone(), body, query, None, caller.app().admission.levels())?;
    let mode = if key.is_some() { PutMode::Once } else { put.mode };
    caller.count().await?;
    let stored = caller.put(Put { trace, mode, ..put })?.await;
    let stored = stored.map_err(|error| match (&error, translate::put_refused(&error, queue, key.as_ref(), None)) {
        (PutError::Done, problem) => problem.with_hint(
            "the task of this Idempotency-Key was made before, and its work is done: there is nothing left to do",
        ),
        (_, problem) => problem,
    });
    Ok(put_answer(&stored?))
}

/// `GET`: the live task.
async fn get(call: Call) -> Result<Response, Refusal> {
    let (queue, key) = (call.queue(), call.key()?);
    let found = call.caller.get(translate::get(queue, &key))?.await;
    let task = found.map_err(|error| translate::get_refused(&error, queue, &key))?;
    let payload_bytes = task.body.payload_bytes();
    let (is_long, lax) = (payload_bytes > LONG_BYTES, call.caller.lax_json());
    let held = call.caller.hold(payload_bytes)?;
    let write = move || {
        let body = tickwheel_api::Answer { body: translate::task_body(&task), lax };
        answer::versioned(StatusCode::OK, task.version, &body)
    };
    let answer = if is_long { aside(write).await? } else { write() };
    Ok(answer::holding(answer, held))
}

/// `PATCH`: reschedules the live task or gives it another payload. Members that are not named stay.
async fn patch(mut call: Call) -> Result<Response, Refusal> {
    let (key, query, version) = (call.key()?, RevokeQuery::parse(call.query())?, call.version()?);
    let body = call.read_portable(PatchBody::parse, PatchBody::check_portable).await?;
    let (caller, queue) = (&call.caller, call.queue());
    let command =
        translate::patch(queue, &key, body, query.revoke, version, caller.app().admission.levels())?;
    let changed = caller.patch(command)?.await;
    let task = changed.map_err(|error| translate::patch_refused(&error, queue, &key, version))?;
    Ok(answer::versioned(StatusCode::OK, task.version, &translate::put_answer(&task)))
}

/// `DELETE`: cancels the task, with one definite answer.
async fn cancel(call: Call) -> Result<Response, Refusal> {
    let (queue, key) = (call.queue(), call.key()?);
    let (query, version) = (RevokeQuery::parse(call.query())?, call.version()?);
    let ended = call.caller.cancel(translate::cancel(queue, &key, query.revoke, version))?.await;
    let ended = ended.map_err(|error| translate::cancel_refused(&error, queue, &key, version))?;
    Ok(answer::json(StatusCode::OK, &CancelAnswer { result: translate::cancel_outcome(ended) }))
}

/// `POST .../run`: a scheduled task is due now.
async fn run(call: Call) -> Result<Response, Refusal> {
    act(call, KeyAct::Run).await
}

/// `POST .../release`: a leased task is taken from its worker.
async fn release(call: Call) -> Result<Response, Refusal> {
    act(call, KeyAct::Release).await
}

async fn act(mut call: Call, act: KeyAct) -> Result<Response, Refusal> {
    let (key, version) = (call.key()?, call.version()?);
    call.read(no_body).await?;
    let queue = call.queue();
    let acted = call.caller.by_key(translate::by_key(queue, &key, act, version))?.await;
    let task = acted.map_err(|error| translate::by_key_refused(&error, queue, &key, version))?;
    Ok(answer::versioned(StatusCode::OK, task.version, &translate::put_answer(&task)))
}

fn no_version_yet() -> BadRequest {
    let hint = "leave it out, or PUT the task under its key";
    BadRequest::header("If-Match", "means nothing to a POST, which makes a new task", hint)
}

/// 201 with the `Location` of a new task, 200 for a replaced one.
fn put_answer(stored: &Stored) -> Response {
    let body = translate::put_answer(&stored.task);
    if !stored.created {
        return answer::versioned(StatusCode::OK, stored.task.version, &body);
    }
    let mut response = answer::versioned(StatusCode::CREATED, stored.task.version, &body);
    let location = answer::location(task_path(stored.task.queue.as_str(), stored.task.key.as_str()));
    response.headers_mut().insert(LOCATION, location);
    response
}
