//! `/v1/queues` and `/v1/queues/{q}` with `pause`, `drain` and `resume`.

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    BadRequest, DeleteQueueAnswer, PauseBody, Problem, QueueGone, QueuesBody, SettingsBody, no_body, no_query,
};
use tickwheel_queue::{QueueChange, QueueName};

use crate::answer;
use crate::app::{App, Shared};
use crate::body::JsonBytes;
use crate::path::QueueAt;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::settings;
use crate::tokens::Grant;
use crate::translate;

/// `GET`: every queue that has tasks or settings, and how many tasks in each state.
pub(crate) async fn all(
    app: Shared,
    Extension(grant): Extension<Grant>,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let counts = app.queue.queues().await.map_err(|error| translate::unavailable(&error))?;
    let known = counts.iter().filter(|counts| grant.covers(&counts.queue));
    Ok(answer::json(StatusCode::OK, &QueuesBody { queues: known.map(translate::queue_counts).collect() }))
}

/// `GET` on one: its counts and settings. A queue appears on first use, so one that was never used has no tasks and is no error.
pub(crate) async fn one(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    show(&app, &queue).await
}

/// `PUT` on one: its settings, all of them.
pub(crate) async fn put(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    if body.trim_ascii().is_empty() {
        // A forgotten body would give every setting its default.
        let hint = "send the settings as they are to be; `{}` gives all of them their defaults";
        return Err(BadRequest::body("is empty", hint).into());
    }
    let settings = settings::settings(SettingsBody::parse(&body)?);
    let _one_by_one = app.settings.lock().await;
    change(&app, &queue, QueueChange::Settings(settings)).await
}

/// `PATCH` on one: those of its settings that are named. Nobody else's change comes between the look and the change.
pub(crate) async fn patch(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let _one_by_one = app.settings.lock().await;
    let view = app.queue.queue(&queue).await.map_err(|error| translate::unavailable(&error))?;
    let settings = settings::queue_body(&view).settings.patched(&body)?;
    change(&app, &queue, QueueChange::Settings(settings::settings(settings))).await
}

/// `DELETE` on one that has nothing: its settings go, and it is listed no longer.
pub(crate) async fn delete(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let _one_by_one = app.settings.lock().await;
    let deleted = app.queue.change_queue(settings::change(&queue, QueueChange::Delete)).await;
    deleted.map_err(|error| settings::change_refused(&error, &queue))?;
    Ok(answer::json(StatusCode::OK, &DeleteQueueAnswer { result: QueueGone::Deleted }))
}

/// `POST pause`: nothing is leased.
pub(crate) async fn pause(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let PauseBody { for_ms: ms } = PauseBody::parse(&body)?;
    change(&app, &queue, QueueChange::Pause { ms }).await
}

/// `POST drain`: no task is added.
pub(crate) async fn drain(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    no_body(&body)?;
    change(&app, &queue, QueueChange::Drain).await
}

/// `POST resume`: the end of both.
pub(crate) async fn resume(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    no_body(&body)?;
    change(&app, &queue, QueueChange::Resume).await
}

/// Changes a queue and shows it.
async fn change(app: &App, queue: &QueueName, change: QueueChange) -> Result<Response, Refusal> {
    let changed = app.queue.change_queue(settings::change(queue, change)).await;
    changed.map_err(|error| settings::change_refused(&error, queue))?;
    // It is laid down by now, whatever comes of the look at it.
    show(app, queue).await.map_err(|_| Problem::indeterminate("it was laid down, and cannot be shown").into())
}

async fn show(app: &App, queue: &QueueName) -> Result<Response, Refusal> {
    let view = app.queue.queue(queue).await.map_err(|error| translate::unavailable(&error))?;
    Ok(answer::json(StatusCode::OK, &settings::queue_body(&view)))
}
