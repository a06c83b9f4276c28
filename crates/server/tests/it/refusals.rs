//! Bad input for every endpoint is answered by a problem, and never by a 5xx. The problem says the mistake, its
//! position and the correct form.

use crate::served::Served;

const TASK: &str = "/v1/queues/q/tasks/a";
const TASKS: &str = "/v1/queues/q/tasks";

/// Method, target, body, and the member, parameter or words that the refusal must name.
const BAD_REQUESTS: &[(&str, &str, &str, &str)] = &[
    ("PUT", TASK, "{", "JSON"),
    ("PUT", TASK, "[]", "object"),
    ("PUT", TASK, "null", "object"),
    ("PUT", TASK, "\u{feff}{}", "byte order mark"),
    ("PUT", TASK, "{} {}", "JSON"),
    ("PUT", TASK, r#"{"dealy":"1s"}"#, "\"dealy\""),
    ("PUT", TASK, r#"{"delay":"1s","delay":"2s"}"#, "\"delay\""),
    ("PUT", TASK, r#"{"delay":"1s","at_ms":5}"#, "\"at_ms\""),
    ("PUT", TASK, r#"{"delay":30}"#, "\"delay\""),
    ("PUT", TASK, r#"{"delay":"30"}"#, "\"delay\""),
    ("PUT", TASK, r#"{"delay":"-1s"}"#, "\"delay\""),
    ("PUT", TASK, r#"{"delay":"99999999999999999999h"}"#, "\"delay\""),
    ("PUT", TASK, r#"{"at":"yesterday"}"#, "\"at\""),
    ("PUT", TASK, r#"{"at":"2017-02-30T00:00:00Z"}"#, "\"at\""),
    ("PUT", TASK, r#"{"at_ms":-1}"#, "\"at_ms\""),
    ("PUT", TASK, r#"{"at_ms":1.5}"#, "\"at_ms\""),
    ("PUT", TASK, r#"{"at_ms":9007199254740993}"#, "\"at_ms\""),
    ("PUT", TASK, r#"{"at_ms":1e400}"#, "\"at_ms\""),
    ("PUT", TASK, r#"{"payload":NaN}"#, "JSON"),
    ("PUT", TASK, r#"{"payload":1,"payload_base64":"AA=="}"#, "\"payload_base64\""),
    ("PUT", TASK, r#"{"payload_base64":"*"}"#, "\"payload_base64\""),
    ("PUT", TASK, r#"{"content_type":"image/png"}"#, "\"content_type\""),
    ("PUT", TASK, r#"{"timeline":[]}"#, "0 instants"),
    ("PUT", TASK, r#"{"timeline":[{"at_ms":2},{"at_ms":1}]}"#, "\"timeline[1]\""),
    ("PUT", TASK, r#"{"tags":"x"}"#, "\"tags\""),
    ("PUT", TASK, r#"{"tags":["x","x"]}"#, "\"tags[1]\""),
    ("PUT", TASK, r#"{"priority":4294967296}"#, "\"priority\""),
    ("PUT", TASK, r#"{"group":""}"#, "\"group\""),
    ("PUT", TASK, r#"{"level":0}"#, "\"level\""),
    ("PUT", TASK, r#"{"level":19}"#, "1 to 18"),
    ("PUT", TASK, r#"{"level":1,"delay":"1s"}"#, "\"delay\""),
    ("PATCH", TASK, r#"{"level":19}"#, "1 to 18"),
    ("PUT", "/v1/queues/q/tasks/a?mode=insert", "{}", "\"mode\""),
    ("PUT", "/v1/queues/q/tasks/a?mode=create&mode=create", "{}", "\"mode\""),
    ("PUT", "/v1/queues/q/tasks/a?mod=create", "{}", "\"mod\""),
    ("PUT", "/v1/queues/q/tasks/a?revoke=yes", "{}", "\"revoke\""),
    ("PUT", "/v1/queues/q/tasks/a?mode=%zz", "{}", "\"mode\""),
    ("GET", "/v1/queues/q/tasks/a?x", "", "\"x\""),
    ("PATCH", TASK, "{}", "changes nothing"),
    ("PATCH", TASK, r#"{"mode":"create"}"#, "\"mode\""),
    ("PATCH", "/v1/queues/q/tasks/a?mode=create", r#"{"delay":"1s"}"#, "\"mode\""),
    ("DELETE", "/v1/queues/q/tasks/a?revoke", "", "\"revoke\""),
    ("DELETE", "/v1/queues/q/tasks/a?force=true", "", "\"force\""),
    ("POST", "/v1/queues/q/tasks?mode=create", "{}", "\"mode\""),
    ("POST", TASKS, r#"{"key":"a"}"#, "\"key\""),
    ("GET", "/v1/queues/q/tasks?state=done", "", "\"state\""),
    ("GET", "/v1/queues/q/tasks?limit=0", "", "\"limit\""),
    ("GET", "/v1/queues/q/tasks?limit=1001", "", "\"limit\""),
    ("GET", "/v1/queues/q/tasks?limit=-1", "", "\"limit\""),
    ("GET", "/v1/queues/q/tasks?limit=", "", "\"limit\""),
    ("GET", "/v1/queues/q/tasks?cursor=", "", "\"cursor\""),
    ("GET", "/v1/queues?state=ready", "", "\"state\""),
    ("GET", "/v1/queues/q?x=1", "", "\"x\""),
    ("POST", "/v1/queues/q/lease", r#"{"max":0}"#, "\"max\""),
    ("POST", "/v1/queues/q/lease", r#"{"max":1001}"#, "\"max\""),
    ("POST", "/v1/queues/q/lease", r#"{"max":"1"}"#, "\"max\""),
    ("POST", "/v1/queues/q/lease", r#"{"lease":"999ms"}"#, "\"lease\""),
    ("POST", "/v1/queues/q/lease", r#"{"lease":"13h"}"#, "\"lease\""),
    ("POST", "/v1/queues/q/lease", r#"{"wait":"61s"}"#, "\"wait\""),
    ("POST", "/v1/queues/q/lease?wait=1s", "", "\"wait\""),
    ("POST", "/v1/queues/q/ack", "", "\"tokens\""),
    ("POST", "/v1/queues/q/ack", r#"{"tokens":[]}"#, "\"tokens\""),
    ("POST", "/v1/queues/q/ack", r#"{"tokens":"x"}"#, "\"tokens\""),
    ("POST", "/v1/queues/q/ack", r#"{"tokens":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",1]}"#, "\"tokens[1]\""),
    ("POST", "/v1/queues/q/ack", r#"{"tokens":["a b"]}"#, "\"tokens[0]\""),
    (
        "POST",
        "/v1/queues/q/ack",
        r#"{"tokens":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],"delay":"1s"}"#,
        "\"delay\"",
    ),
    (
        "POST",
        "/v1/queues/q/nack",
        r#"{"tokens":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],"delay":"soon"}"#,
        "\"delay\"",
    ),
    (
        "POST",
        "/v1/queues/q/extend",
        r#"{"tokens":["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],"lease":"0s"}"#,
        "\"lease\"",
    ),
    ("POST", "/v1/clock/advance", "", "\"by\""),
    ("POST", "/v1/clock/advance", r#"{"by":"-1s"}"#, "\"by\""),
    ("POST", "/v1/clock/advance", r#"{"by":"101y"}"#, "\"by\""),
    ("POST", "/v1/clock/advance?by=1s", r#"{"by":"1s"}"#, "\"by\""),
    ("GET", "/metrics?x=1", "", "\"x\""),
];

#[test]
fn bad_requests_are_refused_with_the_position() {
    let served = Served::memory();
    for (method, target, body, place) in BAD_REQUESTS {
        let context = format!("{method} {target} {body}");
        let reply = served.call(method, target, body);
        reply.assert_problem(400, "bad-request", &context);
        assert!(reply.text().contains(place), "{context}: {place} is not in {}", reply.text());
    }
    assert_eq!(served.counts("q"), [0, 0, 0], "a refused call leaves no trace");
}

#[test]
fn deep_and_large_bodies_are_refused() {
    let served = Served::memory();
    let nested = |depth: usize| format!(r#"{{"payload":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    served.call("PUT", TASK, &nested(64)).assert_problem(400, "bad-request", "65 levels");
    served.call("PUT", TASK, &nested(100_000)).assert_problem(400, "bad-request", "100,001 levels");
    served.expect(201, "PUT", TASK, &nested(63));

    let filled = |bytes: usize| {
        let frame = r#"{"payload":""}"#.len();
        format!(r#"{{"payload":"{}"}}"#, "x".repeat(bytes - frame))
    };
    served.expect(200, "PUT", TASK, &filled(1 << 20));
    served.call("PUT", TASK, &filled((1 << 20) + 1)).assert_problem(413, "body-too-large", "by its length");
    for target in [TASKS, "/v1/queues/q/lease", "/v1/queues/q/ack", "/v1/clock/advance"] {
        served.call("POST", target, &filled(2 << 20)).assert_problem(413, "body-too-large", target);
    }
    let mut connection = served.connect();
    let head = format!("PUT {TASK} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", served.addr);
    connection.send(head.as_bytes());
    let body = filled((1 << 20) + 1);
    connection.send(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes());
    connection.reply().assert_problem(413, "body-too-large", "in chunks");
}

/// A chunk whose size is malformed is refused with a status, and nothing of the body is applied. A batch begins its answer before its body has
/// ended, so it tells such a chunk in a line of the answer.
#[test]
fn a_malformed_chunk_size_is_a_bad_request() {
    let served = Served::memory();
    for (method, target) in [("PUT", TASK), ("POST", TASKS)] {
        for broken in ["zz\r\n", "-2\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n", "\r\n{}\r\n0\r\n\r\n"] {
            let mut connection = served.connect();
            let head = format!(
                "{method} {target} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
                served.addr
            );
            connection.send(format!("{head}{broken}").as_bytes());
            let reply = connection.reply();
            reply.assert_problem(400, "bad-request", &format!("{method} {target} {broken:?}"));
            assert_eq!(served.counts("q"), [0, 0, 0], "{method} {target} {broken:?}");
        }
    }
}

#[test]
fn a_client_that_keeps_sending_can_read_the_refusal() {
    let served = Served::memory();
    let mut connection = served.connect();
    let head = format!("PUT {TASK} HTTP/1.1\r\nHost: {}\r\nContent-Length: 20000000\r\n\r\n", served.addr);
    connection.send(head.as_bytes());
    for _ in 0..20 {
        assert!(connection.try_send(&[b' '; 1_000_000]), "many clients stop at an error and never read");
    }
    connection.reply().assert_problem(413, "body-too-large", "read after all was sent");

    let mut connection = served.connect();
    connection.send(b"NONSENSE\r\n");
    for _ in 0..20 {
        assert!(connection.try_send(&[b' '; 1_000_000]), "many clients stop at an error and never read");
    }
    connection.reply().assert_problem(400, "bad-request", "read after all was sent");
}

#[test]
fn bad_headers_are_refused() {
    let served = Served::memory();
    let if_match: &[&[(&str, &str)]] = &[
        &[("If-Match", "*")],
        &[("If-Match", "W/\"1\"")],
        &[("If-Match", "\"1\", \"2\"")],
        &[("If-Match", "abc")],
        &[("If-Match", "")],
        &[("If-Match", "\"1\""), ("If-Match", "\"1\"")],
        &[("If-Match", "99999999999999999999")],
        &[("If-None-Match", "*")],
        &[("If-Unmodified-Since", "Mon, 02 Oct 2017 10:56:33 GMT")],
    ];
    for headers in if_match {
        for (method, body) in [("PUT", "{}"), ("PATCH", r#"{"delay":"1s"}"#), ("DELETE", "")] {
            let reply = served.call_with(method, TASK, headers, body);
            reply.assert_problem(400, "bad-request", &format!("{method} {headers:?}"));
            assert!(reply.json()["header"].is_string(), "{headers:?}: {}", reply.text());
        }
    }
    for headers in [[("If-Match", "\"1\"")], [("If-None-Match", "*")]] {
        served.call_with("POST", TASKS, &headers, "{}").assert_problem(
            400,
            "bad-request",
            "a condition on a post",
        );
    }
    let long = "k".repeat(257);
    for keys in
        [vec![("Idempotency-Key", "")], vec![("Idempotency-Key", &*long)], vec![("Idempotency-Key", "a"); 2]]
    {
        served.call_with("POST", TASKS, &keys, "{}").assert_problem(400, "bad-request", &format!("{keys:?}"));
    }
    for headers in [
        [("Content-Type", "text/plain")],
        [("Content-Type", "application/xml")],
        [("Content-Type", "application/json; charset=utf-16")],
        [("Content-Encoding", "gzip")],
    ] {
        for (method, target) in
            [("PUT", TASK), ("PATCH", TASK), ("POST", TASKS), ("POST", "/v1/queues/q/lease")]
        {
            let reply = served.call_with(method, target, &headers, "{}");
            reply.assert_problem(415, "bad-media-type", &format!("{method} {target} {headers:?}"));
        }
    }
}

#[test]
fn unknown_paths_and_methods_are_named() {
    let served = Served::memory();
    for path in [
        "//",
        "/v1",
        "/v1/",
        "/v2/queues",
        "/v1/queues/",
        "/v1/queues/q/tasks/a/b",
        "/v1/queues/q/peek",
        "/favicon.ico",
        "/V1/queues",
    ] {
        served.call("GET", path, "").assert_problem(404, "no-endpoint", path);
    }
    for (method, path, allowed) in [
        ("POST", "/v1/queues", "GET, HEAD"),
        ("POST", "/v1/queues/q", "GET, HEAD, PUT, PATCH, DELETE"),
        ("GET", "/v1/queues/q/pause", "POST"),
        ("DELETE", TASKS, "GET, HEAD, POST"),
        ("POST", TASK, "GET, HEAD, PUT, PATCH, DELETE"),
        ("OPTIONS", TASK, "GET, HEAD, PUT, PATCH, DELETE"),
        ("BREW", TASK, "GET, HEAD, PUT, PATCH, DELETE"),
        ("GET", "/v1/queues/q/batch", "POST"),
        ("GET", "/v1/queues/q/lease", "POST"),
        ("GET", "/v1/queues/q/ack", "POST"),
        ("PUT", "/v1/queues/q/nack", "POST"),
        ("PATCH", "/v1/queues/q/extend", "POST"),
        ("GET", "/v1/clock/advance", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/readyz", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
    ] {
        let reply = served.call(method, path, "");
        reply.assert_problem(405, "bad-method", &format!("{method} {path}"));
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[test]
fn a_due_time_too_far_ahead_is_refused_with_the_limit() {
    let served = Served::memory();
    for body in [r#"{"delay":"40000d"}"#, r#"{"at":"9999-01-01T00:00:00Z"}"#] {
        served.call("PUT", TASK, body).assert_problem(400, "too-far", body);
        served.call("POST", TASKS, body).assert_problem(400, "too-far", body);
    }
    served.expect(201, "PUT", TASK, r#"{"delay":"1h"}"#);
    served.call("PATCH", TASK, r#"{"delay":"40000d"}"#).assert_problem(400, "too-far", "patch");
}

#[test]
fn a_web_page_of_another_site_changes_nothing() {
    let served = Served::memory();
    let put = |headers: &[(&str, &str)]| served.call_with("PUT", TASK, headers, "{}");
    put(&[("Origin", "http://evil.example")]).assert_problem(403, "foreign-origin", "origin");
    put(&[("Sec-Fetch-Site", "cross-site")]).assert_problem(403, "foreign-origin", "fetch metadata");
    assert_eq!(served.counts("q"), [0, 0, 0]);
    let own = format!("http://{}", served.addr);
    assert_eq!(put(&[("Origin", &own)]).status, 201);

    for (host, status) in [("localhost", 200), ("[::1]:1", 200), ("evil.example", 421), ("10.0.0.1", 421)] {
        let mut connection = served.connect();
        connection.send(format!("GET /v1/queues HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(connection.reply().status, status, "{host}");
    }
}
