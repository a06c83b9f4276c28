//! `/healthz` and `/readyz`.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{Alive, AliveBody, ReadyBody};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::health;

handlers! {
    IsAlive => alive,
    IsReady => ready,
}

/// `GET /healthz`: 200 if the process answers at all. A supervisor should use this to decide about a restart, and not
/// `/readyz`: a server that is only read-only still serves reads, which a restart would end.
async fn alive(_: Call) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, &AliveBody { status: Alive::Ok }))
}

/// `GET /readyz`: 200 if the server takes work, otherwise 503, with the same kind of body.
///
/// If the server has tokens, a caller without one sees the state but not the reasons, because reasons may contain
/// file names.
///
/// The handler asks the queue. An answer from memory would look good even if the queue's thread was stuck or dead. A
/// server that drains is ready, because without its workers it would never become empty.
async fn ready(call: Call) -> Result<Response, Refusal> {
    let mut body = health::ready(call.app()).await;
    if !call.caller.grant().allows(Right::Read) {
        hide(&mut body);
    }
    let status = if body.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(answer::json(status, &body))
}

/// The text for a caller without a token, instead of a text that may contain file names.
const HIDDEN: &str = "the reason is shown to callers with a token that has `read`";

/// Hides the reasons and keeps the states.
fn hide(body: &mut ReadyBody) {
    for text in [&mut body.why, &mut body.read_only, &mut body.recovery] {
        if text.is_some() {
            *text = Some(HIDDEN.to_owned());
        }
    }
    body.reasons.fill(HIDDEN.to_owned());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use axum::http::Request;

    use super::*;
    use crate::access::tokens::{Grant, Tokens};
    use crate::base::stopping;
    use crate::doors::http::body::next_piece;
    use crate::doors::http::call::tests::answered;
    use crate::service::app::App;

    /// The reason why a stopping server is not ready, as a caller with this grant sees it.
    async fn why(grant: Grant) -> String {
        let (stop, stopping) = stopping::signal();
        stop.give();
        let app = Arc::new(App::of_test(stopping));
        let request = Request::get("/readyz").body(Body::empty()).expect("a request");
        let answer = answered(&app, grant, request).await;
        assert_eq!(answer.status(), 503);
        let text = next_piece(&mut answer.into_body()).await.expect("whole").expect("some text");
        let body: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let why = body["why"].as_str().expect("a reason").to_owned();
        assert_eq!(body["reasons"], serde_json::json!([why]), "the list says no more than the sentence");
        why
    }

    #[tokio::test]
    async fn reasons_are_for_those_that_may_read() {
        let tokens = Tokens::parse("reader rights=read\nworker rights=consume").expect("tokens");
        let of = |token: &str| tokens.grant(token.as_bytes()).expect("it is known");
        for grant in [Grant::everything(), of("reader")] {
            assert_eq!(why(grant).await, "the server is stopping");
        }
        for grant in [Grant::nothing(), of("worker")] {
            assert_eq!(why(grant).await, HIDDEN);
        }
    }
}
