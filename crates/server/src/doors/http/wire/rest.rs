//! The part of a request's body that its call did not read.
//!
//! A call that is refused early does not read its body. Many clients send head and body separately, so the body comes
//! after the answer. The connection can serve another request only when the body is read. So a small rest is read and
//! dropped before the answer is sent. If that is not possible, the answer says `Connection: close`, and the client
//! knows that its next call needs another connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::EXPECT;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::turn::Turn;

/// The largest rest that is read (bytes). A larger one costs more than a new connection.
const REST_BYTES_MAX: usize = 64 << 10;
/// The longest time for the rest. A client that sends its body right after the head needs less, and the answer must
/// not wait longer.
const REST_TIME_MAX: Duration = Duration::from_millis(100);

/// The reason why the connection cannot serve another request.
pub(super) enum Left {
    Unread(Unread),
    /// The body broke off, or its chunks are malformed, so its end cannot be found.
    Broken,
}

/// A body that was not read to its end.
pub(super) struct Unread {
    body: Incoming,
    /// Whether the client waits for `100 Continue`, which it gets when the body is first read.
    waits: bool,
}

/// The body of a request as a handler gets it. The part that the handler does not read goes back to the turn.
pub(super) struct Lent {
    unread: Option<Unread>,
    turn: Turn,
}

impl Lent {
    /// Lends the body of a request with these headers.
    pub(super) fn new(body: Incoming, headers: &HeaderMap, turn: Turn) -> Self {
        Self { unread: Some(Unread { body, waits: headers.contains_key(EXPECT) }), turn }
    }
}

impl Left {
    /// Reads and drops the body, within limits of bytes and time. Returns whether all of it is read.
    pub(super) async fn read_away(self) -> bool {
        let Self::Unread(Unread { mut body, waits }) = self else { return false };
        // A client that waits for `100 Continue` and gets another answer may or may not send its body.
        if waits || body.size_hint().lower() > REST_BYTES_MAX as u64 {
            return false;
        }
        let read = async {
            let mut left = REST_BYTES_MAX;
            while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                let Ok(frame) = frame else { return false };
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                let Some(rest) = left.checked_sub(bytes) else { return false };
                left = rest;
            }
            true
        };
        timeout(REST_TIME_MAX, read).await.unwrap_or(false)
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(unread) = &mut self.unread else { return Poll::Ready(None) };
        unread.waits = false;
        let frame = ready!(Pin::new(&mut unread.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.unread = None;
        }
        if matches!(frame, Some(Err(_))) {
            self.turn.leave(Left::Broken);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.unread.as_ref().is_none_or(|unread| unread.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.unread.as_ref().map_or_else(|| SizeHint::with_exact(0), |unread| unread.body.size_hint())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(unread) = self.unread.take().filter(|unread| !unread.body.is_end_stream()) {
            self.turn.leave(Left::Unread(unread));
        }
    }
}
