//! Connections that are kept between calls, and servers that close them.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tickwheel_api::{ExportQuery, LeaseBody, PutBody};
use tickwheel_client::{Client, ClientError, Outcome, Retries, blocking};

use crate::peer::Peer;

const STORED: &str = r#"{"queue":"q","key":"k","id":1,"version":1,"state":"ready","due_at":"2030-01-01T00:00:00.000Z","tags":[],"priority":1024,"attempt":0}"#;
const NO_QUEUES: &str = r#"{"queues":[]}"#;
/// One more try, at once.
const TWICE: Retries = Retries { calls: 2, base: Duration::ZERO, max: Duration::ZERO };

/// A call that is repeated if its answer is lost, and one that is not repeated.
async fn looks(client: &Client) -> Result<(), ClientError> {
    client.queues().await.map(drop)
}

async fn posts(client: &Client) -> Result<(), ClientError> {
    client.post("q", &PutBody::default()).await.map(drop)
}

#[tokio::test]
async fn a_call_after_the_server_has_closed_goes_by_another_connection_once() {
    let peer = Peer::new().await;
    let client = peer.client();
    let server = async {
        let mut seen = Vec::new();
        for body in [NO_QUEUES, NO_QUEUES, STORED] {
            let mut line = peer.accept().await;
            seen.push(line.request().await.expect("a request"));
            line.answer(body).await;
        }
        seen
    };
    let calls = async {
        looks(&client).await.expect("the first");
        looks(&client).await.expect("by another connection, without retries");
        posts(&client).await.expect("by a third, though it is never repeated");
    };
    let (seen, ()) = tokio::join!(server, calls);
    let methods: Vec<&str> = seen.iter().map(|head| &head[..4]).collect();
    assert_eq!(methods, ["get ", "get ", "post"]);
}

/// Answers the first call of a connection, reads the second call as a whole, and closes the connection without an answer to it. Then
/// accepts `more` connections and answers one call of each. Returns the heads of all requests.
async fn close_unanswered(peer: &Peer, more: usize) -> Vec<String> {
    let mut line = peer.accept().await;
    let mut seen = vec![line.request().await.expect("the first")];
    line.answer(NO_QUEUES).await;
    seen.push(line.request().await.expect("the second, by the same connection"));
    drop(line);
    for _ in 0..more {
        let mut line = peer.accept().await;
        seen.push(line.request().await.expect("a repeated one"));
        line.answer(NO_QUEUES).await;
    }
    seen
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_is_repeated_only_where_that_is_safe_and_allowed() {
    let peer = Peer::new().await;
    let client = peer.client().with_retries(TWICE);
    let calls = async {
        looks(&client).await.expect("the first");
        looks(&client).await.expect("the second time");
    };
    let (seen, ()) = tokio::join!(close_unanswered(&peer, 1), calls);
    assert_eq!(seen.len(), 3);

    for (client, repeatable) in [(peer.client(), true), (peer.client().with_retries(TWICE), false)] {
        let calls = async {
            looks(&client).await.expect("the first");
            let lost = if repeatable { looks(&client).await } else { posts(&client).await };
            lost.expect_err("it is not known")
        };
        let (seen, error) = tokio::join!(close_unanswered(&peer, 0), calls);
        assert_eq!(seen.len(), 2);
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        let advice = if repeatable { ", and may be sent again" } else { "; look before you send it again" };
        let told = format!(
            "the answer of {} did not arrive: the connection was closed; the call may have taken effect or not{advice}",
            peer.address()
        );
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn the_blocking_face_notices_that_a_kept_connection_was_closed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let (answered, is_answered) = channel();
    let (closed, is_closed) = channel();
    let server = thread::spawn(move || {
        for body in [NO_QUEUES, STORED] {
            let mut reader = std::io::BufReader::new(listener.accept().expect("a connection").0);
            crate::script::read_request(&mut reader).expect("a request");
            let answer = crate::script::answer(200, body);
            std::io::Write::write_all(reader.get_mut(), &answer).expect("write");
            // No code of the client runs while the connection is closed.
            is_answered.recv().expect("the test goes on");
            drop(reader);
            closed.send(()).expect("the test waits");
        }
    });
    let client = blocking::Client::new(&url).expect("a URL");
    client.queues().expect("the first");
    answered.send(()).expect("the server waits");
    is_closed.recv().expect("the server closes");
    client.post("q", &PutBody::default()).expect("by another connection, without retries");
    answered.send(()).expect("the server waits");
    server.join().expect("no panic");
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection() {
    let peer = Peer::new().await;
    let client = peer.client();
    let body = LeaseBody { wait_ms: 60_000, ..LeaseBody::default() };
    let server = async {
        let mut line = peer.accept().await;
        line.request().await.expect("a lease");
        line
    };
    let mut line = tokio::select! {
        line = server => line,
        answer = client.lease("q", &body) => panic!("{answer:?}"),
    };
    assert_eq!(line.request().await, None, "the connection is closed");
}

#[tokio::test]
async fn an_export_is_read_as_it_comes_and_its_connection_is_kept() {
    let peer = Peer::new().await;
    let client = peer.client();
    let mut line = None;
    let server = async {
        let mut taken = peer.accept().await;
        taken.request().await.expect("an export");
        taken.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\na\n\r\n").await;
        line = Some(taken);
    };
    let query = ExportQuery { queue: None, cursor: None };
    let ((), export) = tokio::join!(server, client.export(&query));
    let (mut line, mut export) = (line.expect("a connection"), export.expect("it begins"));
    assert_eq!(export.next().await.expect("the first line"), Some(b"a\n".to_vec()));
    line.say("2\r\nb\n\r\n0\r\n\r\n").await;
    assert_eq!(export.next().await.expect("the second line"), Some(b"b\n".to_vec()));
    assert_eq!(export.next().await.expect("the end"), None);
    assert_eq!(export.next().await.expect("the end"), None);
    let server = async {
        line.request().await.expect("by the same connection");
        line.answer(NO_QUEUES).await;
    };
    let ((), queues) = tokio::join!(server, client.queues());
    assert_eq!(queues.expect("queues"), []);
}

/// Answers calls on any number of connections. A lease is answered only after another call has come.
fn serve_side_by_side(listener: std::net::TcpListener, other_came: Receiver<()>) {
    let other_came = std::sync::Arc::new(std::sync::Mutex::new(other_came));
    for stream in listener.incoming().flatten() {
        let other_came = std::sync::Arc::clone(&other_came);
        thread::spawn(move || {
            let mut reader = std::io::BufReader::new(stream);
            while let Some(seen) = crate::script::read_request(&mut reader) {
                let body = if seen.line.contains("/lease") {
                    other_came.lock().expect("no panic").recv().expect("the test goes on");
                    r#"{"tasks":[]}"#
                } else {
                    NO_QUEUES
                };
                let answer = crate::script::answer(200, body);
                std::io::Write::write_all(reader.get_mut(), &answer).expect("write");
            }
        });
    }
}

#[test]
fn one_blocking_client_serves_many_threads_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let (come, other_came) = channel();
    thread::spawn(move || serve_side_by_side(listener, other_came));
    let client = blocking::Client::new(&url).expect("a URL");
    thread::scope(|scope| {
        // The lease uses the runtime while it waits, and the other calls must not wait for it.
        let lease = scope.spawn(|| client.lease("q", &LeaseBody::default()));
        let others: Vec<_> =
            (0..8).map(|_| scope.spawn(|| (0..50).try_for_each(|_| client.queues().map(drop)))).collect();
        for other in others {
            other.join().expect("no panic").expect("all are answered");
        }
        assert!(!lease.is_finished(), "it still waits");
        come.send(()).expect("the server waits");
        assert_eq!(lease.join().expect("no panic").expect("it ends"), []);
    });
}

#[tokio::test]
async fn the_blocking_face_works_inside_of_a_runtime_and_ends_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let server = crate::script::serve(listener, vec![crate::script::answer(200, NO_QUEUES)]);
    let client = blocking::Client::new(&url).expect("a URL");
    assert_eq!(client.queues().expect("queues"), []);
    drop(client);
    server.join().expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_runtime_with_several_threads_share_a_client() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let client = Client::new(&format!("http://{}", listener.local_addr().expect("bound"))).expect("a URL");
    let (_come, other_came) = channel();
    thread::spawn(move || serve_side_by_side(listener, other_came));
    let calls = |client: Client| async move {
        for _ in 0..50 {
            client.queues().await?;
        }
        Ok::<(), ClientError>(())
    };
    let tasks: Vec<_> = (0..8).map(|_| tokio::spawn(calls(client.clone()))).collect();
    for task in tasks {
        task.await.expect("no panic").expect("all are answered");
    }
}
