//! Servers that send nothing, half an answer, too much, or something else. The clock is paused, so that no test has
//! to wait.

use std::time::Duration;

use tickwheel_api::{LeaseBody, Problem, PutBody};
use tickwheel_client::{Client, ClientError, Outcome, Retries};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::peer::Peer;
use crate::script::problem;

/// The error of a call to a server that reads the request and sends these bytes, and the time until the error by the
/// client's clock.
async fn ask(said: &str) -> (ClientError, Duration) {
    let peer = Peer::new().await;
    let client = peer.client();
    let server = async {
        let mut line = peer.accept().await;
        line.request().await.expect("a request");
        line.say(said).await;
        // The server keeps the connection open, and waits for a request that never comes.
        line.request().await
    };
    let begun = Instant::now();
    let post = async { client.post("q", &PutBody::default()).await.expect_err("no whole answer") };
    let error = tokio::select! {
        error = post => error,
        next = server => panic!("the client has sent {next:?} or left, and the call does not end"),
    };
    (error, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_in_the_middle_is_waited_for_30_s() {
    for said in [
        "",
        "HTTP/1.1 200 OK\r\nconte",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let (error, took) = ask(said).await;
        assert!(matches!(error, ClientError::NoAnswer { .. }), "{said:?}: {error:?}");
        assert!(error.to_string().contains("it was not there within 30 s"), "{error}");
        assert!((30..31).contains(&took.as_secs()), "{said:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_waited_for_by_its_wait_and_30_s() {
    let peer = Peer::new().await;
    let client = peer.client();
    let begun = Instant::now();
    let body = LeaseBody { wait_ms: 20_000, ..LeaseBody::default() };
    let server = async {
        let mut line = peer.accept().await;
        line.request().await.expect("a lease");
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        answer = client.lease("q", &body) => answer.expect_err("no answer"),
        () = server => unreachable!("it waits for ever"),
    };
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert!((50..51).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_of_a_server_is_told_at_once() {
    let endless_head = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(200));
    let long_head = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(1 << 20));
    for (said, what) in [
        ("\0\u{1}\u{2} garbage\r\n\r\n", "invalid HTTP version parsed"),
        ("220 mail.example ready\r\n", "invalid HTTP version parsed"),
        ("HTTP/1.1 abc\r\n\r\n", "invalid HTTP status-code parsed"),
        ("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "invalid content-length parsed"),
        (&endless_head, "message head is too large"),
        (&long_head, "message head is too large"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
            "Invalid chunk size line: missing size digit",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3000000000\r\n\r\n{", "its body has more than 2147483648 bytes"),
    ] {
        let (error, took) = ask(said).await;
        let told = format!("the answer is not one of a tickwheel server: {what}");
        assert_eq!((error.to_string(), error.outcome()), (told, Outcome::Unknown));
        assert!(took < Duration::from_secs(5), "{said:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_come_about_is_given_up_after_5_s() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    // The backlog takes one or two connections, and the server accepts none of them.
    let listener = socket.listen(0).expect("it listens");
    let address = listener.local_addr().expect("bound");
    let mut waiting = Vec::new();
    while let Ok(connected) = timeout(Duration::from_secs(1), TcpStream::connect(address)).await {
        waiting.push(connected.expect("the backlog takes it"));
        assert!(waiting.len() < 10, "a backlog of 0 is never full");
    }
    let begun = Instant::now();
    let client = Client::new(&format!("http://{address}")).expect("a URL");
    let error = client.queues().await.expect_err("no connection");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert_eq!(error.outcome(), Outcome::NotSent);
    assert!(error.to_string().contains("there was no connection within 5 s"), "{error}");
    assert!((5..6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_handshake_without_an_answer_is_given_up_after_5_s() {
    let peer = Peer::new().await;
    let client = Client::new(&format!("https://{}", peer.address())).expect("a URL");
    let silent = async {
        let _line = peer.accept().await;
        std::future::pending::<()>().await;
    };
    let post = async { client.post("q", &PutBody::default()).await.expect_err("no handshake") };
    let error = tokio::select! {
        error = post => error,
        () = silent => unreachable!("it waits for ever"),
    };
    assert_eq!(error.outcome(), Outcome::NotSent, "{error}");
    assert!(error.to_string().contains("there was no connection within 5 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_for_the_time_that_it_asks_for() {
    let peer = Peer::new().await;
    let client = peer.client().with_retries(Retries { calls: 2, ..Retries::default() });
    let begun = Instant::now();
    let server = async {
        let mut line = peer.accept().await;
        line.request().await.expect("the first");
        line.say(&String::from_utf8(problem(&Problem::busy("too much", 7))).expect("UTF-8")).await;
        line.request().await.expect("the second, by the same connection");
        line.answer(r#"{"queues":[]}"#).await;
        begun.elapsed()
    };
    let (waited, queues) = tokio::join!(server, client.queues());
    assert_eq!(queues.expect("the second time"), []);
    assert!((7..8).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test]
async fn a_call_that_http_cannot_carry_is_not_sent() {
    let client = Client::new("http://127.0.0.1:1").expect("a URL");
    let long = "k".repeat(70_000);
    for error in [
        client.get("q", &long).await.expect_err("a path of 70,000 bytes"),
        client.post_once("q", "a\nb", &PutBody::default()).await.expect_err("a line end in a header"),
        client.clone().with_token("a\nb").queues().await.expect_err("a line end in the token"),
    ] {
        assert!(matches!(error, ClientError::Unsendable { .. }), "{error:?}");
        assert_eq!(error.outcome(), Outcome::NotSent);
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}
