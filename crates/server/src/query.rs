//! The text behind the `?`. What it means is for the endpoint's own parser to say.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The query string, still encoded; empty if there is none.
pub(crate) struct QueryText(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for QueryText {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}
