//! Tests of the lines of a batch and of a replay.

use tickwheel_api::replay::{ReplayDelivery, ReplayLine, ReplayOp};
use tickwheel_api::{
    BadRequest, BatchLine, BatchOp, BatchResult, CancelOutcome, Due, PatchBody, PayloadBody, Problem,
    PutBody, PutMode, Terms,
};

fn batch(text: &str) -> BatchLine {
    BatchLine::parse(text.as_bytes()).expect(text)
}

#[test]
fn batch_operations() {
    assert_eq!(
        batch(r#"{"op":"put","key":"a","delay":"30m","payload":{},"tags":["vip"],"priority":7,"group":"g"}"#),
        BatchLine {
            key: "a".to_owned(),
            if_match: None,
            revoke: false,
            op: BatchOp::Put {
                body: PutBody {
                    due: Due::After(1_800_000),
                    payload: PayloadBody::json(b"{}".to_vec()),
                    timeline: Vec::new(),
                    terms: Terms {
                        tags: vec!["vip".to_owned()],
                        priority: 7,
                        group: Some("g".to_owned()),
                        ..Terms::default()
                    },
                    max_wait_ms: None,
                },
                mode: PutMode::Upsert,
            },
        }
    );
    assert_eq!(
        batch(r#"{"key":"é\n","mode":"create","if_match":41,"revoke":true,"op":"put"}"#),
        BatchLine {
            key: "é\n".to_owned(),
            if_match: Some(41),
            revoke: true,
            op: BatchOp::Put { body: PutBody::default(), mode: PutMode::Create },
        }
    );
    assert_eq!(
        batch(r#"{"op":"patch","key":"a","at_ms":5,"revoke":false}"#),
        BatchLine {
            key: "a".to_owned(),
            if_match: None,
            revoke: false,
            op: BatchOp::Patch(PatchBody { due: Some(Due::At(5)), ..PatchBody::default() }),
        }
    );
    assert_eq!(
        batch(r#"{"op":"cancel","key":"b","revoke":true}"#),
        BatchLine { key: "b".to_owned(), if_match: None, revoke: true, op: BatchOp::Cancel }
    );
}

#[test]
fn batch_lines_refused() {
    for (text, key, what) in [
        ("", None, "`op`: is missing"),
        (r#"{"op":"put"}"#, None, "`key`: is missing"),
        (r#"{"key":"a"}"#, Some("a"), "`op`: is missing"),
        (r#"{"op":"delete","key":"a"}"#, Some("a"), "`op`: `delete` is not known"),
        (r#"{"op":7,"key":"a"}"#, Some("a"), "`op`: expected a string, got the number 7"),
        (r#"{"op":"put","key":7}"#, None, "`key`: expected a string, got the number 7"),
        (r#"{"op":"put","key":"a","queue":"q"}"#, Some("a"), "`queue`: is not a member of this request"),
        (r#"{"op":"put","dealy":"1s","key":"a"}"#, Some("a"), "`dealy`: is not a member of this request"),
        (r#"{"op":"put","key":"a","retry":[]}"#, Some("a"), "`retry`: expected an object, got an array"),
        (r#"{"op":"cancel","key":"a","tags":[]}"#, Some("a"), "`tags`: means nothing to a cancel"),
        (r#"{"op":"put","key":"a","key":"b"}"#, Some("a"), "`key`: is given twice"),
        (
            r#"{"op":"put","key":"a","delay":"1s","at_ms":1}"#,
            Some("a"),
            "`at_ms`: `delay` and `at_ms` both say when the task is due",
        ),
        (
            r#"{"op":"put","key":"a","max_wait":"1s"}"#,
            Some("a"),
            "`max_wait`: means nothing to a put of the mode `upsert`",
        ),
        (r#"{"op":"patch","key":"a","max_wait":"1s"}"#, Some("a"), "`max_wait`: means nothing to a patch"),
        (r#"{"op":"put","key":"a","mode":"creat"}"#, Some("a"), "`mode`: `creat` is not known"),
        (
            r#"{"op":"put","key":"a","if_match":"41"}"#,
            Some("a"),
            "`if_match`: expected an integer from 0 to 9007199254740992, got a string",
        ),
        (
            r#"{"op":"put","key":"a","revoke":"true"}"#,
            Some("a"),
            "`revoke`: expected true or false, got a string",
        ),
        (r#"{"op":"patch","key":"a"}"#, Some("a"), "the body: changes nothing"),
        (
            r#"{"op":"patch","key":"a","delay":"1s","mode":"create"}"#,
            Some("a"),
            "`mode`: means nothing to a patch",
        ),
        (r#"{"op":"cancel","key":"a","delay":"1s"}"#, Some("a"), "`delay`: means nothing to a cancel"),
        (r#"{"op":"cancel","key":"a","mode":"create"}"#, Some("a"), "`mode`: means nothing to a cancel"),
        (r#"{"op":"put","key":"a""#, None, "the body: is not JSON: EOF while parsing an object at column 21"),
        (r#"["put"]"#, None, "the body: expected a JSON object, got an array"),
    ] {
        let error = BatchLine::parse(text.as_bytes()).expect_err(text);
        assert_eq!((error.key.as_deref(), error.to_string().as_str()), (key, what), "{text}");
        assert!(!error.refusal.hint.is_empty(), "{text}");
    }
    let error = BatchLine::parse(br#"{"op":"put","key":"a","mode":"creat"}"#).expect_err("a slip");
    assert_eq!(error.refusal.hint, "did you mean `create`?");
}

#[test]
fn batch_lines_have_no_line_end_inside() {
    let payload = PayloadBody::json(b"{\n \"a\": 1\n}".to_vec());
    let line = BatchLine {
        key: "a".to_owned(),
        if_match: None,
        revoke: false,
        op: BatchOp::Put { body: PutBody { payload, ..PutBody::default() }, mode: PutMode::Upsert },
    };
    let text = line.to_json();
    assert!(!text.contains(&b'\n'));
    assert_eq!(BatchLine::parse(&text), Ok(line));
}

#[test]
fn batch_results() {
    let text = |result: &BatchResult| String::from_utf8(result.to_line()).expect("UTF-8");
    let stored = BatchResult::stored("a", 201, 42, 1_506_943_593_000);
    assert_eq!(
        text(&stored),
        "{\"key\":\"a\",\"status\":201,\"version\":42,\"due_at\":\"2017-10-02T11:26:33.000Z\"}\n"
    );
    let cancel = BatchResult::cancel("b", CancelOutcome::NotFound);
    assert_eq!(text(&cancel), "{\"key\":\"b\",\"status\":404,\"result\":\"not_found\"}\n");
    let refusal = Problem::bad_request(&BadRequest::member("op", "is missing", "add it"));
    let problem = BatchResult::problem(None, refusal);
    assert_eq!(
        text(&problem),
        "{\"status\":400,\"problem\":{\"type\":\"/problems/bad-request\",\"title\":\"the request cannot be understood\",\
         \"status\":400,\"detail\":\"`op`: is missing\",\"hint\":\"add it\",\"member\":\"op\"}}\n"
    );
    for result in [stored, cancel, problem] {
        let back: BatchResult = serde_json::from_str(&text(&result)).expect("JSON");
        assert_eq!(back, result);
    }
}

#[test]
fn replay_operations() {
    let parse = |text: &str| ReplayLine::parse(text.as_bytes()).expect(text);
    let line = |op| ReplayLine {
        at_ms: 1_506_941_793_000,
        queue: "close".to_owned(),
        key: "order:1".to_owned(),
        op,
    };
    let put = |due, payload: &str| line(ReplayOp::Put { due, payload: PayloadBody::json(payload.into()) });
    let head = r#""at":"2017-10-02T10:56:33Z","queue":"close","key":"order:1""#;
    assert_eq!(
        parse(&format!(r#"{{{head},"op":"put","delay":"30m","payload":{{"a": 1}}}}"#)),
        put(Due::After(1_800_000), r#"{"a": 1}"#)
    );
    assert_eq!(
        parse(&format!(r#"{{{head},"op":"put","due_at":"2017-10-02T11:26:33Z"}}"#)),
        put(Due::At(1_506_943_593_000), "null")
    );
    assert_eq!(parse(&format!(r#"{{{head},"op":"put"}}"#)), put(Due::Now, "null"));
    assert_eq!(parse(&format!(r#"{{{head},"op":"cancel"}}"#)), line(ReplayOp::Cancel));
    for (text, what) in [
        (r#"{"op":"put","queue":"q","key":"k"}"#.to_owned(), "`at`: is missing"),
        (r#"{"at":"2017-10-02T10:56:33Z","op":"put","key":"k"}"#.to_owned(), "`queue`: is missing"),
        (r#"{"at":"2017-10-02T10:56:33Z","op":"put","queue":"k"}"#.to_owned(), "`key`: is missing"),
        (format!("{{{head}}}"), "`op`: is missing"),
        (format!(r#"{{{head},"op":"patch"}}"#), "`op`: `patch` is not known"),
        (
            format!(r#"{{{head},"op":"put","delay":"1s","due_at":"2017-10-02T11:26:33Z"}}"#),
            "`due_at`: `delay` and `due_at` both say when the task is due",
        ),
        (format!(r#"{{{head},"op":"put","due_at":5}}"#), "`due_at`: expected a string, got the number 5"),
        (format!(r#"{{{head},"op":"put","at_ms":5}}"#), "`at_ms`: is not a member of this request"),
        (format!(r#"{{{head},"op":"put","at":"2017-10-02T10:56:33Z"}}"#), "`at`: is given twice"),
        (format!(r#"{{{head},"op":"cancel","payload":1}}"#), "`payload`: means nothing to a cancel"),
        (format!(r#"{{{head},"op":"cancel","delay":"1s"}}"#), "`delay`: means nothing to a cancel"),
        (format!(r#"{{{head},"op":"put","timeline":1}}"#), "`timeline`: is not a member of this request"),
    ] {
        let error = ReplayLine::parse(text.as_bytes()).expect_err(&text);
        assert_eq!(error.to_string(), what, "{text}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn replay_deliveries() {
    let delivery = ReplayDelivery {
        queue: "close".to_owned(),
        key: "order:1".to_owned(),
        due_at_ms: 1_506_943_593_000,
        fired_at_ms: 1_506_943_593_001,
        payload: PayloadBody::json(br#"{"a": 1}"#.to_vec()),
    };
    let text = String::from_utf8(delivery.to_line()).expect("UTF-8");
    assert_eq!(
        text,
        "{\"queue\":\"close\",\"key\":\"order:1\",\"due_at\":\"2017-10-02T11:26:33.000Z\",\
         \"fired_at\":\"2017-10-02T11:26:33.001Z\",\"payload\":{\"a\": 1}}\n"
    );
    assert_eq!(serde_json::from_str::<ReplayDelivery>(&text).expect("JSON"), delivery);
}
