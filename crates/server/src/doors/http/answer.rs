//! Answers that are not problems.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use tickwheel_api::etag;
use tickwheel_queue::Seq;

use crate::base::pieces::Pieces;
use crate::service::answers::Held;

/// Most answers are no longer than this (bytes).
const USUAL_BYTES: usize = 512;

/// An answer with a JSON body.
pub(crate) fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut bytes, body).expect("our own types have string keys, and memory takes all");
    json_body(status, bytes.into())
}

/// An answer with JSON that may be long, so it is written in pieces.
pub(crate) fn json_in_pieces<T: Serialize>(status: StatusCode, body: &T) -> Response {
    let mut pieces = Pieces::default();
    serde_json::to_writer(&mut pieces, body).expect("our own types have string keys, and memory takes all");
    json_pieces(status, pieces)
}

/// An answer with JSON that is already written.
pub(crate) fn json_pieces(status: StatusCode, pieces: Pieces) -> Response {
    json_body(status, pieces.into_body())
}

fn json_body(status: StatusCode, body: Body) -> Response {
    let mut response = of(body, "application/json");
    *response.status_mut() = status;
    response
}

/// An answer 200 with a body of this media type.
pub(crate) fn of(body: Body, media_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The answer 202 to a call that began something which goes on at this path.
pub(crate) fn begun<T: Serialize>(path: String, body: &T) -> Response {
    let mut response = json(StatusCode::ACCEPTED, body);
    response.headers_mut().insert(LOCATION, location(path));
    response
}

/// An answer about one task, with the task's version as the `ETag`.
pub(crate) fn versioned<T: Serialize>(status: StatusCode, version: Seq, body: &T) -> Response {
    let mut response = json(status, body);
    let tag = HeaderValue::try_from(etag(version.0)).expect("digits and quotes are a header value");
    response.headers_mut().insert(ETAG, tag);
    response
}

/// The same answer, which holds its memory until the client has read it.
pub(crate) fn holding(answer: Response, held: Held) -> Response {
    if held.is_nothing() { answer } else { answer.map(|body| Body::new(Holding { body, _held: held })) }
}

/// A body with the memory of its payloads.
struct Holding {
    body: Body,
    _held: Held,
}

impl HttpBody for Holding {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The header `Location` with this path.
pub(crate) fn location(path: String) -> HeaderValue {
    HeaderValue::try_from(path).expect("a path is ASCII without controls")
}
