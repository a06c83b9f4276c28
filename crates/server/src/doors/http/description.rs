//! `/openapi.json` and `/problems/{kind}`: the server's own documentation.

use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{Problem, ProblemKind, openapi};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;

handlers! {
    Openapi => openapi,
    Problem => problem_page,
}

/// `GET /openapi.json`.
async fn openapi(_: Call) -> Result<Response, Refusal> {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi::document().to_string().into());
    // The first call builds the text, which takes 10 ms.
    let text = aside(|| TEXT.clone()).await?;
    Ok(answer::of(Body::from(text), "application/json"))
}

/// `GET /problems/{kind}`: the page to which the `type` of a problem leads.
async fn problem_page(call: Call) -> Result<Response, Refusal> {
    let kind = ProblemKind::of_type(call.path()).ok_or_else(|| Problem::no_endpoint(call.path()))?;
    Ok(answer::json(StatusCode::OK, &kind.page()))
}
