//! `GET /v1/export`: everything that a token may see, as lines.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::Frame;
use tickwheel_api::{BATCH_CONTENT_TYPE, ExportQuery};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::doors::http::rows::CutShort;
use crate::events;
use crate::service::app::App;
use crate::service::permits::slots::ExportPermit;
use crate::transfer::Exporter;

handlers! {
    Export => export,
}

/// The time after which a client that takes no page loses its permit to another export. A page has at most 4 MiB.
const STANDS_STILL: Duration = Duration::from_secs(60);
/// The number of pages that are written ahead of the client.
const PAGES_AHEAD: usize = 1;

/// `GET`: NDJSON, page by page as the client reads it. If the export cannot go on, the connection is cut. Only an
/// export with its last line is whole.
async fn export(call: Call) -> Result<Response, Refusal> {
    let caller = &call.caller;
    let (app, grant) = (caller.app(), caller.grant());
    let (producer, is_admin) = (caller.producer(), grant.is_unscoped() && grant.allows(Right::Admin));
    let query = ExportQuery::parse(call.query())?;
    let mut exporter = caller.exporter(&query)?;
    let permit = app.admission.slots().exports.enter(producer, is_admin).await?;
    // A mistake that is known at the beginning is answered with its status.
    let first = exporter.next().await?.unwrap_or_default();
    let (pieces, body) = mpsc::channel(PAGES_AHEAD);
    tokio::spawn(write(Arc::clone(app), exporter, pieces, permit));
    let streamed = Streamed { first: Some(first.into()), body, ended: false };
    Ok(answer::of(Body::new(streamed), BATCH_CONTENT_TYPE))
}

/// A message from the exporter to the answer: bytes, or the end.
type Piece = Option<Bytes>;

async fn write(app: Arc<App>, mut exporter: Exporter, pieces: mpsc::Sender<Piece>, permit: ExportPermit) {
    loop {
        let next = tokio::select! {
            next = exporter.next() => next,
            () = pieces.closed() => return,
            () = permit.leaves() => return made_way(),
            () = app.background.stopping().wait() => return,
        };
        let piece = match next {
            Ok(Some(piece)) if piece.is_empty() => continue,
            Ok(piece) => piece.map(Bytes::from),
            Err(problem) => {
                tracing::warn!(event = events::EXPORT_FAILED, problem = %problem.detail, "the export stopped before its end");
                return;
            }
        };
        let is_last = piece.is_none();
        let room = tokio::select! {
            room = taken(&pieces, &permit) => room,
            () = permit.leaves() => return made_way(),
            () = app.background.stopping().wait() => return,
        };
        let Ok(room) = room else { return };
        room.send(piece);
        if is_last {
            return;
        }
    }
}

/// Waits until the client has taken the page that was written ahead. A client that stops reading keeps its permit
/// only while no other export needs it.
async fn taken<'a>(
    pieces: &'a mpsc::Sender<Piece>,
    permit: &ExportPermit,
) -> Result<mpsc::Permit<'a, Piece>, mpsc::error::SendError<()>> {
    let room = match timeout(STANDS_STILL, pieces.reserve()).await {
        Ok(room) => room,
        Err(_) => {
            permit.stands_still(true);
            pieces.reserve().await
        }
    };
    permit.stands_still(false);
    room
}

fn made_way() {
    tracing::warn!(
        event = events::EXPORT_FAILED,
        problem = "its client had not read on for a while, and it made way for another export",
        "the export stopped before its end"
    );
}

/// The body of the answer.
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
