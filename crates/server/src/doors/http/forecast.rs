//! `/v1/forecast`: how many tasks become due, and when.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{BucketBody, ForecastBody, ForecastQuery, Problem};
use tickwheel_queue::{Forecast, QueueName};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::translate;

handlers! {
    Forecast => forecast,
}

const _: () = assert!(
    tickwheel_api::FORECAST_BUCKETS_MAX + 1 == tickwheel_queue::FORECAST_BUCKETS_MAX as u64,
    "what may be asked for can be counted"
);

/// `GET`: the forecast of one queue or of all, counted by the store.
async fn forecast(call: Call) -> Result<Response, Refusal> {
    let caller = &call.caller;
    let asked = ForecastQuery::parse(call.query())?;
    let queue = asked.queue.as_deref().map(QueueName::new).transpose();
    let queue = queue.map_err(|error| translate::name_refused(&error))?;
    match &queue {
        Some(queue) if !caller.covers(queue) => return Err(Problem::out_of_scope(queue.as_str()).into()),
        None if !caller.grant().is_unscoped() => return Err(Problem::forbidden_to_scoped().into()),
        _ => {}
    }
    // One forecast is made at a time, because it may read much. It runs to its end, even if its caller has left.
    let Ok(permit) = Arc::clone(&caller.app.forecasts).try_lock_owned() else {
        return Err(Problem::busy("another forecast is being made", 1).into());
    };
    let buckets = usize::try_from(asked.buckets() + 1).expect("it was checked");
    let pending = caller.app.queue.forecast(Forecast { queue, width_ms: asked.bucket_ms, buckets });
    let made = tokio::spawn(async move {
        let view = pending.await;
        drop(permit);
        view
    });
    let view = match made.await {
        Ok(view) => view?,
        Err(_) => return Err(Problem::stopping().into()),
    };
    let at_ms = |index: u64| view.from.saturating_plus_ms(index.saturating_mul(asked.bucket_ms)).as_ms();
    let found = (0..).zip(&view.counts).filter(|(_, tasks)| **tasks > 0);
    let body = ForecastBody {
        bucket_ms: asked.bucket_ms,
        from_ms: view.from.as_ms(),
        to_ms: at_ms(view.counts.len() as u64),
        tasks: view.counts.iter().sum(),
        buckets: found.map(|(index, tasks)| BucketBody { at_ms: at_ms(index), tasks: *tasks }).collect(),
        queue: asked.queue,
    };
    // The answer may have ten thousand buckets.
    Ok(aside(move || answer::json_in_pieces(StatusCode::OK, &body)).await?)
}
