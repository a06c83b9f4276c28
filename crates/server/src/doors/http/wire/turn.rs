//! Whose turn it is on a connection: the client sends a request, or the server answers.
//!
//! Ground rules: one connection is one tokio task, so all fields are written by that task only. The lock is needed
//! because the task moves between threads. The fields are written under the lock, and the waker is called outside of
//! it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use hyper::body::{Frame, SizeHint};

use super::rest::Left;

/// The turn of a connection. The framer begins it with each head that it passes on, and the answer's body ends it.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    answering: bool,
    /// Whether the call is useful only while the client is there.
    watched: bool,
    /// The part of the request's body that the handler did not read.
    left: Option<Left>,
    waker: Option<Waker>,
}

impl Turn {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request was passed on.
    pub(crate) fn begin(&self) {
        self.lock().answering = true;
    }

    /// Whether the answer is still being written; if so, `cx` is woken at its end.
    pub(crate) fn is_answering(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.answering && !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        state.answering
    }

    /// Whether the call ends, too, when its client ends its stream.
    pub(crate) fn is_watched(&self) -> bool {
        self.lock().watched
    }

    /// Watches the client until the result is dropped: the call under way ends when the client ends its stream. A
    /// call that is not watched is finished and answered, because a client may end its stream and still read.
    pub(crate) fn watch(&self) -> Watch {
        self.change(|state| state.watched = true);
        Watch(self.clone())
    }

    /// Notes what a handler left of the request's body.
    pub(super) fn leave(&self, left: Left) {
        self.lock().left = Some(left);
    }

    /// Takes what the handler left of the request's body; `None`: it read all of it.
    pub(super) fn take_left(&self) -> Option<Left> {
        self.lock().left.take()
    }

    fn end(&self) {
        self.change(|state| state.answering = false);
    }

    /// Changes the state and wakes the framer.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Handlers get the turn of their connection; a request without a connection has a turn of its own.
impl<S: Sync> FromRequestParts<S> for Turn {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Watches the client until it is dropped.
pub(crate) struct Watch(Turn);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.lock().watched = false;
    }
}

/// The body of an answer. It ends the turn when it is dropped, fully written or not.
///
/// A batch is read while its answer is written. The unread rest of its body is read and dropped before the answer
/// ends.
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
    fn drop(&mut self) {
        self.turn.end();
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
            let left = if frame.is_none() { answer.turn.take_left() } else { None };
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
