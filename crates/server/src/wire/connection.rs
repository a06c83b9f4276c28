//! From an accepted socket to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tickwheel_api::{PROBLEM_CONTENT_TYPE, Problem};
use tokio::io::{AsyncRead, AsyncWrite};

use super::gate::{self, Gate, Timeouts};
use super::turn::{AnswerBody, Turn};
use crate::front::Front;
use crate::problem;
use crate::stopping::Stopping;

/// Serves the requests of one connection until the client leaves, breaks a rule, idles, or the server stops.
///
/// When the server stops, a call under way is answered and the connection then closed.
pub(crate) async fn serve<S>(socket: S, front: Arc<Front>, timeouts: Timeouts, stopping: Stopping)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let turn = Turn::default();
    let gate = Gate::new(socket, turn.clone(), timeouts);
    let service = service_fn(move |request: Request<Incoming>| {
        let (front, turn) = (Arc::clone(&front), turn.clone());
        Box::pin(async move {
            let answer = front.answer(request.map(Body::new)).await;
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, turn)))
        }) as Pin<Box<dyn Future<Output = _> + Send>>
    });
    // The gate keeps the time for heads; hyper would answer a late one without a body.
    let mut connection = http1::Builder::new().header_read_timeout(None).serve_connection(gate, service);
    let mut stop = pin!(stopping.wait());
    let mut told = false;
    let ended = poll_fn(|cx| {
        if !told && stop.as_mut().poll(cx).is_ready() {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    })
    .await;
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
    connection.into_parts().io.part(|fault| bare_answer(&problem::fault(fault))).await;
}

/// Answers a connection that is not served at all.
pub(crate) async fn refuse<S>(mut socket: S, problem: Problem, timeouts: Timeouts)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    gate::refuse(&mut socket, &bare_answer(&problem), timeouts).await;
}

/// A whole HTTP answer, for a request that never became one.
fn bare_answer(problem: &Problem) -> Vec<u8> {
    let body = problem.to_json();
    let reason = StatusCode::from_u16(problem.status).ok().and_then(|status| status.canonical_reason());
    let retry = problem.retry_after_s.map(|s| format!("retry-after: {s}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {PROBLEM_CONTENT_TYPE}\r\ncontent-length: {}\r\n{retry}connection: close\r\n\r\n",
        problem.status,
        reason.unwrap_or("Error"),
        body.len(),
    );
    [head.into_bytes(), body].concat()
}
