//! What a call leaves unread of its request's body.
//!
//! A call that is refused early leaves its body where it is. Many clients send head and body apart, so the body comes after
//! the answer. The connection can serve another request only when the body is out of the way. So a small rest is read and
//! dropped before the answer leaves. Where that is not possible, the answer says `Connection: close` and the client knows
//! that its next call needs another connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::timeout;

/// 64 KiB: a larger body costs more than the new connection that the client needs without it.
const REST_BYTES_MAX: usize = 64 << 10;
/// 100 ms: a client that sends its body right behind its head needs less, and the answer waits for no longer.
const REST_TIME_MAX: Duration = Duration::from_millis(100);

/// The place where a handler's body comes back to when the handler is done with it.
#[derive(Clone, Default)]
pub(super) struct Rest(Arc<Mutex<Option<Left>>>);

/// What stands in the way of the next request.
enum Left {
    Unread(Unread),
    /// The body broke off, or its chunks are malformed: its end cannot be found.
    Broken,
}

/// A body that was not read to its end.
struct Unread {
    body: Incoming,
    /// The client waits for `100 Continue`, which it gets when the body is first read.
    waits: bool,
}

/// A request's body as a handler gets it.
pub(super) struct Lent {
    unread: Option<Unread>,
    rest: Rest,
}

impl Rest {
    /// Lends out the body of a request with these headers.
    pub(super) fn lend(&self, body: Incoming, headers: &HeaderMap) -> Lent {
        Lent { unread: Some(Unread { body, waits: headers.contains_key(EXPECT) }), rest: self.clone() }
    }

    fn take(&self) -> Option<Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn leave(&self, left: Left) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// Reads away what came back, or has the answer say that the connection ends with it.
    pub(super) async fn settle(&self, answer: &mut Response) {
        let is_gone = match self.take() {
            None => true,
            Some(Left::Unread(unread)) => unread.read_away().await,
            Some(Left::Broken) => false,
        };
        if !is_gone {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }

    /// Leaves unread what came back.
    pub(super) fn abandon(&self) {
        drop(self.take());
    }

    /// Reads away what came back while the answer was written: `None` if nothing did.
    pub(super) fn read_away(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let Left::Unread(unread) = self.take()? else { return None };
        Some(Box::pin(async move {
            // The head of the answer is out, so a larger rest just ends the connection behind it.
            let _read = unread.read_away().await;
        }))
    }
}

impl Unread {
    /// Whether the body is out of the way, after bounded bytes and time.
    async fn read_away(self) -> bool {
        let Self { mut body, waits } = self;
        // Whether a client that waits for `100 Continue` still sends its body after another answer is its own choice.
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
            self.rest.leave(Left::Broken);
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
            self.rest.leave(Left::Unread(unread));
        }
    }
}
