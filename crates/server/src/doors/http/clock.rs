//! `/v1/clock/advance`: moving the virtual clock.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::AdvanceBody;

use crate::access::refusal::Refusal;
use crate::doors::http::Shared;
use crate::doors::http::answer;
use crate::doors::http::body::JsonBytes;
use crate::doors::http::query::NoQuery;
use crate::translate;

/// `POST`: moves the clock, and answers once all tasks that became due are ready and durable.
pub(crate) async fn advance(app: Shared, _: NoQuery, mut body: JsonBytes) -> Result<Response, Refusal> {
    let by = body.read(AdvanceBody::parse).await?;
    let now = app.queue.advance(Duration::from_millis(by.by_ms)).await;
    let now = now.map_err(|error| translate::advance_refused(&error))?;
    Ok(answer::json(StatusCode::OK, &translate::now(now)))
}
