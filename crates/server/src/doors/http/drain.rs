//! `/v1/drain` and `/v1/resume`: the server takes no new tasks, and workers go on.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::DrainBody;

use crate::access::refusal::Refusal;
use crate::doors::http::Shared;
use crate::doors::http::answer;
use crate::doors::http::body::NoBody;
use crate::doors::http::query::NoQuery;
use crate::service::app::App;

/// `POST /v1/drain`: no task is added to any queue.
pub(crate) async fn drain(app: Shared, _: NoQuery, _: NoBody) -> Result<Response, Refusal> {
    app.draining.begin();
    Ok(show(&app))
}

/// `POST /v1/resume`: ends the drain.
pub(crate) async fn resume(app: Shared, _: NoQuery, _: NoBody) -> Result<Response, Refusal> {
    app.draining.end();
    Ok(show(&app))
}

fn show(app: &App) -> Response {
    answer::json(StatusCode::OK, &DrainBody { draining: app.draining.is_on() })
}
