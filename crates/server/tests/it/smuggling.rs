//! How hyper alone, without the connection framer before it, reads requests that proxies read in different ways.
//!
//! These tests are the reason for `doors/http/wire/head.rs` and `chunks.rs`. Each case that hyper takes, and that some
//! proxy reads differently, must be refused there. If hyper refuses a case in a later version, its rule can be removed
//! from there.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, to_bytes};
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const POST: &str = "POST /first HTTP/1.1\r\nHost: a\r\n";
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

/// The paths and bodies of the requests that hyper passes to a service, and the statuses of its answers.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    requests: Vec<(String, String)>,
    statuses: Vec<u16>,
}

fn read_by_hyper(bytes: &str) -> Read {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&requests);
    let answer = move |request: Request<Incoming>| {
        let noted = Arc::clone(&noted);
        async move {
            let path = request.uri().path().to_owned();
            let body = to_bytes(Body::new(request.into_body()), 1 << 20).await?;
            let body = String::from_utf8_lossy(&body).into_owned();
            noted.lock().unwrap_or_else(PoisonError::into_inner).push((path, body));
            Ok::<_, axum::Error>(Response::new(Body::empty()))
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answers = runtime.block_on(async {
        let (mut client, server) = duplex(1 << 20);
        client.write_all(bytes.as_bytes()).await.expect("it fits");
        client.shutdown().await.expect("open");
        let mut builder = http1::Builder::new();
        // An error ends the connection, and the answers show it.
        let _ended =
            builder.half_close(true).serve_connection(TokioIo::new(server), service_fn(answer)).await;
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.expect("text");
        answers
    });
    let status = |line: &str| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok();
    let statuses = answers.lines().filter_map(status).collect();
    let requests = std::mem::take(&mut *requests.lock().unwrap_or_else(PoisonError::into_inner));
    Read { requests, statuses }
}

fn paths(read: &Read) -> Vec<&str> {
    read.requests.iter().map(|(path, _)| path.as_str()).collect()
}

/// A proxy that takes a bare LF for a part of a value sees one request here. hyper sees two and answers the second,
/// which the proxy never checked.
#[test]
fn hyper_alone_lets_a_request_through_that_hides_behind_a_bare_lf() {
    let value = format!("GET /first HTTP/1.1\r\nX: y\n\n{HIDDEN}");
    assert_eq!(paths(&read_by_hyper(&value)), ["/first", "/hidden"]);
    // The proxy sees a body here, which hyper takes for a request.
    let length = HIDDEN.len();
    let body = format!("{POST}X: y\n\nContent-Length: {length}\r\n\r\n{HIDDEN}");
    assert_eq!(read_by_hyper(&body).requests[0], ("/first".to_owned(), String::new()));
    // The proxy sees two requests here, and hyper takes the second one for the body of the first.
    let swallowed = format!("{POST}X: y\nContent-Length: {length}\r\n\r\n{HIDDEN}");
    assert_eq!(read_by_hyper(&swallowed).requests, [("/first".to_owned(), HIDDEN.to_owned())]);
    let chunked = format!("{POST}X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}");
    assert_eq!(paths(&read_by_hyper(&chunked)), ["/first", "/hidden"]);
}

/// A proxy that takes a bare LF for a line end sees the end of the body here. hyper looks for the end in the next
/// request. So that request is lost; it may come from another client of the proxy.
#[test]
fn hyper_alone_takes_the_next_request_for_trailers_behind_a_bare_lf() {
    let next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    let body = format!("{POST}Transfer-Encoding: chunked\r\n\r\n0\r\n\n{next}{HIDDEN}");
    assert_eq!(paths(&read_by_hyper(&body)), ["/first", "/hidden"]);
}

/// With two lengths, hyper takes the chunks and closes the connection, as RFC 9112 section 6.3 demands. No request is
/// smuggled, but one that a proxy read in another way would be carried out. So the framer refuses it.
#[test]
fn hyper_alone_answers_a_request_with_two_lengths_and_closes() {
    for lengths in [
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let read = read_by_hyper(&format!("{POST}{lengths}\r\n0\r\n\r\n{HIDDEN}"));
        assert_eq!(read.requests, [("/first".to_owned(), String::new())], "{lengths}");
        assert_eq!(read.statuses, [200], "{lengths}");
    }
}

#[test]
fn hyper_alone_takes_these_forms() {
    for fields in [
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "Transfer-Encoding: identity, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Host: b\r\nContent-Length: 2\r\n\r\n{}",
        "Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n000000002\r\n{}\r\n0\r\n\r\n",
    ] {
        let read = read_by_hyper(&format!("{POST}{fields}{HIDDEN}"));
        assert_eq!(read.requests[0], ("/first".to_owned(), "{}".to_owned()), "{fields:?}");
        assert_eq!(read.requests.len(), 2, "{fields:?}");
    }
    let none = read_by_hyper("GET /first HTTP/1.1\r\n\r\n");
    assert_eq!(paths(&none), ["/first"], "no Host");
}

/// hyper refuses these cases, so the framer leaves them to hyper, or to the parser of header lines that both use.
#[test]
fn hyper_alone_refuses_these_forms() {
    for fields in [
        "X : y\r\n\r\n",
        "X: a\r\n folded\r\n\r\n",
        "X: a\rb\r\n\r\n",
        "X: a\0b\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "Content-Length: 2, 2\r\n\r\n{}",
        "Content-Length: +2\r\n\r\n{}",
        "Content-Length: 0x2\r\n\r\n{}",
        "Content-Length:\r\n\r\n{}",
        "Transfer-Encoding: gzip\r\n\r\n",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ] {
        let read = read_by_hyper(&format!("{POST}{fields}{HIDDEN}"));
        assert_eq!(read, Read { requests: Vec::new(), statuses: vec![400] }, "{fields:?}");
    }
    let old = "POST /first HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(read_by_hyper(old).requests, [], "chunks in HTTP/1.0");
    for chunks in [
        "\r\n",
        "2\n{}\r\n0\r\n\r\n",
        "2;a\n{}\r\n0\r\n\r\n",
        "2;a\rb\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}!!0\r\n\r\n",
        "2\r\n{}\n0\r\n\r\n",
        "2\r\n{}0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "2 2\r\n{}\r\n0\r\n\r\n",
        "10000000000000002\r\n{}\r\n0\r\n\r\n",
        "0\r\nX\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\n: y\r\n\r\n",
        "0\r\nX: y\r\n z\r\n\r\n",
        "0\r\nX: y\0\r\n\r\n",
        "0\r\nX: y\rz\r\n\r\n",
    ] {
        let read = read_by_hyper(&format!("{POST}Transfer-Encoding: chunked\r\n\r\n{chunks}{HIDDEN}"));
        assert_eq!(read.requests, [], "{chunks:?}");
    }
}
