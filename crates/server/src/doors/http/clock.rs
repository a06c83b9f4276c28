//! `/v1/clock/advance`: moving the virtual clock.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::AdvanceBody;

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::translate;

handlers! {
    AdvanceClock => advance,
}

/// `POST`: moves the clock, and answers once all tasks that became due are ready and durable, and no message is under way to a target.
async fn advance(mut call: Call) -> Result<Response, Refusal> {
    let by = call.read(AdvanceBody::parse).await?;
    let now = call.caller.targets(Right::Admin, None)?.advance(Duration::from_millis(by.by_ms)).await;
    let now = now.map_err(|error| translate::advance_refused(&error))?;
    Ok(answer::json(StatusCode::OK, &translate::now(now)))
}
