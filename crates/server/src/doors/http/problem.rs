//! Problems of the HTTP door itself, and the conversion of each problem into an answer.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tickwheel_api::{BadRequest, PROBLEM_CONTENT_TYPE, Problem, ProblemKind};

use crate::access::refusal::Refusal;
use crate::doors::http::wire::{Fault, Rule};

/// Marks an answer as the refusal of a token that has used up its quota.
#[derive(Copy, Clone, Debug)]
pub(crate) struct TokenLimit;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = response(self.problem());
        if self.is_token_limit() {
            response.extensions_mut().insert(TokenLimit);
        }
        response
    }
}

/// The answer with the problem as its body.
pub(crate) fn response(problem: &Problem) -> Response {
    let mut response = Response::new(Body::from(problem.to_json()));
    *response.status_mut() =
        StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(kind) = problem.kind() {
        // The middleware counts problems by this extension.
        response.extensions_mut().insert(kind);
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_CONTENT_TYPE));
    if problem.status == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = problem.retry_after_s {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The problem of a head that the connection framer refused.
pub(crate) fn fault(fault: &Fault) -> Problem {
    let kind = match fault.rule {
        Rule::Malformed => ProblemKind::BadRequest,
        Rule::UriTooLong => ProblemKind::UriTooLong,
        Rule::HeadersTooLarge => ProblemKind::HeadersTooLarge,
        Rule::Timeout => ProblemKind::Timeout,
    };
    Problem::new(kind, &fault.what).with_hint(fault.hint)
}

/// The problem of a body that did not arrive in time.
pub(crate) fn body_too_slow(limit: Duration) -> Problem {
    Problem::timeout(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

/// The problem of a body that broke off, or whose chunks are malformed.
pub(crate) fn broken_body() -> Problem {
    Problem::bad_request(&BadRequest::body(
        "broke off, or its chunks are malformed",
        "send as many bytes as Content-Length says, or chunks as RFC 9112 has them",
    ))
}
