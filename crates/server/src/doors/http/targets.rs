//! `/v1/targets`, and `/v1/queues/{q}/target` with `pause`, `resume`, `rotate`, `test` and `attempts`.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    AttemptsBody, AttemptsQuery, DeleteTargetAnswer, Problem, RotateBody, TargetBody, TargetGone, TargetView,
    TargetsBody, no_body, no_query,
};
use tickwheel_queue::{QueueName, Seq};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::targets::Targets;

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
    let scope = call.caller.grant().scope();
    let app = Arc::clone(call.app());
    let (created, view) = whole(&call, move |targets, queue| async move {
        // A target with the order `group` changes the settings of its queue.
        let _one_by_one = app.admission.settings().lock().await;
        targets.put(&queue, target, version, scope).await
    })
    .await?;
    Ok(show(if created { StatusCode::CREATED } else { StatusCode::OK }, &view))
}

/// `GET`: the target and its state. The query of a URL and the values of headers may have secrets, so they are for admins only.
async fn get(call: Call) -> Result<Response, Refusal> {
    let mut view = call.targets(Right::Read)?.get(call.queue()).await?;
    if !call.caller.grant().allows(Right::Admin) {
        if let Some((place, _)) = view.target.url.as_deref().and_then(|url| url.split_once('?')) {
            view.target.url = Some(format!("{place}?..."));
        }
        view.target.headers.values_mut().for_each(|value| *value = "...".to_owned());
    }
    Ok(show(StatusCode::OK, &view))
}

/// `DELETE`: the queue has no target any more. Messages under way are settled before the answer.
async fn delete(call: Call) -> Result<Response, Refusal> {
    let version = call.version()?.map(|Seq(version)| version);
    whole(&call, move |targets, queue| async move { targets.delete(&queue, version).await }).await?;
    Ok(answer::json(StatusCode::OK, &DeleteTargetAnswer { result: TargetGone::Deleted }))
}

/// `POST pause`: nothing more is sent.
async fn pause(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    let view = whole(&call, |targets, queue| async move { targets.pause(&queue).await }).await?;
    Ok(show(StatusCode::OK, &view))
}

/// `POST resume`: ends a pause, and enables a target that was disabled.
async fn resume(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    let view = whole(&call, |targets, queue| async move { targets.resume(&queue).await }).await?;
    Ok(show(StatusCode::OK, &view))
}

/// `POST rotate`: makes a new secret and shows it once.
async fn rotate(mut call: Call) -> Result<Response, Refusal> {
    let body = call.read(RotateBody::parse).await?;
    let rotated = whole(&call, move |targets, queue| async move { targets.rotate(&queue, body).await });
    let (version, rotated) = rotated.await?;
    Ok(answer::versioned(StatusCode::OK, Seq(version), &rotated))
}

/// `POST test`: sends one message that is not a task.
async fn test(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    Ok(answer::json(StatusCode::OK, &call.targets(Right::Admin)?.test(call.queue()).await?))
}

/// `GET attempts`: the last attempts, the newest first.
async fn attempts(call: Call) -> Result<Response, Refusal> {
    let AttemptsQuery { limit } = AttemptsQuery::parse(call.query())?;
    let attempts = call.targets(Right::Read)?.attempts(call.queue(), limit).await?;
    Ok(answer::json_in_pieces(StatusCode::OK, &AttemptsBody { attempts }))
}

/// `GET` on all queues in the token's scope.
async fn all(call: Call) -> Result<Response, Refusal> {
    no_query(call.query())?;
    let caller = &call.caller;
    let all = caller.targets(Right::Read, None)?;
    let targets = all.list(|queue| caller.covers(queue)).await?;
    let sees_all = caller.grant().is_unscoped();
    let connections = if sees_all { all.connections() } else { Vec::new() };
    Ok(answer::json_in_pieces(StatusCode::OK, &TargetsBody { targets, connections }))
}

/// Makes a change to its end, also if the caller leaves meanwhile: what the store has and what runs must be the same.
fn whole<T, C, F>(call: &Call, change: C) -> impl Future<Output = Result<T, Refusal>> + Send + use<T, C, F>
where
    T: Send + 'static,
    C: FnOnce(Targets, QueueName) -> F,
    F: Future<Output = Result<T, Refusal>> + Send + 'static,
{
    let targets = call.targets(Right::Admin).cloned();
    let changed = targets.map(|targets| tokio::spawn(change(targets, call.queue().clone())));
    async move {
        match changed?.await {
            Ok(changed) => changed,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Problem::stopping().into()),
            },
        }
    }
}

fn show(status: StatusCode, view: &TargetView) -> Response {
    answer::versioned(status, Seq(view.version), view)
}
