//! Answers that are not problems.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use tickwheel_api::etag;
use tickwheel_queue::{Key, QueueName, ScheduleName, Seq};

use crate::base::pieces::Pieces;

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
pub(crate) fn begun<T: Serialize>(path: &str, body: &T) -> Response {
    let mut response = json(StatusCode::ACCEPTED, body);
    response.headers_mut().insert(LOCATION, HeaderValue::from_str(path).expect("digits are a header value"));
    response
}

/// An answer about one task, with the task's version as the `ETag`.
pub(crate) fn versioned<T: Serialize>(status: StatusCode, version: Seq, body: &T) -> Response {
    let mut response = json(status, body);
    let tag = HeaderValue::try_from(etag(version.0)).expect("digits and quotes are a header value");
    response.headers_mut().insert(ETAG, tag);
    response
}

/// The `Location` of a task.
pub(crate) fn task_path(queue: &QueueName, key: &Key) -> HeaderValue {
    path(queue, "/tasks/", key.as_str())
}

/// The `Location` of a schedule.
pub(crate) fn schedule_path(queue: &QueueName, name: &ScheduleName) -> HeaderValue {
    path(queue, "/schedules/", name.as_str())
}

fn path(queue: &QueueName, folder: &str, name: &str) -> HeaderValue {
    let mut path = String::with_capacity(128);
    path.push_str("/v1/queues/");
    encode(&mut path, queue.as_str());
    path.push_str(folder);
    encode(&mut path, name);
    HeaderValue::try_from(path).expect("percent-encoded text is ASCII without controls")
}

/// Percent-encodes all characters except those that never need it (RFC 3986 section 2.3), and `:`, which is frequent
/// in keys and allowed in a path segment.
fn encode(out: &mut String, name: &str) {
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(byte as char);
        } else {
            write!(out, "%{byte:02X}").expect("a string takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_leads_back_to_its_task() {
        let queue = QueueName::new("shop/close").expect("a name");
        let key = Key::new("ü/% ?#:1").expect("a key");
        assert_eq!(task_path(&queue, &key), "/v1/queues/shop%2Fclose/tasks/%C3%BC%2F%25%20%3F%23:1");
    }
}
