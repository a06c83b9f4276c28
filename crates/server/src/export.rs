//! `GET /v1/export`: all that a token may know of, as lines.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hyper::body::Frame;
use tickwheel_api::{BATCH_CONTENT_TYPE, ExportQuery, Problem};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::app::{App, Shared};
use crate::events;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::rows::CutShort;
use crate::tokens::Grant;
use crate::transfer::Exporter;

/// Exports under way at one time: each reads the store as fast as its client takes it.
pub(crate) const EXPORTS_MAX: usize = 4;
/// Pages that are written ahead of the client.
const PAGES_AHEAD: usize = 1;

/// `GET`: NDJSON, page by page as the client takes it. Where it cannot go on the connection breaks off: only an export with its last line is whole.
pub(crate) async fn export(
    app: Shared,
    Extension(grant): Extension<Grant>,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    let query = ExportQuery::parse(&query)?;
    let mut exporter = Exporter::within(app.queue.clone(), &query, grant)?;
    let place = Arc::clone(&app.exports).try_acquire_owned();
    let place = place.map_err(|_| Refusal::from(too_many()))?;
    // What is wrong from the beginning is told by the status.
    let first = exporter.next().await?.unwrap_or_default();
    let (pieces, body) = mpsc::channel(PAGES_AHEAD);
    tokio::spawn(write(Arc::clone(&app), exporter, pieces, place));
    let mut response = Response::new(Body::new(Streamed { first: Some(first.into()), body, ended: false }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(BATCH_CONTENT_TYPE));
    Ok(response)
}

fn too_many() -> Problem {
    Problem::busy(format!("{EXPORTS_MAX} exports are under way, as many as may be"), 5)
        .with_hint("try again when one of them is over")
}

/// What goes from the exporter to the answer.
type Piece = Option<Bytes>;

async fn write(
    app: Arc<App>,
    mut exporter: Exporter,
    pieces: mpsc::Sender<Piece>,
    place: OwnedSemaphorePermit,
) {
    let _place = place;
    loop {
        let next = tokio::select! {
            next = exporter.next() => next,
            () = pieces.closed() => return,
            () = app.stopping.wait() => return,
        };
        let piece = match next {
            Ok(Some(piece)) if piece.is_empty() => continue,
            Ok(piece) => piece.map(Bytes::from),
            Err(problem) => {
                tracing::warn!(event = events::EXPORT_FAILED, problem = %problem.detail, "an export cannot go on");
                return;
            }
        };
        let is_last = piece.is_none();
        tokio::select! {
            sent = pieces.send(piece) => if sent.is_err() || is_last {
                return;
            },
            () = app.stopping.wait() => return,
        }
    }
}

/// The answer's body.
struct Streamed {
    first: Option<Bytes>,
    body: mpsc::Receiver<Piece>,
    ended: bool,
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        self.body.poll_recv(cx).map(|piece| match piece {
            Some(Some(piece)) => Some(Ok(Frame::data(piece))),
            Some(None) => {
                self.ended = true;
                None
            }
            None => {
                self.ended = true;
                Some(Err(CutShort))
            }
        })
    }
}
