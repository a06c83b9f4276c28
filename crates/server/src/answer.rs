//! Answers that are no problems.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use tickwheel_api::etag;
use tickwheel_queue::{Key, QueueName, ScheduleName, Seq};

/// 64 KiB of a long body are sent at a time.
const PIECE_BYTES: usize = 64 << 10;

/// An answer with a body of JSON.
pub(crate) fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("our own types have string keys and no failing parts");
    json_bytes(status, bytes)
}

/// An answer whose JSON is written already.
pub(crate) fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(body(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body of these bytes. A long one is sent piece by piece, and others have their turn between two; its length is in its head.
pub(crate) fn body(bytes: Vec<u8>) -> Body {
    match bytes.len() {
        ..=PIECE_BYTES => Body::from(bytes),
        _ => Body::new(Long { left: bytes.into(), yielded: true }),
    }
}

/// A long body under way.
struct Long {
    left: Bytes,
    /// Others had their turn since the last piece.
    yielded: bool,
}

impl HttpBody for Long {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.yielded = !self.yielded;
        if self.yielded && !self.left.is_empty() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = self.left.len().min(PIECE_BYTES);
        let piece = self.left.split_to(length);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

/// An answer about one task, with its version as the `ETag`.
pub(crate) fn versioned<T: Serialize>(status: StatusCode, version: Seq, body: &T) -> Response {
    let mut response = json(status, body);
    let tag = HeaderValue::from_str(&etag(version.0)).expect("digits and quotes are a header value");
    response.headers_mut().insert(ETAG, tag);
    response
}

/// Where a task is, as a `Location`.
pub(crate) fn task_path(queue: &QueueName, key: &Key) -> HeaderValue {
    let path = format!("/v1/queues/{}/tasks/{}", encoded(queue.as_str()), encoded(key.as_str()));
    HeaderValue::from_str(&path).expect("percent-encoded text is ASCII without controls")
}

/// Where a schedule is, as a `Location`.
pub(crate) fn schedule_path(queue: &QueueName, name: &ScheduleName) -> HeaderValue {
    let path = format!("/v1/queues/{}/schedules/{}", encoded(queue.as_str()), encoded(name.as_str()));
    HeaderValue::from_str(&path).expect("percent-encoded text is ASCII without controls")
}

/// Percent-encodes all but the characters that stand for themselves everywhere (RFC 3986 section 2.3) and the `:` that
/// keys like to have and a path segment allows.
fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(byte as char);
        } else {
            write!(out, "%{byte:02X}").expect("a string takes all");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::aside::tests::turns;
    use crate::body::next_piece;

    #[tokio::test]
    async fn a_long_body_is_sent_in_pieces_and_others_have_their_turn_between_them() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10 * PIECE_BYTES + 1).collect();
        let mut body = body(bytes.clone());
        assert_eq!(body.size_hint().exact(), Some(bytes.len() as u64));
        let (turns, mut sent) = (turns(), Vec::new());
        while let Some(piece) = next_piece(&mut body).await.expect("it does not fail") {
            assert!(piece.len() <= PIECE_BYTES);
            sent.extend_from_slice(&piece);
        }
        assert!(sent == bytes, "{} bytes came", sent.len());
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 10, "{turns} turns");
    }

    #[test]
    fn a_location_leads_back_to_its_task() {
        let queue = QueueName::new("shop/close").expect("a name");
        let key = Key::new("ü/% ?#:1").expect("a key");
        assert_eq!(task_path(&queue, &key), "/v1/queues/shop%2Fclose/tasks/%C3%BC%2F%25%20%3F%23:1");
    }
}
