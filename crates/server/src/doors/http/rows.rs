//! The results of a batch or an import as the body of its answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// The largest number of results in one piece of the answer.
const ROWS_PER_PIECE: usize = 256;

/// A message from the async task that runs the lines to the body of the answer.
pub(crate) enum Row {
    /// A result with its line end.
    Result(Vec<u8>),
    /// The end. Without it, an answer that was cut off would look whole.
    End,
}

/// The body of the answer.
pub(crate) struct Rows {
    answer: mpsc::UnboundedReceiver<Row>,
    ended: bool,
}

/// The error when the results end unexpectedly. The connection is cut, so that the client sees that lines are
/// missing.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut short")]
pub(crate) struct CutShort;

impl Rows {
    pub(crate) fn new(answer: mpsc::UnboundedReceiver<Row>) -> Self {
        Self { answer, ended: false }
    }
}

impl HttpBody for Rows {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut rows = Vec::new();
        if ready!(self.answer.poll_recv_many(cx, &mut rows, ROWS_PER_PIECE)) == 0 {
            self.ended = true;
            return Poll::Ready(Some(Err(CutShort)));
        }
        let mut piece = Vec::new();
        for row in rows {
            match row {
                Row::Result(line) => piece.extend_from_slice(&line),
                Row::End => self.ended = true,
            }
        }
        if piece.is_empty() { Poll::Ready(None) } else { Poll::Ready(Some(Ok(Frame::data(piece.into())))) }
    }
}
