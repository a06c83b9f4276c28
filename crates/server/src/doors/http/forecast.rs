//! `/v1/forecast`: how many tasks become due, and when.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{BucketBody, ForecastBody, ForecastQuery, ForecastScale, LOG_ENDS_MS};
use tickwheel_queue::{Forecast, Grid, QueueName, Timestamp};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::search::expected::Expected;
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
    let asked = ForecastQuery::parse(call.query())?;
    let queue = asked.queue.as_deref().map(QueueName::new).transpose();
    let queue = queue.map_err(|error| translate::name_refused(&error))?;
    let (from, grid) = (asked.from_ms.and_then(Timestamp::from_ms), grid(&asked));
    let forecast = Forecast { queue, from, grid: grid.clone() };
    let (view, expected) = call.caller.forecast(forecast, asked.schedules).await?;
    // The answer may have ten thousand buckets.
    Ok(aside(move || answer::json_in_pieces(StatusCode::OK, &body(asked, &view, &grid, expected))).await?)
}

fn grid(asked: &ForecastQuery) -> Grid {
    match asked.scale {
        ForecastScale::Log => Grid::Ends(LOG_ENDS_MS.into()),
        ForecastScale::Linear => Grid::Even {
            width_ms: asked.bucket(),
            buckets: usize::try_from(asked.buckets() + 1).expect("it was checked"),
        },
    }
}

fn body(
    asked: ForecastQuery,
    view: &tickwheel_queue::ForecastView,
    grid: &Grid,
    expected: Option<Expected>,
) -> ForecastBody {
    let end_ms = |bucket: usize| view.from.saturating_plus_ms(grid.end_ms(bucket)).as_ms();
    let is_log = asked.scale == ForecastScale::Log;
    let bucket = |(index, tasks): (usize, &u64)| {
        let expected = expected.as_ref().map(|expected| expected.counts[index]);
        let at_ms = index.checked_sub(1).map_or(view.from.as_ms(), end_ms);
        BucketBody { at_ms, to_ms: is_log.then(|| end_ms(index)), tasks: *tasks, expected }
    };
    let until = expected.as_ref().and_then(|expected| expected.until);
    let is_empty = |bucket: &BucketBody| bucket.tasks == 0 && bucket.expected.unwrap_or_default() == 0;
    ForecastBody {
        bucket_ms: (!is_log).then(|| asked.bucket()),
        from_ms: view.from.as_ms(),
        to_ms: end_ms(usize::MAX),
        tasks: view.counts.iter().sum(),
        expected: expected.as_ref().map(|expected| expected.counts.iter().sum()),
        truncated: until.is_some(),
        expected_until_ms: until.map(Timestamp::as_ms),
        buckets: view.counts.iter().enumerate().map(bucket).filter(|bucket| !is_empty(bucket)).collect(),
        queue: asked.queue,
    }
}
