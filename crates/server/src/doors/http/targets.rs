//! `/v1/targets`, and `/v1/queues/{q}/target` with `pause`, `resume`, `rotate`, `test` and `attempts`.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    AttemptsBody, AttemptsQuery, DeleteTargetAnswer, RotateBody, TargetBody, TargetGone, TargetView,
    TargetsBody, no_body, no_query,
};
use tickwheel_queue::Seq;

use crate::access::refusal::Refusal;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;

handlers! {
    PutTarget => put,
    GetTarget => get,
    DeleteTarget => delete,
    PauseTarget => pause,
    ResumeTarget => resume,
    RotateTarget => rotate,
    TestTarget => test,
    ListAttempts => attempts,
    ListTargets => all,
}

/// `PUT`: gives the queue a target, or replaces it.
async fn put(mut call: Call) -> Result<Response, Refusal> {
    let version = call.version()?.map(|Seq(version)| version);
    let target = call.read(TargetBody::parse).await?;
    // A target with the order `group` changes the settings of its queue.
    let _one_by_one = call.app().settings.lock().await;
    let (created, view) = call.app().targets.put(call.queue(), target, version).await?;
    Ok(show(if created { StatusCode::CREATED } else { StatusCode::OK }, &view))
}

/// `GET`: the target and its state.
async fn get(call: Call) -> Result<Response, Refusal> {
    Ok(show(StatusCode::OK, &call.app().targets.get(call.queue()).await?))
}

/// `DELETE`: the queue has no target any more. Messages under way are settled before the answer.
async fn delete(call: Call) -> Result<Response, Refusal> {
    let version = call.version()?.map(|Seq(version)| version);
    call.app().targets.delete(call.queue(), version).await?;
    Ok(answer::json(StatusCode::OK, &DeleteTargetAnswer { result: TargetGone::Deleted }))
}

/// `POST pause`: nothing more is sent.
async fn pause(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    Ok(show(StatusCode::OK, &call.app().targets.pause(call.queue()).await?))
}

/// `POST resume`: ends a pause, and enables a target that was disabled.
async fn resume(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    Ok(show(StatusCode::OK, &call.app().targets.resume(call.queue()).await?))
}

/// `POST rotate`: makes a new secret and shows it once.
async fn rotate(mut call: Call) -> Result<Response, Refusal> {
    let body = call.read(RotateBody::parse).await?;
    let (version, rotated) = call.app().targets.rotate(call.queue(), body).await?;
    Ok(answer::versioned(StatusCode::OK, Seq(version), &rotated))
}

/// `POST test`: sends one message that is not a task.
async fn test(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    Ok(answer::json(StatusCode::OK, &call.app().targets.test(call.queue()).await?))
}

/// `GET attempts`: the last attempts, the newest first.
async fn attempts(call: Call) -> Result<Response, Refusal> {
    let AttemptsQuery { limit } = AttemptsQuery::parse(call.query())?;
    let attempts = call.app().targets.attempts(call.queue(), limit).await?;
    Ok(answer::json_in_pieces(StatusCode::OK, &AttemptsBody { attempts }))
}

/// `GET` on all queues in the token's scope.
async fn all(call: Call) -> Result<Response, Refusal> {
    no_query(call.query())?;
    let caller = &call.caller;
    let targets = caller.app.targets.list(|queue| caller.covers(queue)).await?;
    let sees_all = caller.grant().is_unscoped();
    let connections = if sees_all { caller.app.targets.connections() } else { Vec::new() };
    Ok(answer::json_in_pieces(StatusCode::OK, &TargetsBody { targets, connections }))
}

fn show(status: StatusCode, view: &TargetView) -> Response {
    answer::versioned(status, Seq(view.version), view)
}
