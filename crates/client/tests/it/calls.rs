//! Each call as it is sent, compared byte by byte, and its result for each answer.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::time::Duration;

use tickwheel_api::{
    BatchLine, BatchOp, BatchResult, CancelOutcome, Due, ExtendBody, LeaseBody, ListQuery, NackBody,
    PatchBody, PayloadBody, Problem, ProblemKind, PutBody, PutMode, PutQuery, Readiness, RevokeQuery,
    TaskFilter, TaskState, TokenResult, TraceContext,
};
use tickwheel_client::blocking::Client;
use tickwheel_client::{ClientError, Retries};

use crate::script::{answer, pair, problem, read_request, serve};

const TASK: &str = r#"{"queue":"close","key":"a/b","id":7,"version":41,"state":"scheduled","due_at":"2017-10-02T11:26:33.000Z","priority":1024,"attempt":0,"news":1}"#;
const READY: &str = r#"{"ready":true,"status":"ok","why":null,"reasons":[],"draining":false,"durability":"fsync","virtual_clock":false,"read_only":null,"clock":{"steps":0,"offset_ms":0},"recovery":null}"#;

#[test]
fn every_call_as_it_goes_out() {
    let results = r#"{"results":["acked","expired"]}"#;
    let (client, server) = pair(vec![
        answer(201, TASK),
        answer(200, TASK),
        answer(200, &TASK.replace(r#""priority""#, r#""payload":{"a": 1},"priority""#)),
        answer(200, TASK),
        answer(200, r#"{"result":"revoked"}"#),
        answer(
            200,
            r#"{"tasks":[{"key":"k","id":7,"payload_base64":"AAE=","content_type":"x/y","due_at":"1970-01-01T00:00:00.001Z","attempt":1,"token":"t","lease_until":"1970-01-01T00:00:30.001Z"}]}"#,
        ),
        answer(200, results),
        answer(200, results),
        answer(200, results),
        answer(200, &format!(r#"{{"tasks":[{TASK}],"next_cursor":null}}"#)),
        answer(
            200,
            r#"{"queues":[{"queue":"q","scheduled":1,"ready":2,"leased":3,"dead":4,"paused":false}]}"#,
        ),
        answer(200, r#"{"now":"2017-10-17T10:56:33.000Z"}"#),
        answer(200, READY),
        answer(201, TASK),
    ]);
    let payload = PayloadBody::json(br#"{"a": 1}"#.to_vec());
    let body = PutBody { due: Due::After(1_800_000), payload, ..PutBody::default() };
    let query = PutQuery { mode: PutMode::Replace, revoke: true };
    let stored = client.put("close", "a/b", &body, query, Some(40)).expect("put");
    assert!(stored.created);
    assert_eq!((stored.task.version, stored.task.due_at_ms), (41, 1_506_943_593_000));
    assert!(!client.put("a;b", "é", &PutBody::default(), PutQuery::default(), None).expect("put").created);
    let task = client.get("close", "..").expect("get");
    assert_eq!(
        (task.state, task.payload.as_ref().expect("a payload").bytes.as_slice()),
        (TaskState::Scheduled, br#"{"a": 1}"#.as_slice())
    );
    let patch = PatchBody { due: Some(Due::At(5)), ..PatchBody::default() };
    assert_eq!(client.patch("q", "k", &patch, RevokeQuery { revoke: true }, None).expect("patch").id, 7);
    let cancel = RevokeQuery { revoke: true };
    assert_eq!(client.cancel("q", "k", cancel, Some(41)).expect("cancel"), CancelOutcome::Revoked);
    let leased = client
        .lease("q", &LeaseBody { max: 2, lease_ms: Some(5_000), wait_ms: 20_000, worker: None })
        .expect("lease");
    assert_eq!((leased[0].payload.bytes.as_slice(), leased[0].lease_until_ms), ([0, 1].as_slice(), 30_001));
    let expected = [TokenResult::Acked, TokenResult::Expired];
    assert_eq!(client.ack("q", vec!["t".into(), "u".into()]).expect("ack"), expected);
    let nack = NackBody { tokens: vec!["t".into()], delay_ms: Some(5_000), reason: None };
    assert_eq!(client.nack("q", &nack).expect("nack"), expected);
    let extend = ExtendBody { tokens: vec!["t".into()], lease_ms: Some(60_000) };
    assert_eq!(client.extend("q", &extend).expect("extend"), expected);
    let list = ListQuery {
        filter: TaskFilter { state: Some(TaskState::Ready), ..TaskFilter::default() },
        limit: 5,
        cursor: Some("a=b&c".into()),
        payloads: true,
    };
    assert_eq!(client.list("q", &list).expect("list").tasks.len(), 1);
    assert_eq!(client.queues().expect("queues")[0].leased, 3);
    assert_eq!(client.advance(15 * 86_400_000).expect("advance"), 1_508_237_793_000);
    assert!(client.health().expect("an answer").ready);
    assert_eq!(client.post("q", &PutBody::default()).expect("post").task.key, "a/b");

    let seen = server.join().expect("the server's thread");
    let lines: Vec<(&str, &str)> = seen.iter().map(|seen| (seen.line.as_str(), seen.body.as_str())).collect();
    assert_eq!(
        lines,
        [
            (
                "PUT /v1/queues/close/tasks/a%2Fb?mode=replace&revoke=true HTTP/1.1",
                r#"{"delay":"30m","payload":{"a": 1}}"#
            ),
            ("PUT /v1/queues/a%3Bb/tasks/%C3%A9 HTTP/1.1", "{}"),
            ("GET /v1/queues/close/tasks/%2E%2E HTTP/1.1", ""),
            ("PATCH /v1/queues/q/tasks/k?revoke=true HTTP/1.1", r#"{"at_ms":5}"#),
            ("DELETE /v1/queues/q/tasks/k?revoke=true HTTP/1.1", ""),
            ("POST /v1/queues/q/lease HTTP/1.1", r#"{"max":2,"lease":"5s","wait":"20s"}"#),
            ("POST /v1/queues/q/ack HTTP/1.1", r#"{"tokens":["t","u"]}"#),
            ("POST /v1/queues/q/nack HTTP/1.1", r#"{"tokens":["t"],"delay":"5s"}"#),
            ("POST /v1/queues/q/extend HTTP/1.1", r#"{"tokens":["t"],"lease":"1m"}"#),
            ("GET /v1/queues/q/tasks?state=ready&limit=5&cursor=a%3Db%26c HTTP/1.1", ""),
            ("GET /v1/queues HTTP/1.1", ""),
            ("POST /v1/clock/advance HTTP/1.1", r#"{"by":"15d"}"#),
            ("GET /readyz HTTP/1.1", ""),
            ("POST /v1/queues/q/tasks HTTP/1.1", "{}"),
        ]
    );
    assert_eq!(seen[0].header("if-match"), Some("\"40\""));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[1].header("if-match"), None);
    assert_eq!(seen[4].header("if-match"), Some("\"41\""));
}

#[test]
fn every_outcome_of_a_cancel_is_an_answer() {
    let outcomes = [CancelOutcome::Leased, CancelOutcome::Done, CancelOutcome::NotFound];
    let mismatch = Problem::version_mismatch(41, Some(42));
    let mut answers: Vec<_> = outcomes.map(|outcome| problem(&Problem::cancel(outcome, "q", "k"))).into();
    answers.push(problem(&mismatch));
    let (client, server) = pair(answers);
    for outcome in outcomes {
        assert_eq!(client.cancel("q", "k", RevokeQuery::default(), None).expect("an outcome"), outcome);
    }
    let error = client.cancel("q", "k", RevokeQuery::default(), Some(41)).expect_err("another version");
    assert_eq!(error.problem(), Some(&mismatch));
    server.join().expect("the server's thread");
}

#[test]
fn a_long_batch_goes_in_several_requests() {
    let line = |index: usize| BatchLine {
        key: format!("k{index}"),
        if_match: None,
        revoke: false,
        op: BatchOp::Cancel,
    };
    let results = |from: usize, to: usize| {
        let lines = (from..to)
            .map(|index| BatchResult::cancel(format!("k{index}"), CancelOutcome::NotFound).to_line());
        answer(200, std::str::from_utf8(&lines.flatten().collect::<Vec<u8>>()).expect("UTF-8"))
    };
    let (client, server) = pair(vec![results(0, 500), results(500, 777), results(0, 2)]);
    let lines: Vec<BatchLine> = (0..777).map(line).collect();
    let found = client.batch("q", &lines).expect("a batch");
    assert_eq!(found.len(), 777);
    assert_eq!(found[776].key.as_deref(), Some("k776"));
    let error = client.batch("q", &lines[..1]).expect_err("two results for one line");
    assert_eq!(error.to_string(), "the answer is not one of a tickwheel server: 2 results for a batch of 1");
    let seen = server.join().expect("the server's thread");
    assert_eq!(seen[0].body.lines().count(), 500);
    assert_eq!(seen[1].body.lines().next(), Some(r#"{"op":"cancel","key":"k500"}"#));
    assert_eq!(seen[0].header("content-type"), Some("application/x-ndjson"));
}

#[test]
fn a_server_that_is_not_ready_says_why() {
    let ill = READY.replace(
        r#""ready":true,"status":"ok","why":null"#,
        r#""ready":false,"status":"read_only","why":"no disk""#,
    );
    let (client, server) = pair(vec![answer(503, &ill), answer(503, "<html>")]);
    let health = client.health().expect("an answer");
    assert_eq!(
        (health.ready, health.status, health.why.as_deref()),
        (false, Readiness::ReadOnly, Some("no disk"))
    );
    let error = client.health().expect_err("another program");
    assert!(error.to_string().ends_with("status 503 with the body `<html>`"), "{error}");
    server.join().expect("the server's thread");
}

#[test]
fn a_problem_is_the_error() {
    let (client, server) = pair(vec![problem(&Problem::starting())]);
    let error = client.health().expect_err("it starts");
    assert_eq!(error.problem().and_then(Problem::kind), Some(ProblemKind::Starting));
    server.join().expect("the server's thread");
}

#[test]
fn an_answer_of_another_program() {
    let (client, server) = pair(vec![
        answer(200, "<html>"),
        answer(200, r#"{"queues":[{"queue":"q","scheduled":-1}]}"#),
        answer(404, "not\nhere"),
        answer(302, ""),
    ]);
    for what in [
        "its body: expected value at line 1 column 1",
        "its body: `queues[0].scheduled`: expected an integer from 0 to 9007199254740992, got the negative number -1",
        "status 404 with the body `not\\nhere`",
        "status 302 with the body ``",
    ] {
        let error = client.queues().expect_err(what);
        assert_eq!(error.to_string(), format!("the answer is not one of a tickwheel server: {what}"));
    }
    server.join().expect("the server's thread");
    let (client, server) = pair(vec![b"SSH-2.0-x\r\n".to_vec()]);
    let error = client.queues().expect_err("not HTTP");
    assert!(matches!(error, ClientError::BadAnswer { status: None, .. }), "{error}");
    server.join().expect("the server's thread");
}

#[test]
fn a_refused_connection_names_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let client = Client::new(&format!("http://{address}")).expect("a URL");
    let error = client.queues().expect_err("no server listens");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("no server answers at {address}: ")), "{error}");
}

#[test]
fn a_connection_cut_in_the_answer_leaves_it_open() {
    for cut in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"] {
        let (client, server) = pair(vec![cut.to_vec()]);
        let error = client.queues().expect_err("cut");
        assert!(matches!(error, ClientError::NoAnswer { .. }), "{cut:?}: {error:?}");
        assert!(error.to_string().contains(client.address()), "{error}");
        server.join().expect("the server's thread");
    }
}

#[cfg(unix)]
#[test]
fn a_unix_socket_carries_calls_and_a_connection_that_was_closed_is_opened_again() {
    let directory = std::env::temp_dir().join(format!("tickwheel-client-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory");
    let path = directory.join("http");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let (closed, is_closed) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for calls in [2, 1] {
            let mut reader = BufReader::new(listener.accept().expect("a connection").0);
            for _ in 0..calls {
                seen.push(read_request(&mut reader).expect("a request"));
                reader.get_mut().write_all(&answer(200, r#"{"queues":[]}"#)).expect("write");
            }
            drop(reader);
            closed.send(()).expect("the test waits");
        }
        seen
    });
    let url = format!("unix:{}", path.display());
    let client = Client::new(&url).expect("a place");
    assert_eq!(client.address(), url);
    // Both calls use one connection, because the server accepts no second one before it has
    // answered twice.
    assert_eq!((client.queues().expect("queues"), client.queues().expect("queues")), (vec![], vec![]));
    is_closed.recv().expect("the server closes");
    assert_eq!(client.queues().expect("by another connection"), []);
    let seen = server.join().expect("the server's thread");
    std::fs::remove_dir_all(&directory).expect("removed");
    assert!(seen.iter().all(|request| request.header("host") == Some("localhost")), "{seen:?}");
    let error = client.queues().expect_err("the socket is gone");
    assert!(matches!(error, ClientError::NoSocket { .. }), "{error:?}");
    assert!(
        error.to_string().starts_with(&format!("no server answers at {url}: there is no such file; ")),
        "{error}"
    );
    let error = Client::new(&url).expect("a place").with_roots(b"x").expect_err("no TLS");
    assert!(matches!(error, ClientError::NoTls { .. }), "{error:?}");
}

#[test]
fn ipv6() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        eprintln!("left out: this machine has no IPv6 loopback");
        return;
    };
    let client = Client::new(&format!("http://{}/", listener.local_addr().expect("bound"))).expect("a URL");
    let server = serve(listener, vec![answer(200, r#"{"queues":[]}"#)]);
    assert_eq!(client.queues().expect("queues"), []);
    server.join().expect("the server's thread");
}

/// Waits that end at once, so that no test has to wait.
const AT_ONCE: Retries = Retries { calls: 3, base: Duration::ZERO, max: Duration::ZERO };
const STORED: &str = r#"{"queue":"q","key":"k","id":1,"version":1,"state":"ready","due_at":"2030-01-01T00:00:00.000Z","tags":[],"priority":1024,"attempt":0}"#;

fn stopping() -> Vec<u8> {
    let stopping = Problem { retry_after_s: None, ..Problem::stopping() };
    problem(&stopping)
}

#[test]
fn what_had_no_effect_is_sent_again_and_what_is_wrong_is_not() {
    let (client, server) = pair(vec![stopping(), stopping(), answer(200, r#"{"results":["acked"]}"#)]);
    let results = client.with_retries(AT_ONCE).ack("q", vec!["t".to_owned()]).expect("the third time");
    assert_eq!(results, [TokenResult::Acked]);
    assert_eq!(server.join().expect("no panic").len(), 3);

    let (client, server) = pair(vec![stopping(), stopping(), stopping()]);
    let error = client.with_retries(AT_ONCE).queues().expect_err("three times are enough");
    assert_eq!(error.problem().and_then(Problem::kind), Some(ProblemKind::Stopping));
    assert_eq!(server.join().expect("no panic").len(), 3);

    let (client, server) = pair(vec![problem(&Problem::leased("q", "k"))]);
    assert!(client.with_retries(AT_ONCE).get("q", "k").is_err());
    assert_eq!(server.join().expect("no panic").len(), 1);
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again_only_where_twice_is_once() {
    // There is no answer: the connection closes after the request.
    let lost = Vec::new;
    let (client, server) = pair(vec![lost(), answer(200, STORED)]);
    client.with_retries(AT_ONCE).post_once("q", "k", &PutBody::default()).expect("the second time");
    let seen = server.join().expect("no panic");
    assert_eq!(
        seen.iter().map(|seen| seen.header("idempotency-key")).collect::<Vec<_>>(),
        [Some("\"k\""); 2]
    );

    let (client, server) = pair(vec![lost(), answer(200, r#"{"results":["acked"]}"#)]);
    let acked = client.with_retries(AT_ONCE).ack("q", vec!["t".to_owned()]);
    assert_eq!(acked.expect("a second ack is told the same"), [TokenResult::Acked]);
    assert_eq!(server.join().expect("no panic").len(), 2);

    let once: [fn(&Client) -> ClientError; 4] = [
        |client| {
            let nack = NackBody { tokens: vec!["t".to_owned()], delay_ms: None, reason: None };
            client.nack("q", &nack).expect_err("it is not known")
        },
        |client| client.cancel("q", "k", RevokeQuery::default(), None).expect_err("it is not known"),
        |client| client.post("q", &PutBody::default()).expect_err("it would make two"),
        |client| {
            let put = client.put("q", "k", &PutBody::default(), PutQuery::default(), None);
            put.expect_err("its task may be done by then, and it would make another")
        },
    ];
    for call in once {
        let (client, server) = pair(vec![lost()]);
        let error = call(&client.with_retries(AT_ONCE));
        assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
        assert_eq!(server.join().expect("no panic").len(), 1);
    }
}

#[test]
fn a_trace_goes_with_every_call() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = TraceContext::of_headers(parent, Some("a=b")).expect("well formed");
    let (client, server) = pair(vec![answer(201, STORED)]);
    client.with_trace(trace).post("q", &PutBody::default()).expect("taken");
    let seen = server.join().expect("no panic").remove(0);
    assert_eq!((seen.header("traceparent"), seen.header("tracestate")), (Some(parent), Some("a=b")));
}
