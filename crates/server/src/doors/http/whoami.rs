//! `/v1/whoami`: the rights of the caller.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::WhoamiBody;

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;

handlers! {
    Whoami => whoami,
}

/// `GET`: the rights and the scope of the token, for programs that offer only what their caller may do.
async fn whoami(call: Call) -> Result<Response, Refusal> {
    let grant = call.caller.grant();
    let rights = Right::ALL.iter().copied().filter(|right| grant.allows(*right));
    let body = WhoamiBody {
        anonymous: grant.token().is_none(),
        token: grant.name().map(|name| name.to_string()),
        rights: rights.collect(),
        scopes: grant.scopes().map(str::to_owned).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(answer::json(StatusCode::OK, &body))
}
