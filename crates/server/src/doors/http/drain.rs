//! `/v1/drain` and `/v1/resume`: the server takes no new tasks, and workers go on.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{DrainBody, no_body};

use crate::access::refusal::Refusal;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::app::App;

handlers! {
    DrainServer => drain,
    ResumeServer => resume,
}

/// `POST /v1/drain`: no task is added to any queue.
async fn drain(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    call.app().admission.drain().begin();
    Ok(show(call.app()))
}

/// `POST /v1/resume`: ends the drain.
async fn resume(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    call.app().admission.drain().end();
    Ok(show(call.app()))
}

fn show(app: &App) -> Response {
    answer::json(StatusCode::OK, &DrainBody { draining: app.admission.drain().is_on() })
}
