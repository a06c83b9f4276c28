//! Whose turn it is on a connection: the client's to ask, or ours to answer.
//!
//! Ground rules: one connection is one tokio task, so the two fields are written by that task only; the lock is there
//! because the task moves between threads. Both are written under it, and the waker is called outside.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Shared by the gate, which begins a turn with each head it lets through, and the answer's body, which ends it.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    answering: bool,
    waker: Option<Waker>,
}

impl Turn {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request went in.
    pub(crate) fn begin(&self) {
        self.lock().answering = true;
    }

    /// Whether its answer is still under way; if so, `cx` is woken at its end.
    pub(crate) fn is_answering(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.answering {
            state.waker = Some(cx.waker().clone());
        }
        state.answering
    }

    fn end(&self) {
        let waker = {
            let mut state = self.lock();
            state.answering = false;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An answer's body that ends its turn when it is dropped, written out or not.
pub(crate) struct AnswerBody {
    body: Body,
    turn: Turn,
}

impl AnswerBody {
    pub(crate) fn new(body: Body, turn: Turn) -> Self {
        Self { body, turn }
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
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
