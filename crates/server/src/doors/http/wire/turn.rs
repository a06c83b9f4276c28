//! The call under way on a connection.
//!
//! Ground rules: one connection is one tokio task, and only that task uses the fields. The lock is needed because the
//! task moves between threads.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::rest::Left;

/// The call under way on a connection. The handler notes here what the connection must know.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Whether the call is useful only while the client is there.
    watched: bool,
    /// The part of the request's body that the handler did not read.
    left: Option<Left>,
    /// Whether the answer has ended. A body that comes back later is dropped, which tells hyper to close the
    /// connection.
    is_over: bool,
}

impl Turn {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the end of the client's stream also ends the call.
    pub(super) fn is_watched(&self) -> bool {
        self.lock().watched
    }

    /// Watches the client until the result is dropped: the call under way ends when the client ends its stream. A
    /// call that is not watched is finished and answered, because a client may end its stream and still read.
    pub(crate) fn watch(&self) -> Watch {
        self.lock().watched = true;
        Watch(self.clone())
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        self.lock().is_over = false;
    }

    /// Notes the part of the request's body that a handler did not read.
    pub(super) fn leave(&self, left: Left) {
        let mut state = self.lock();
        if !state.is_over {
            state.left = Some(left);
        }
    }

    /// Takes the part of the request's body that the handler did not read; `None`: it read all of it.
    pub(super) fn take_left(&self) -> Option<Left> {
        self.lock().left.take()
    }

    /// The answer ends. The handler has not read this part of the request's body.
    fn end(&self) -> Option<Left> {
        let mut state = self.lock();
        state.is_over = true;
        state.left.take()
    }
}

/// Watches the client until the result is dropped.
pub(crate) struct Watch(Turn);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.lock().watched = false;
    }
}

/// The body of an answer.
///
/// The handler of a batch reads the request while it writes the answer. The part of the request's body that the handler
/// did not read is read and dropped before the answer ends.
pub(crate) struct AnswerBody {
    body: Body,
    /// The future that reads and drops the rest.
    ending: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
    turn: Turn,
}

impl AnswerBody {
    pub(super) fn new(body: Body, turn: Turn) -> Self {
        Self { body, ending: None, turn }
    }
}

impl Drop for AnswerBody {
    /// hyper drops an answer of a known length without asking for its end. The turn is over then, too.
    fn drop(&mut self) {
        drop(self.turn.end());
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let answer = &mut *self;
        loop {
            if let Some(ending) = &mut answer.ending {
                // The head of the answer is sent, so after a larger rest the connection just ends.
                let _read = ready!(ending.as_mut().poll(cx));
                answer.ending = None;
                return Poll::Ready(None);
            }
            let frame = ready!(Pin::new(&mut answer.body).poll_frame(cx));
            let left = if frame.is_none() { answer.turn.end() } else { None };
            let Some(left) = left else { return Poll::Ready(frame) };
            answer.ending = Some(Box::pin(left.read_away()));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
