//! The query string. Each endpoint has its own parser for it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tickwheel_api::no_query;

use crate::access::refusal::Refusal;

/// The query string, still encoded; empty if there is none.
pub(crate) struct QueryText(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for QueryText {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

/// The query of a call without parameters. Any parameter is refused: an ignored one would have no effect, against its
/// caller's wish.
pub(crate) struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        no_query(parts.uri.query().unwrap_or_default())?;
        Ok(Self)
    }
}
