//! The extractor of a request's caller.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use crate::access::producer::Producer;
use crate::access::tokens::Grant;
use crate::doors::http::wire::Peer;
use crate::service::app::App;
use crate::service::caller::Caller;

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let grant =
            parts.extensions.get().cloned().expect("the front grants something to each that it lets in");
        Ok(Self::new(Arc::clone(app), grant, producer(&parts.extensions)))
    }
}

/// The sender of a request with these extensions.
pub(crate) fn producer(extensions: &Extensions) -> Producer {
    let token = extensions.get::<Grant>().and_then(Grant::token);
    Producer::new(token, extensions.get::<Peer>().and_then(|peer| peer.0))
}
