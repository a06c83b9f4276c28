//! Serves one connection, from the accepted socket to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tickwheel_api::{PROBLEM_CONTENT_TYPE, Problem};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Fault;
use super::gate::{self, Gate, Timeouts};
use super::rest::Lent;
use super::turn::{AnswerBody, Turn};
use crate::base::stopping::Stopping;
use crate::doors::http::door::HttpDoor;
use crate::doors::http::problem;
use crate::listen::standing::Standing;

/// Serves the requests of one connection until the client leaves, breaks a rule or idles, or the server stops.
///
/// When the server stops, a call under way is answered, and then the connection is closed.
pub(crate) async fn serve<S>(
    socket: S,
    door: Arc<HttpDoor>,
    timeouts: Timeouts,
    stopping: Stopping,
    standing: Arc<Standing>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let turn = Turn::default();
    let gate = Gate::new(socket, timeouts, standing.seat());
    let (client, watched) = (gate.clone(), turn.clone());
    let answering = Arc::clone(&door);
    let service = service_fn(move |request: Request<Incoming>| {
        let (door, turn, standing) = (Arc::clone(&answering), turn.clone(), Arc::clone(&standing));
        async move {
            turn.begin();
            let (head, body) = request.into_parts();
            let body = Body::new(Lent::new(body, &head.headers, turn.clone()));
            let mut answer = door.answer(Request::from_parts(head, body), &standing, turn.clone()).await;
            // A connection with a reserved permit ends with this answer because others wait for the permit.
            let mut stays = !standing.seat().is_reserved();
            if let Some(left) = turn.take_left() {
                stays = stays && left.read_away().await;
            }
            if !stays {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, turn)))
        }
    });
    // The framer limits the time of heads; hyper would answer a late one without a body. Half-close is on, because
    // otherwise hyper would drop the call of a client that ends its stream.
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None).half_close(true);
    let ended = {
        let mut connection = pin!(builder.serve_connection(gate, service));
        let mut stop = pin!(stopping.wait());
        let mut told = false;
        poll_fn(|cx| {
            // The signal can be seen a moment before the tasks that wait for it are woken.
            if !told && (stop.as_mut().poll(cx).is_ready() || stopping.is_given()) {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            let served = connection.as_mut().poll(cx);
            // A lease must not wait for a worker that has left.
            let left = served.is_pending() && watched.is_watched() && client.poll_end(cx).is_ready();
            if left { Poll::Ready(Ok(())) } else { served }
        })
        .await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
    let told = |fault: &Fault| {
        let problem = problem::fault(fault);
        door.refused(&problem);
        bare_answer(&problem)
    };
    client.part(told).await;
}

/// Answers a connection that is not served at all.
pub(crate) async fn refuse<S>(mut socket: S, problem: Problem, timeouts: Timeouts)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    gate::refuse(&mut socket, &bare_answer(&problem), timeouts).await;
}

/// A whole HTTP answer for something that never became a request.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::task::Context;
    use std::time::Duration;

    use axum::response::IntoResponse;
    use tickwheel_api::openapi::OperationId;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::access::host::Hosts;
    use crate::base::stopping::{self, Stop};
    use crate::doors::http::console::Console;
    use crate::doors::http::routes::Routes;
    use crate::doors::http::rows::{Row, Rows};
    use crate::listen::addresses::Addresses;
    use crate::listen::door::Idle;
    use crate::listen::permits::Permits;
    use crate::service::app::App;

    const TIMEOUTS: Timeouts = Timeouts {
        head: Duration::from_secs(5),
        idle: Duration::from_secs(60),
        write: Duration::from_secs(30),
        linger: Duration::from_secs(2),
    };
    const GET: &[u8] = b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// The client's end of a served connection, over pipes that hold this many bytes.
    fn connect(pipe_bytes: usize) -> (DuplexStream, Stop) {
        connect_at(&Permits::new(1, 0), pipe_bytes)
    }

    /// The client's end of a served connection with one of these permits.
    fn connect_at(permits: &Permits, pipe_bytes: usize) -> (DuplexStream, Stop) {
        let (client, server) = duplex(pipe_bytes);
        (client, serve_at(permits, server))
    }

    /// Serves a socket with one of these permits.
    fn serve_at<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(permits: &Permits, server: S) -> Stop {
        let (stop, stopping) = stopping::signal();
        let app = Arc::new(App::of_test(stopping.clone()));
        let routes = Routes::new()
            .with(OperationId::ListQueues, |_| Box::pin(async { Ok("done".into_response()) }))
            .with(OperationId::ListJobs, |_| {
                Box::pin(async {
                    sleep(Duration::from_secs(600)).await;
                    Ok(().into_response())
                })
            })
            .with(OperationId::Metrics, |_| Box::pin(async { Ok(vec![b'x'; 1 << 20].into_response()) }))
            .with(OperationId::Batch, |call| {
                Box::pin(async {
                    let (rows, answer) = tokio::sync::mpsc::unbounded_channel();
                    tokio::spawn(async move {
                        let _sent = (rows.send(Row::Result(b"row".to_vec())), rows.send(Row::End));
                        sleep(Duration::from_secs(1)).await;
                        drop(call.body);
                    });
                    Ok(Body::new(Rows::new(answer)).into_response())
                })
            })
            .with(OperationId::PutQueue, |mut call| {
                Box::pin(async move { Ok(call.json().await?.len().to_string().into_response()) })
            });
        let listen = SocketAddr::from(([127, 0, 0, 1], 8463));
        let hosts = Hosts::of(&listen.into(), false, &[]);
        let door = Arc::new(HttpDoor::new(routes, app, hosts, false, Console::Off));
        let standing = Standing::find(permits, &Addresses::new(1), None, Idle::MakesWay).expect("a place");
        tokio::spawn(serve(server, door, TIMEOUTS, stopping, Arc::new(standing)));
        stop
    }

    /// A socket that takes bytes and does not pass them on, as TLS does while its client reads nothing.
    struct Stuck(DuplexStream);

    impl AsyncRead for Stuck {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_taken_and_not_passed_on_has_a_limit() {
        let (mut client, server) = duplex(1 << 16);
        let _stop = serve_at(&Permits::new(1, 0), Stuck(server));
        client.write_all(GET).await.expect("open");
        let ended = tokio::time::timeout(Duration::from_secs(600), rest(&mut client)).await;
        let (_, seconds) = ended.expect("the connection ends");
        assert!((30..=40).contains(&seconds), "{seconds}");
    }

    /// All bytes until the server closes, and the seconds until then.
    async fn rest(client: &mut DuplexStream) -> (String, u64) {
        let begun = Instant::now();
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).await.expect("a pipe does not fail");
        (String::from_utf8(bytes).expect("UTF-8"), begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_five_seconds_even_if_it_trickles() {
        let (mut client, _stop) = connect(1 << 16);
        let begun = Instant::now();
        for byte in &GET[..20] {
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(600)).await;
        }
        let (answer, _) = rest(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert!(answer.contains("/problems/timeout"), "{answer}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }

    /// The head and the body of a refused call's answer, and no further bytes.
    async fn one_answer(client: &mut DuplexStream) -> String {
        let mut bytes = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() == length.map_or(0, |length| length.parse().expect("a length")) {
                    return text.into_owned();
                }
            }
            let mut byte = [0];
            client.read_exact(&mut byte).await.expect("the answer goes on");
            bytes.push(byte[0]);
        }
    }

    fn refused_head(body_bytes: usize, more: &str) -> Vec<u8> {
        format!("PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: {body_bytes}\r\n{more}\r\n")
            .into_bytes()
    }

    /// A bug that was found: Python's `http.client` sends head and body separately. The server closed the connection
    /// because of the unread body and did not announce it, so the next call failed.
    #[tokio::test(start_paused = true)]
    async fn a_body_after_a_refused_head_is_dropped_and_the_next_call_works() {
        for body_bytes in [1, 1_000, 64 << 10] {
            for wait_ms in [0, 1, 99] {
                let (mut client, _stop) = connect(1 << 20);
                for _ in 0..3 {
                    client.write_all(&refused_head(body_bytes, "")).await.expect("open");
                    sleep(Duration::from_millis(wait_ms)).await;
                    client.write_all(&vec![b'x'; body_bytes]).await.expect("open");
                    let answer = one_answer(&mut client).await;
                    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
                    assert!(
                        !answer.contains("connection: close"),
                        "{body_bytes} B after {wait_ms} ms: {answer}"
                    );
                }
                client.write_all(GET).await.expect("open");
                assert!(one_answer(&mut client).await.ends_with("done"), "{body_bytes} B after {wait_ms} ms");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_leaves_a_body_unread_says_that_the_connection_ends() {
        let larger = (64 << 10) + 1;
        for (head, body, seconds) in [
            (refused_head(2, ""), &b""[..], 0),
            (refused_head(2, ""), b"{", 0),
            (refused_head(larger, ""), b"{}", 0),
            (refused_head(2, "Expect: 100-continue\r\n"), b"", 0),
            (
                b"PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
                b"2\r\n{}\r\n",
                0,
            ),
            (
                b"PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
                b"zz\r\n",
                0,
            ),
            (
                b"PUT /v1/queues/q HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                    .to_vec(),
                b"zz\r\n",
                0,
            ),
            (b"PUT /v1/queues/q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n".to_vec(), b"{", 30),
        ] {
            let (mut client, _stop) = connect(1 << 20);
            let begun = Instant::now();
            client.write_all(&head).await.expect("open");
            client.write_all(body).await.expect("open");
            let answer = one_answer(&mut client).await;
            let shown = String::from_utf8_lossy(&head).into_owned();
            assert!(answer.starts_with("HTTP/1.1 4"), "{shown}{answer}");
            assert!(!answer.contains("100 Continue"), "{shown}{answer}");
            assert!(answer.contains("connection: close\r\n"), "{shown}{answer}");
            assert!(
                begun.elapsed() <= Duration::from_millis(seconds * 1_000 + 100),
                "{shown} {:?}",
                begun.elapsed()
            );
            client.shutdown().await.expect("it leaves");
            assert_eq!(rest(&mut client).await.0, "", "{shown}");
        }
    }

    /// A bug that was found: each refused call held its reserved permit for 100 ms. So a few hundred of them in a
    /// second took the permits from the callers for whom they are reserved.
    #[tokio::test(start_paused = true)]
    async fn with_a_reserved_permit_no_refused_body_is_read() {
        for head in [
            refused_head(2, ""),
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n".to_vec(),
        ] {
            let (mut client, _stop) = connect_at(&Permits::new(0, 1), 1 << 20);
            let begun = Instant::now();
            client.write_all(&head).await.expect("open");
            let answer = one_answer(&mut client).await;
            assert!(answer.contains("connection: close\r\n"), "{answer}");
            assert_eq!(begun.elapsed(), Duration::ZERO, "{answer}");
            assert!(rest(&mut client).await.1 < 1, "and the place is free soon");
        }
    }

    /// A handler may still hold the body when its answer has ended. It must not keep the connection, because no task
    /// would read the body, and no other call could come.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_left_after_the_answer_ends_the_connection() {
        let (mut client, _stop) = connect(1 << 16);
        let head = b"POST /v1/queues/q/batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
        client.write_all(head).await.expect("open");
        let ended = tokio::time::timeout(Duration::from_secs(600), rest(&mut client)).await;
        let (answer, seconds) = ended.expect("the connection ends");
        assert!(answer.contains("row") && answer.ends_with("0\r\n\r\n"), "{answer}");
        assert!(seconds <= 3, "{seconds}");
    }

    /// The head does not tell the length of a chunked body. So the body is read up to the limit of a small rest.
    #[tokio::test(start_paused = true)]
    async fn an_endless_body_is_not_read() {
        let (mut client, _stop) = connect(1 << 20);
        let head = b"PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write_all(head).await.expect("open");
        let begun = Instant::now();
        for _ in 0..9 {
            client.write_all(format!("2000\r\n{}\r\n", "x".repeat(0x2000)).as_bytes()).await.expect("open");
        }
        let answer = one_answer(&mut client).await;
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert_eq!(begun.elapsed(), Duration::ZERO, "it is over before its time");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed_without_an_answer_after_a_minute() {
        let (mut client, _stop) = connect(1 << 16);
        assert_eq!(rest(&mut client).await, (String::new(), 60));

        let (mut client, _stop) = connect(1 << 16);
        sleep(Duration::from_secs(59)).await;
        client.write_all(GET).await.expect("open");
        let (answer, seconds) = rest(&mut client).await;
        assert!(answer.ends_with("done"), "{answer}");
        assert_eq!(seconds, 60, "counted from the answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_thirty_seconds() {
        let (mut client, _stop) = connect(1 << 16);
        let head = b"PUT /v1/queues/q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{";
        client.write_all(head).await.expect("open");
        let begun = Instant::now();
        let (answer, _) = rest(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert_eq!(begun.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_may_take_longer_than_any_limit_on_the_client() {
        let (mut client, _stop) = connect(1 << 16);
        client.write_all(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("open");
        // A second request waits for its turn and is not late because of that.
        client.write_all(GET).await.expect("open");
        let (answers, seconds) = rest(&mut client).await;
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
        assert_eq!(seconds, 660);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected() {
        let (mut client, _stop) = connect(1 << 10);
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("open");
        sleep(Duration::from_secs(40)).await;
        let (part, _) = rest(&mut client).await;
        assert!(part.len() < 1 << 20, "the rest was never sent");

        let (mut client, _stop) = connect(1 << 10);
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("open");
        let mut taken = [0; 1 << 13];
        for _ in 0..10 {
            sleep(Duration::from_secs(20)).await;
            client.read_exact(&mut taken).await.expect("slow, and still there");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_closes_idle_connections_at_once_and_others_after_their_answer() {
        let (mut idle, stop) = connect(1 << 16);
        tokio::task::yield_now().await;
        stop.give();
        assert_eq!(rest(&mut idle).await, (String::new(), 0));

        let (mut busy, stop) = connect(1 << 16);
        busy.write_all(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("open");
        sleep(Duration::from_secs(1)).await;
        stop.give();
        let (answer, seconds) = rest(&mut busy).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert_eq!(seconds, 599);
    }
}
