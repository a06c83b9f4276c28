//! `/v1/queues` and `/v1/queues/{q}`.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{QueuesBody, no_query};

use crate::answer;
use crate::app::Shared;
use crate::path::QueueAt;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::translate;

/// `GET`: every queue that has tasks, and how many in each state.
pub(crate) async fn all(app: Shared, QueryText(query): QueryText) -> Result<Response, Refusal> {
    no_query(&query)?;
    let counts = app.queue.queues().await.map_err(|error| translate::unavailable(&error))?;
    Ok(answer::json(
        StatusCode::OK,
        &QueuesBody { queues: counts.iter().map(translate::queue_counts).collect() },
    ))
}

/// `GET` on one: its counts. A queue appears on first use, so one that was never used has no tasks and is no error.
pub(crate) async fn one(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let counts = app.queue.queues().await.map_err(|error| translate::unavailable(&error))?;
    let found = counts.iter().find(|counts| counts.queue == queue);
    let body = found.map_or_else(|| translate::no_tasks(&queue), translate::queue_counts);
    Ok(answer::json(StatusCode::OK, &body))
}
