//! The access log: a line for each call, written when its answer has been sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tickwheel::{Clock, Monotonic, SystemClock};
use tickwheel_queue::QueueName;

use crate::doors::http::audit::Subject;
use crate::events;

/// The line of a call that is being answered. Dropping it writes the line.
struct Line {
    subject: Subject,
    status: u16,
    clock: SystemClock,
    begun: Monotonic,
    bytes: u64,
}

/// Arranges that a line is written when the answer is sent or its receiver is gone.
pub(crate) fn log(answer: Response, subject: Subject, clock: SystemClock, begun: Monotonic) -> Response {
    let line = Line { subject, status: answer.status().as_u16(), clock, begun, bytes: 0 };
    answer.map(|body| Body::new(Counted { body, line }))
}

impl Drop for Line {
    fn drop(&mut self) {
        let took = self.clock.now().saturating_since(self.begun);
        // In milliseconds, with microseconds as fraction.
        let took_ms = took.as_micros() as f64 / 1e3;
        let Self { subject, status, bytes, .. } = self;
        tracing::info!(
            target: events::ACCESS,
            event = events::CALL,
            method = subject.method.as_str(),
            route = subject.route,
            queue = subject.queue().map(QueueName::as_str),
            status,
            took_ms,
            bytes,
            token = subject.token(),
            address = %subject.address(),
        );
    }
}

/// A body that counts its bytes.
struct Counted {
    body: Body,
    line: Line,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.line.bytes += data.len() as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
