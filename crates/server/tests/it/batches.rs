//! Many changes in one call.

use serde_json::{Value, json};

use crate::served::Served;

const BATCH: &str = "/v1/queues/q/batch";

#[test]
fn every_line_has_its_result_in_its_place() {
    let served = Served::memory();
    let lines = [
        r#"{"op":"put","key":"a","delay":"30m","payload":{}}"#,
        r#"{"op":"put","key":"a","delay":"20m"}"#,
        r#"{"op":"put","key":"a","mode":"create"}"#,
        "",
        r#"{"op":"patch","key":"a","delay":"10m"}"#,
        r#"{"op":"patch","key":"none","delay":"10m"}"#,
        "not json",
        r#"{"op":"put","key":"c","dealy":"1s"}"#,
        r#"{"op":"put","key":""}"#,
        r#"{"op":"cancel","key":"b"}"#,
        r#"{"op":"cancel","key":"a","if_match":1000000}"#,
        r#"{"op":"cancel","key":"a"}"#,
        r#"{"op":"cancel","key":"a"}"#,
    ];
    let reply = served.call("POST", BATCH, &lines.join("\r\n"));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    let results = reply.lines();
    let short: Vec<(Option<&str>, u64)> = results
        .iter()
        .map(|line| (line["key"].as_str(), line["status"].as_u64().expect("a status")))
        .collect();
    let expected = [
        (Some("a"), 201),
        (Some("a"), 200),
        (Some("a"), 409),
        (Some("a"), 200),
        (Some("none"), 404),
        (None, 400),
        (Some("c"), 400),
        (Some(""), 400),
        (Some("b"), 404),
        (Some("a"), 412),
        (Some("a"), 200),
        (Some("a"), 404),
    ];
    assert_eq!(short, expected);
    assert_eq!(results[2]["problem"]["type"], "/problems/live");
    assert_eq!(results[6]["problem"]["member"], "dealy");
    assert_eq!(results[8], json!({"key": "b", "status": 404, "result": "not_found"}));
    assert_eq!(results[10], json!({"key": "a", "status": 200, "result": "cancelled"}));
    assert!(
        results[0]["version"].as_u64() < results[1]["version"].as_u64(),
        "lines on one key apply in order"
    );
    assert_eq!(served.counts("q"), [0, 0, 0]);
}

#[test]
fn ten_thousand_lines_pass_and_one_more_does_not() {
    let served = Served::memory();
    let line = |n| format!("{{\"op\":\"put\",\"key\":\"{n}\",\"delay\":\"1h\"}}\n");
    let lines: String = (0..10_001).map(line).collect();
    // All lines are sent before a result is read. Unread results must not block the lines.
    let results = served.call("POST", BATCH, &lines).lines();
    assert_eq!(results.len(), 10_001);
    for (n, result) in results[..10_000].iter().enumerate() {
        assert_eq!((&result["key"], &result["status"]), (&json!(n.to_string()), &json!(201)));
    }
    assert_eq!(results[10_000]["status"], 413);
    assert_eq!(results[10_000]["key"], Value::Null);
    assert_eq!(served.counts("q"), [10_000, 0, 0]);
}

#[test]
fn a_line_that_is_too_long_is_its_own_result() {
    let served = Served::memory();
    let long = format!("{{\"op\":\"put\",\"key\":\"b\",\"payload\":\"{}\"}}", "x".repeat(1 << 20));
    let lines = format!("{{\"op\":\"put\",\"key\":\"a\"}}\n{long}\n{{\"op\":\"put\",\"key\":\"c\"}}");
    let results = served.call("POST", BATCH, &lines).lines();
    let statuses: Vec<&Value> = results.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [201, 413, 201]);
    assert_eq!(served.counts("q"), [0, 2, 0]);
}

#[test]
fn results_come_while_lines_are_still_sent() {
    let served = Served::memory();
    let mut connection = served.connect();
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    connection.send(
        format!("POST {BATCH} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", served.addr)
            .as_bytes(),
    );
    connection.send(chunk("{\"op\":\"put\",\"key\":\"a\"}\n{\"op\":\"put\",").as_bytes());
    assert_eq!(connection.head().status, 200);
    let mut body = Vec::new();
    assert!(connection.chunk(&mut body), "the first result is there before the second line ends");
    assert_eq!(served.counts("q"), [0, 1, 0]);
    connection.send(chunk("\"key\":\"b\"}").as_bytes());
    connection.send(b"0\r\n\r\n");
    while connection.chunk(&mut body) {}
    let text = String::from_utf8(body).expect("UTF-8");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_eq!(served.counts("q"), [0, 2, 0], "a last line needs no line end");
}

#[test]
fn a_body_that_breaks_off_applies_no_half_line() {
    let served = Served::memory();
    for broken in ["zz\r\n", "5\r\n{}{}{}", "40\r\n"] {
        let mut connection = served.connect();
        let first = "{\"op\":\"put\",\"key\":\"a\"}\n{\"op\":\"cancel\",\"key\":\"a\"}";
        connection.send(
            format!("POST {BATCH} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", served.addr)
                .as_bytes(),
        );
        connection.send(format!("{:x}\r\n{first}\r\n{broken}", first.len()).as_bytes());
        connection.finish();
        let results = connection.reply().lines();
        assert_eq!(results.len(), 2, "{broken:?}: {results:?}");
        assert_eq!(results[1]["problem"]["type"], "/problems/bad-request", "{broken:?}");
        assert_eq!(served.counts("q"), [0, 1, 0], "{broken:?}: the cancel may have gone on");
    }
}

#[test]
fn a_batch_is_refused_as_a_whole_only_for_its_head() {
    let served = Served::memory();
    let put = r#"{"op":"put","key":"a"}"#;
    served.call("POST", &format!("{BATCH}?mode=create"), put).assert_problem(400, "bad-request", "query");
    let headers = [("Content-Type", "text/csv")];
    served.call_with("POST", BATCH, &headers, put).assert_problem(415, "bad-media-type", "type");
    for content_type in ["application/x-ndjson", "application/jsonl", "application/json"] {
        let reply = served.call_with("POST", BATCH, &[("Content-Type", content_type)], put);
        assert_eq!(reply.status, 200, "{content_type}");
    }
    let mut connection = served.connect();
    let length = (64 << 20) + 1;
    connection.send(
        format!("POST {BATCH} HTTP/1.1\r\nHost: {}\r\nContent-Length: {length}\r\n\r\n", served.addr)
            .as_bytes(),
    );
    connection.reply().assert_problem(413, "body-too-large", "length");
    assert_eq!(served.call("POST", BATCH, "").text(), "", "no lines, no results");
}

#[test]
fn the_unread_rest_of_a_batch_does_not_block_the_next_call() {
    let served = Served::memory();
    let line = "{\"op\":\"cancel\",\"key\":\"a\"}\n";
    let mut connection = served.connect();
    // The line above the limit ends the batch, and the following lines are not processed.
    connection.request("POST", BATCH, &[], line.repeat(10_100).as_bytes());
    let results = connection.reply().lines();
    assert_eq!((results.len(), &results[10_000]["status"]), (10_001, &json!(413)));
    connection.request("GET", "/healthz", &[], b"");
    assert_eq!(connection.reply().status, 200);
}

/// A bug that was found: many clients send head and body separately, and the whole body before they read. The
/// connection was closed before the rest of the body was read, and the client was not told.
#[test]
fn a_connection_is_usable_after_a_batch_that_ends_early() {
    let served = Served::memory();
    let line = "{\"op\":\"cancel\",\"key\":\"a\"}\n";
    let body = line.repeat(50_000);
    let length = format!("Content-Length: {}\r\n", body.len());
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (framing, body) in [(length.as_str(), &body), ("Transfer-Encoding: chunked\r\n", &chunked)] {
        let mut connection = served.connect();
        connection
            .send(format!("POST {BATCH} HTTP/1.1\r\nHost: {}\r\n{framing}\r\n", served.addr).as_bytes());
        assert!(connection.try_send(body.as_bytes()), "the server takes it all");
        let reply = connection.reply();
        let results = reply.lines();
        assert_eq!((results.len(), &results[10_000]["status"]), (10_001, &json!(413)));
        for _ in 0..3 {
            connection.request("GET", "/healthz", &[], b"");
            let next = connection.reply();
            assert_eq!((next.status, next.header("connection")), (200, None), "{framing}");
        }
    }
}

/// A body above the limit is not read to its end. Its answer is complete all the same.
#[test]
fn a_batch_of_too_many_bytes_has_all_its_results() {
    let served = Served::memory();
    let mut connection = served.connect();
    connection.send(
        format!("POST {BATCH} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", served.addr)
            .as_bytes(),
    );
    let line = "{\"op\":\"cancel\",\"key\":\"a\"}\n";
    connection.send(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes());
    assert_eq!(connection.head().status, 200);
    let blank = [b"100000\r\n".as_slice(), &[b'\n'; 1 << 20], b"\r\n"].concat();
    for _ in 0..66 {
        connection.send(&blank);
    }
    let mut body = Vec::new();
    while connection.chunk(&mut body) {}
    let text = String::from_utf8(body).expect("UTF-8");
    let statuses: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["status"].clone())
        .collect();
    assert_eq!(statuses, [404, 413]);
}
