//! `GET /v1/events`: server-sent events (WHATWG HTML, section 9.2).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderValue;
use axum::response::Response;
use hyper::body::Frame;
use tickwheel_api::{EVENTS_CONTENT_TYPE, EventsQuery, Problem};
use tickwheel_queue::QueueName;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::access::refusal::Refusal;
use crate::access::tokens::Grant;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::doors::http::wire::Watch;
use crate::service::app::App;
use crate::service::subscriptions::{Event, Rows, Subscription, Subscriptions};
use crate::translate;

handlers! {
    Events => events,
}

/// The first line of a stream: a client whose stream was cut connects again after 2 s.
const RETRY: &[u8] = b"retry: 2000\n\n";
/// The time without events after which a comment shows that the stream is alive.
const SILENCE_MAX: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b":\n\n";
/// The interval at which the rights of the token are looked at again.
const RIGHTS_AGAIN: Duration = Duration::from_secs(1);

/// `GET`: the state of the caller's queues and jobs, and its changes until the client leaves.
async fn events(call: Call) -> Result<Response, Refusal> {
    let caller = &call.caller;
    let EventsQuery { topics, queue, prefix } = EventsQuery::parse(call.query())?;
    let rows = match queue {
        Some(queue) => {
            let queue = QueueName::new(&queue).map_err(|error| translate::name_refused(&error))?;
            if !caller.covers(&queue) {
                return Err(Problem::out_of_scope(queue.as_str()).into());
            }
            Rows::Of(queue)
        }
        None => Rows::Beginning(prefix),
    };
    let app = Arc::clone(call.app());
    let subscription = Subscriptions::subscribe(&app, caller.grant(), topics, rows)?;
    let (pieces, body) = mpsc::channel(1);
    tokio::spawn(write(app, caller.grant().clone(), subscription, pieces));
    // The end of the client ends the stream, so that its place is free again.
    let stream = Stream { body, _watch: call.turn.watch() };
    let mut response = answer::of(Body::new(stream), EVENTS_CONTENT_TYPE);
    // A proxy that collects an answer before it sends it on would never send this one.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Writes events until the client leaves, its token loses its rights, or the server stops. A client that has not taken
/// the last events gets the newest ones when it has.
async fn write(app: Arc<App>, grant: Grant, mut subscription: Subscription, pieces: mpsc::Sender<Bytes>) {
    let mut next = Some(Bytes::from_static(RETRY));
    let mut spoken = Instant::now();
    let mut again = interval(RIGHTS_AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = app.background.stopping().wait() => return,
            () = pieces.closed() => return,
            _ = again.tick() => {
                if !app.admission.authorizer().still_grants(&grant) {
                    return;
                }
                if next.is_none() && spoken.elapsed() >= SILENCE_MAX {
                    next = Some(Bytes::from_static(COMMENT));
                }
            }
            room = pieces.reserve(), if next.is_some() => {
                let (Ok(room), Some(piece)) = (room, next.take()) else { return };
                room.send(piece);
                spoken = Instant::now();
            }
            events = subscription.changed(), if next.is_none() => {
                let Some(events) = events else { return };
                next = Some(framed(&events)).filter(|piece| !piece.is_empty());
            }
        }
    }
}

/// The events as the text of a stream.
fn framed(events: &[Event]) -> Bytes {
    let mut text = Vec::with_capacity(events.iter().map(|event| event.data.len() + 64).sum());
    for Event { topic, number, data } in events {
        text.extend_from_slice(format!("event: {}\nid: {number}\ndata: ", topic.name()).as_bytes());
        // JSON on one line: a line end in a text is escaped.
        text.extend_from_slice(data);
        text.extend_from_slice(b"\n\n");
    }
    text.into()
}

/// The body of the answer.
struct Stream {
    body: mpsc::Receiver<Bytes>,
    _watch: Watch,
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.body.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::access::tokens::Tokens;
    use crate::base::stopping;
    use crate::doors::http::body::next_piece;
    use crate::doors::http::call::tests::answered;

    async fn stream(app: &Arc<App>, grant: Grant, topics: &str) -> Body {
        let request = Request::get(format!("/v1/events?topics={topics}")).body(Body::empty());
        let answer = answered(app, grant, request.expect("a request")).await;
        assert_eq!(answer.status(), 200);
        answer.into_body()
    }

    async fn text(body: &mut Body) -> Option<String> {
        let piece = next_piece(body).await.expect("it is not cut");
        piece.map(|piece| String::from_utf8(piece.to_vec()).expect("UTF-8"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_news_has_a_comment_each_fifteen_seconds() {
        let app = Arc::new(App::in_memory());
        let mut body = stream(&app, Grant::everything(), "jobs").await;
        assert_eq!(text(&mut body).await.as_deref(), Some("retry: 2000\n\n"));
        // The thread of the queue is not on the clock of the test, so there may be comments before its answer.
        let mut first = text(&mut body).await;
        while first.as_deref() == Some(":\n\n") {
            first = text(&mut body).await;
        }
        assert_eq!(first.as_deref(), Some("event: jobs\nid: 1\ndata: {\"jobs\":[]}\n\n"));
        let begun = Instant::now();
        assert_eq!(text(&mut body).await.as_deref(), Some(":\n\n"));
        assert!((15..=16).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }

    /// The server of this test has no tokens, as if the token had left its file.
    #[tokio::test(start_paused = true)]
    async fn a_token_without_its_rights_has_no_stream() {
        let app = Arc::new(App::in_memory());
        let tokens = Tokens::parse("reader rights=read").expect("tokens");
        let begun = Instant::now();
        let mut body = stream(&app, tokens.grant(b"reader").expect("it is known"), "stats").await;
        while text(&mut body).await.is_some() {}
        assert!(begun.elapsed() <= 2 * RIGHTS_AGAIN, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_a_stream_although_its_client_does_not_read() {
        let (stop, stopping) = stopping::signal();
        let app = Arc::new(App::of_test(stopping));
        let mut body = stream(&app, Grant::everything(), "stats").await;
        stop.give();
        while text(&mut body).await.is_some() {}
    }
}
