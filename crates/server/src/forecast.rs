//! `/v1/forecast`: how many tasks fall due when.

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{BucketBody, ForecastBody, ForecastQuery, Problem};
use tickwheel_queue::{Forecast, QueueName};

use crate::answer;
use crate::app::Shared;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::tokens::Grant;
use crate::translate;

/// `GET`: counted by the store, of a queue or of all.
pub(crate) async fn forecast(
    app: Shared,
    Extension(grant): Extension<Grant>,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    let asked = ForecastQuery::parse(&query)?;
    let queue = asked.queue.as_deref().map(QueueName::new).transpose();
    let queue = queue.map_err(|error| translate::name_refused(&error))?;
    match &queue {
        Some(queue) if !grant.covers(queue) => return Err(Problem::out_of_scope(queue.as_str()).into()),
        None if !grant.is_unscoped() => return Err(Problem::forbidden_to_scoped().into()),
        _ => {}
    }
    // One at a time: each may read much.
    let _one_by_one = app.forecasts.lock().await;
    let buckets = usize::try_from(asked.buckets()).expect("it was checked");
    let view = app.queue.forecast(Forecast { queue, width_ms: asked.bucket_ms, buckets }).await;
    let view = view.map_err(|error| translate::unavailable(&error))?;
    let at_ms = |index: u64| view.from.saturating_plus_ms(index.saturating_mul(asked.bucket_ms)).as_ms();
    let found = (0..).zip(&view.counts).filter(|(_, tasks)| **tasks > 0);
    let body = ForecastBody {
        bucket_ms: asked.bucket_ms,
        from_ms: view.from.as_ms(),
        to_ms: at_ms(asked.buckets()),
        tasks: view.counts.iter().sum(),
        buckets: found.map(|(index, tasks)| BucketBody { at_ms: at_ms(index), tasks: *tasks }).collect(),
        queue: asked.queue,
    };
    Ok(answer::json(StatusCode::OK, &body))
}
