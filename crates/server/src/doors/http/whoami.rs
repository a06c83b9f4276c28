//! `/v1/whoami`: the rights of the caller; and `/`: the index of the API.

use axum::http::header::VARY;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use tickwheel_api::{ConsoleMode, IndexBody, TokenLimits, WhoamiBody};

use crate::access::quota::{Allowed, Quota};
use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;

handlers! {
    Whoami => whoami,
    Index => index,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `GET`: the rights, the scope and the limits of the token, and what the server is, for programs that offer only what
/// their caller may do.
async fn whoami(call: Call) -> Result<Response, Refusal> {
    let (app, grant) = (call.app(), call.caller.grant());
    let rights = Right::ALL.iter().copied().filter(|right| grant.allows(*right));
    let health = call.caller.health();
    let body = WhoamiBody {
        anonymous: grant.token().is_none(),
        token: grant.name().map(|name| name.to_string()),
        rights: rights.collect(),
        scopes: grant.scopes().map(str::to_owned).collect(),
        limits: grant.quota().map(Quota::allowed).map(limits).unwrap_or_default(),
        version: VERSION.to_owned(),
        virtual_clock: health.virtual_clock,
        read_only: health.read_only.is_some(),
        instance: app.observed.instance().to_owned(),
        console: *app.observed.console(),
    };
    Ok(answer::json(StatusCode::OK, &body))
}

fn limits(allowed: Allowed) -> TokenLimits {
    let Allowed { rate, bytes, tasks, max_delay_ms } = allowed;
    TokenLimits { rate, bytes, tasks, max_delay_ms }
}

/// `GET /`: the addresses to begin with. They are relative, so that a proxy may put the server below a path.
async fn index(call: Call) -> Result<Response, Refusal> {
    let console = (*call.app().observed.console() != ConsoleMode::Off).then(|| "console/".to_owned());
    let body = IndexBody {
        name: "tickwheel".to_owned(),
        version: VERSION.to_owned(),
        openapi: "openapi.json".to_owned(),
        health: "healthz".to_owned(),
        ready: "readyz".to_owned(),
        metrics: "metrics".to_owned(),
        console,
        docs: "docs/reference/http.md".to_owned(),
    };
    let mut response = answer::json(StatusCode::OK, &body);
    // A browser gets another answer at the same address.
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}
