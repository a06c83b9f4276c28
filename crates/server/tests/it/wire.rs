//! Bytes that are not a proper request.

use tickwheel_server::{Config, Tokens};

use crate::served::{Served, virtual_memory};

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
const PUT: &str = "PUT /v1/queues/q/tasks/a HTTP/1.1\r\nHost: localhost\r\n";

/// Sends bytes, and returns the status and problem slug of the only answer. The connection must be closed after it.
fn refused(served: &Served, bytes: &[u8]) -> (u16, String) {
    let mut connection = served.connect();
    connection.send(bytes);
    let reply = connection.reply();
    let context = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    let kind = reply.json()["type"].as_str().expect("a problem").to_owned();
    let slug = kind.strip_prefix("/problems/").expect("a problem").to_owned();
    reply.assert_problem(reply.status, &slug, &context);
    assert_eq!(reply.header("connection"), Some("close"), "{context}");
    assert!(connection.is_closed(), "{context}");
    (reply.status, slug)
}

#[test]
fn malformed_heads_are_answered_and_the_connection_is_closed() {
    let served = Served::memory();
    let heads = [
        "\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /healthz\r\n\r\n".to_owned(),
        "GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\nHost: localhost\n\n".to_owned(),
        "GET /h\u{fc} HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03\r\n".to_owned(),
        format!("{GET}Host: localhost\r\n\r\n"),
        format!("{GET}X: a\r\n folded\r\n\r\n"),
        format!("{GET}X : a\r\n\r\n"),
        format!("{GET}X\r\n\r\n"),
        format!("{GET}X: a\0b\r\n\r\n"),
        format!("{PUT}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"),
        format!("{PUT}Content-Length: 2, 2\r\n\r\n{{}}"),
        format!("{PUT}Content-Length: two\r\n\r\n{{}}"),
        format!("{PUT}Content-Length: -2\r\n\r\n{{}}"),
        format!("{PUT}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{PUT}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n"),
        format!("{PUT}Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
        format!("{PUT}Transfer-Encoding: gzip\r\n\r\n"),
    ];
    for head in heads {
        assert_eq!(refused(&served, head.as_bytes()), (400, "bad-request".to_owned()), "{head:?}");
    }
    assert_eq!(served.counts("q"), [0, 0, 0]);
}

#[test]
fn heads_beyond_the_limits_have_their_own_statuses() {
    let served = Served::memory();
    let target = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(8 << 10));
    assert_eq!(refused(&served, target.as_bytes()), (414, "uri-too-long".to_owned()));
    assert_eq!(
        refused(&served, "a".repeat(9 << 10).as_bytes()),
        (414, "uri-too-long".to_owned()),
        "without an end"
    );
    let wide = format!("{GET}X: {}\r\n\r\n", "y".repeat(16 << 10));
    assert_eq!(refused(&served, wide.as_bytes()), (431, "headers-too-large".to_owned()));
    let many = format!("{GET}{}\r\n", "X: y\r\n".repeat(100));
    assert_eq!(refused(&served, many.as_bytes()), (431, "headers-too-large".to_owned()));
    let endless = format!("{GET}X: {}", "y".repeat(1 << 20));
    assert_eq!(
        refused(&served, endless.as_bytes()),
        (431, "headers-too-large".to_owned()),
        "it is not read to its end"
    );
    let just = format!("{GET}{}\r\n", "X: y\r\n".repeat(99));
    let mut connection = served.connect();
    connection.send(just.as_bytes());
    assert_eq!(connection.reply().status, 200);
}

#[test]
fn malformed_chunks_are_a_bad_request() {
    let served = Served::memory();
    for chunks in [
        "zz\r\n",
        "2\n{}\r\n0\r\n\r\n",
        "2;a=b\n{}\r\n0\r\n\r\n",
        "2 \r\n{}\r\n0\r\n\r\n",
        "2\r\n{}x",
        "2\r\n{}\r\n0\r\nX: y\n\r\n",
        "2\r\n{}\r\n0\r\nX : y\r\n\r\n",
        "2\r\n{}\r\n0\r\nX: y\r\n z\r\n\r\n",
        "-2\r\n{}\r\n",
        "fffffffff\r\n",
    ] {
        let bytes = format!("{PUT}Transfer-Encoding: chunked\r\n\r\n{chunks}");
        let mut connection = served.connect();
        connection.send(bytes.as_bytes());
        connection.reply().assert_problem(400, "bad-request", chunks);
        assert!(connection.is_closed(), "{chunks:?}: what follows cannot be told apart");
    }
    for (bytes, what) in
        [("Content-Length: 20\r\n\r\n{}", "length"), ("Transfer-Encoding: chunked\r\n\r\n2\r\n{", "chunk")]
    {
        let mut connection = served.connect();
        connection.send(format!("{PUT}{bytes}").as_bytes());
        connection.finish();
        connection.reply().assert_problem(400, "bad-request", what);
    }
    assert_eq!(served.counts("q"), [0, 0, 0]);
    let mut connection = served.connect();
    connection
        .send(format!("{PUT}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n1\r\n}}\r\n0\r\n\r\n").as_bytes());
    assert_eq!(connection.reply().status, 201);
}

#[test]
fn extensions_and_trailers_are_skipped_and_frame_nothing() {
    let served = Served::memory();
    let mut connection = served.connect();
    let chunks = "1;a;b=\"c\"\r\n{\r\n1 ; d\r\n}\r\n0;e\r\nContent-Length: 40\r\nTransfer-Encoding: x\r\nHost: evil.example\r\n\r\n";
    let put = format!("{PUT}Trailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
    connection.send(format!("{put}{put}{GET}\r\n").as_bytes());
    assert_eq!([(); 3].map(|()| connection.reply().status), [201, 200, 200]);
    // The connection framer and the parser behind it have their own limits, and both end the connection.
    for long in ["x".repeat(9 << 10), "x".repeat(17 << 10)] {
        for chunks in
            [format!("2;{long}\r\n{{}}\r\n0\r\n\r\n"), format!("2\r\n{{}}\r\n0\r\nX: {long}\r\n\r\n")]
        {
            let mut connection = served.connect();
            connection.send(format!("{PUT}Transfer-Encoding: chunked\r\n\r\n{chunks}{GET}\r\n").as_bytes());
            connection.reply().assert_problem(400, "bad-request", "too long");
            assert!(connection.is_closed());
        }
    }
}

#[test]
fn requests_may_follow_one_another_without_waiting() {
    let served = Served::memory();
    let mut connection = served.connect();
    let chunked = format!("{PUT}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
    let sized = format!("{PUT}Content-Length: 2\r\n\r\n{{}}");
    let missing = "GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n";
    connection.send(format!("{chunked}{sized}{missing}\r\n{GET}\r\n").as_bytes());
    let statuses = [(); 4].map(|()| connection.reply().status);
    assert_eq!(statuses, [201, 200, 404, 200]);
}

#[test]
fn a_bad_request_behind_a_good_one_is_refused_after_its_answer() {
    let served = Served::memory();
    let mut connection = served.connect();
    connection.send(format!("{PUT}Content-Length: 2\r\n\r\n{{}}GARBAGE\r\n\r\n").as_bytes());
    assert_eq!(connection.reply().status, 201, "the first call was good");
    connection.reply().assert_problem(400, "bad-request", "the second");
    assert!(connection.is_closed());
}

#[test]
fn a_client_that_sends_no_more_still_gets_its_answers() {
    let served = Served::memory();
    let mut connection = served.connect();
    connection.send(
        format!("{PUT}Content-Length: 2\r\n\r\n{{}}{GET}\r\n{PUT}Content-Length: 0\r\n\r\n").as_bytes(),
    );
    connection.finish();
    assert_eq!([(); 3].map(|()| connection.reply().status), [201, 200, 200]);
    assert!(connection.is_closed());

    let mut connection = served.connect();
    let body = format!("{{\"payload\":\"{}\"}}", "x".repeat(1_000_000));
    connection.request("PUT", "/v1/queues/q/tasks/large", &[], body.as_bytes());
    assert_eq!(connection.reply().status, 201);
    connection.request("GET", "/v1/queues/q/tasks/large", &[], b"");
    connection.finish();
    assert!(connection.reply().body.len() > 1_000_000, "more than a socket takes at once");
}

#[test]
fn old_clients_are_served_and_then_disconnected() {
    let served = Served::memory();
    let mut connection = served.connect();
    connection.send(b"GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(connection.reply().status, 200);
    assert!(connection.is_closed());
}

#[test]
fn a_client_may_wait_for_100_continue() {
    let served = Served::memory();
    let mut connection = served.connect();
    connection.send(format!("{PUT}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n").as_bytes());
    assert_eq!(connection.head().status, 100);
    connection.send(b"{}");
    assert_eq!(connection.reply().status, 201);
    connection.send(format!("{PUT}Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n").as_bytes());
    connection.reply().assert_problem(413, "body-too-large", "before a byte of it is sent");
}

/// After each refusal that did not read the body, the next call on the connection works, or the answer has said
/// that it will not.
#[test]
fn after_each_early_answer_the_connection_works_or_is_said_to_end() {
    let tokens = "all\nreader rights=read\nslow rate=1/m\nscoped scope=a/";
    let tokens = Tokens::parse(tokens).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let task = "/v1/queues/q/tasks/a";
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let calls = [
        (401, "PUT", task, String::new()),
        (401, "PUT", task, bearer("unknown")),
        (403, "PUT", task, bearer("reader")),
        (404, "PUT", task, bearer("scoped")),
        (404, "PUT", "/nowhere", bearer("all")),
        (405, "POST", task, bearer("all")),
        (415, "PUT", task, format!("{}Content-Type: text/csv\r\n", bearer("all"))),
        (415, "POST", "/v1/queues/q/batch", format!("{}Content-Type: text/csv\r\n", bearer("all"))),
        (403, "PUT", "/v1/queues/$jobs/tasks/a", bearer("all")),
        (403, "PUT", task, format!("{}Origin: http://evil.example\r\n", bearer("all"))),
        (400, "PUT", "/v1/queues/q/tasks/a?x=1", bearer("all")),
        (200, "GET", "/healthz", String::new()),
    ];
    // The first call of this token is accepted, and each further call is above its rate.
    let mut slow = served.connect();
    slow.send(format!("GET {task} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", bearer("slow")).as_bytes());
    assert_eq!(slow.reply().status, 404);
    let calls = calls.into_iter().chain([(429, "PUT", task, bearer("slow"))]);
    let good = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n", bearer("all"));
    for (status, method, target, headers) in calls {
        for (host, body, expects) in [
            ("localhost", &b"{}"[..], false),
            ("evil.example", b"{}", false),
            ("localhost", &[b'x'; 70_000], false),
            ("localhost", b"{}", true),
        ] {
            let expect = if expects { "Expect: 100-continue\r\n" } else { "" };
            let head = format!(
                "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}{expect}Content-Length: {}\r\n\r\n",
                body.len()
            );
            let status = if host == "localhost" { status } else { 421 };
            let mut connection = served.connect();
            connection.send(head.as_bytes());
            if !expects {
                connection.send(body);
            }
            let mut answer = connection.reply();
            let continues = answer.status == 100;
            if continues {
                // A handler read the body before it refused.
                connection.send(body);
                answer = connection.reply();
            }
            assert_eq!(answer.status, status, "{head}{}", answer.text());
            if answer.header("connection") == Some("close") {
                continue;
            }
            assert!(continues || !expects, "{head}");
            connection.send(good.as_bytes());
            assert_eq!(connection.reply().status, 200, "the call after {head}");
        }
    }
}

#[test]
fn nonsense_bytes_never_break_the_server() {
    let served = Served::memory();
    // Words of the protocol in arbitrary order. The test is deterministic, and it reaches more edge cases than
    // random bytes would.
    const WORDS: [&str; 16] = [
        "GET ",
        "PUT ",
        "/v1/queues/q/lease",
        " HTTP/1.1",
        "\r\n",
        "\n",
        "Host: localhost",
        "Content-Length: ",
        "5",
        ":",
        "Transfer-Encoding: chunked",
        "\0",
        "{}",
        "\u{fc}",
        " ",
        "\r",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..(round % 24) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(WORDS[usize::try_from(state % 16).expect("below 16")].as_bytes());
        }
        let mut connection = served.connect();
        connection.send(&bytes);
        connection.finish();
        let statuses = connection.statuses_until_closed();
        let shown = String::from_utf8_lossy(&bytes);
        assert!(statuses.iter().all(|status| *status < 500), "{statuses:?} for {shown:?}");
    }
    served.expect(200, "GET", "/readyz", "");
}
