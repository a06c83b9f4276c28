//! Tests that answers are written as JSON in the order of the documents, and are read back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickwheel_api::{
    CancelAnswer, CancelOutcome, DeathBody, DeathReason, DrainBody, FailureBody, FailureKind, LeasedTask,
    LeasedTasks, NowBody, PayloadBody, PutAnswer, QueueCounts, QueuesBody, RetryBody, TaskBody, TaskState,
    TasksPage, TokenResult, TokenResults, TraceContext,
};

/// The value is written as this text and read back as the same value.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, text: &str) {
    assert_eq!(serde_json::to_string(value).expect("JSON"), text);
    assert_eq!(serde_json::from_str::<T>(text).as_ref().expect(text), value);
}

fn task(payload: PayloadBody) -> TaskBody {
    TaskBody {
        queue: "close".to_owned(),
        key: "order:1".to_owned(),
        id: 7,
        version: 41,
        state: TaskState::Scheduled,
        due_at_ms: 1_506_943_593_000,
        payload: Some(payload),
        tags: Vec::new(),
        priority: 1024,
        group: None,
        attempt: 0,
        lease_until_ms: None,
        retry: None,
        expire_at_ms: None,
        failures: Vec::new(),
        dead: None,
        timeline: Vec::new(),
        trace: None,
    }
}

#[test]
fn tasks() {
    check(
        &task(PayloadBody::json(br#"{"b": 1.0,"a":"\u00e9"}"#.to_vec())),
        r#"{"queue":"close","key":"order:1","id":7,"version":41,"state":"scheduled","due_at":"2017-10-02T11:26:33.000Z","payload":{"b": 1.0,"a":"\u00e9"},"tags":[],"priority":1024,"attempt":0}"#,
    );
    check(
        &TaskBody {
            tags: vec!["vip".to_owned()],
            group: Some("user:7".to_owned()),
            ..task(PayloadBody { bytes: vec![0, 255], content_type: "image/png".to_owned() })
        },
        r#"{"queue":"close","key":"order:1","id":7,"version":41,"state":"scheduled","due_at":"2017-10-02T11:26:33.000Z","payload_base64":"AP8=","content_type":"image/png","tags":["vip"],"priority":1024,"group":"user:7","attempt":0}"#,
    );
    check(
        &TaskBody {
            state: TaskState::Leased,
            attempt: 1,
            lease_until_ms: Some(3),
            ..task(PayloadBody::default())
        },
        r#"{"queue":"close","key":"order:1","id":7,"version":41,"state":"leased","due_at":"2017-10-02T11:26:33.000Z","payload":null,"tags":[],"priority":1024,"attempt":1,"lease_until":"1970-01-01T00:00:00.003Z"}"#,
    );
    check(
        &TaskBody { payload: None, ..task(PayloadBody::default()) },
        r#"{"queue":"close","key":"order:1","id":7,"version":41,"state":"scheduled","due_at":"2017-10-02T11:26:33.000Z","tags":[],"priority":1024,"attempt":0}"#,
    );
    let reason = Some("no money".to_owned());
    check(
        &TaskBody {
            state: TaskState::Dead,
            attempt: 1,
            retry: Some(RetryBody { max_attempts: Some(1), ..RetryBody::default() }),
            expire_at_ms: Some(1),
            failures: vec![FailureBody { at_ms: 0, attempt: 1, how: FailureKind::Nacked, reason }],
            dead: Some(DeathBody { at_ms: 2, reason: DeathReason::MaxAttempts }),
            ..task(PayloadBody::default())
        },
        r#"{"queue":"close","key":"order:1","id":7,"version":41,"state":"dead","due_at":"2017-10-02T11:26:33.000Z","payload":null,"tags":[],"priority":1024,"attempt":1,"retry":{"max_attempts":1,"backoff":"exponential","base":"1s","max":"10m","jitter":0.5},"expire_at":"1970-01-01T00:00:00.001Z","failures":[{"at":"1970-01-01T00:00:00.000Z","attempt":1,"how":"nacked","reason":"no money"}],"dead_at":"1970-01-01T00:00:00.002Z","reason":"max_attempts"}"#,
    );
    check(
        &PutAnswer {
            queue: "close".to_owned(),
            key: "a\"b".to_owned(),
            id: 7,
            version: 41,
            state: TaskState::Ready,
            due_at_ms: 0,
            tags: Vec::new(),
            priority: 1024,
            group: None,
            attempt: 2,
        },
        r#"{"queue":"close","key":"a\"b","id":7,"version":41,"state":"ready","due_at":"1970-01-01T00:00:00.000Z","tags":[],"priority":1024,"attempt":2}"#,
    );
}

#[test]
fn leased_tasks() {
    let leased = |payload| LeasedTask {
        key: "k".to_owned(),
        id: 7,
        payload,
        tags: Vec::new(),
        priority: 1024,
        group: None,
        due_at_ms: 1,
        attempt: 1,
        token: "t_-".to_owned(),
        lease_until_ms: 30_001,
        trace: None,
    };
    check(
        &LeasedTasks { tasks: vec![leased(PayloadBody::default())] },
        r#"{"tasks":[{"key":"k","id":7,"payload":null,"tags":[],"priority":1024,"due_at":"1970-01-01T00:00:00.001Z","attempt":1,"token":"t_-","lease_until":"1970-01-01T00:00:30.001Z"}]}"#,
    );
    check(
        &LeasedTask {
            tags: vec!["vip".to_owned()],
            group: Some("g".to_owned()),
            ..leased(PayloadBody { bytes: Vec::new(), content_type: "text/plain".to_owned() })
        },
        r#"{"key":"k","id":7,"payload_base64":"","content_type":"text/plain","tags":["vip"],"priority":1024,"group":"g","due_at":"1970-01-01T00:00:00.001Z","attempt":1,"token":"t_-","lease_until":"1970-01-01T00:00:30.001Z"}"#,
    );
    check(&LeasedTasks { tasks: Vec::new() }, r#"{"tasks":[]}"#);
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    check(
        &LeasedTask {
            trace: Some(TraceContext { traceparent, tracestate: Some("a=b".to_owned()) }),
            ..leased(PayloadBody::default())
        },
        r#"{"key":"k","id":7,"payload":null,"tags":[],"priority":1024,"due_at":"1970-01-01T00:00:00.001Z","attempt":1,"token":"t_-","lease_until":"1970-01-01T00:00:30.001Z","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b"}"#,
    );
}

#[test]
fn the_rest() {
    check(
        &TasksPage { tasks: Vec::new(), next_cursor: Some("c".to_owned()), looked_at: Some(7) },
        r#"{"tasks":[],"next_cursor":"c","looked_at":7}"#,
    );
    check(
        &TasksPage { tasks: Vec::new(), next_cursor: None, looked_at: None },
        r#"{"tasks":[],"next_cursor":null}"#,
    );
    check(
        &QueuesBody {
            queues: vec![QueueCounts {
                queue: "q".to_owned(),
                scheduled: 1,
                ready: 2,
                leased: 3,
                dead: 4,
                paused: false,
                draining: false,
            }],
            next_cursor: None,
        },
        r#"{"queues":[{"queue":"q","scheduled":1,"ready":2,"leased":3,"dead":4,"paused":false}],"next_cursor":null}"#,
    );
    use TokenResult::{Acked, Expired, Extended, Nacked, Revoked};
    check(
        &TokenResults { results: vec![Acked, Nacked, Extended, Expired, Revoked] },
        r#"{"results":["acked","nacked","extended","expired","revoked"]}"#,
    );
    check(&DrainBody { draining: true }, r#"{"draining":true}"#);
    check(&NowBody { now_ms: 1_506_943_593_000 }, r#"{"now":"2017-10-02T11:26:33.000Z"}"#);
    for outcome in CancelOutcome::ALL {
        check(&CancelAnswer { result: outcome }, &format!(r#"{{"result":"{}"}}"#, outcome.name()));
    }
    for state in TaskState::ALL {
        assert_eq!(serde_json::to_string(&state).expect("JSON"), format!("\"{}\"", state.name()));
    }
}

/// A program that embeds the queue may store any bytes as `application/json`. The answer must be valid JSON in
/// this case, too.
#[test]
fn json_that_is_none_goes_as_base64() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels)).into_bytes();
    for bytes in [
        b"{".to_vec(),
        b"".to_vec(),
        b" 1".to_vec(),
        b"1\n".to_vec(),
        b"1,2".to_vec(),
        b"\"\xff\"".to_vec(),
        deep(64),
    ] {
        let stored = task(PayloadBody::json(bytes.clone()));
        let text = serde_json::to_string(&stored).expect("JSON");
        assert!(text.contains(r#""content_type":"application/json""#), "{text}");
        let back: TaskBody = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back.payload.map(|payload| payload.bytes), Some(bytes));
    }
    let allowed = task(PayloadBody::json(deep(63)));
    assert!(serde_json::to_string(&allowed).expect("JSON").contains(r#""payload":[["#));
}

#[test]
fn a_bad_answer_is_an_error() {
    let good = serde_json::to_string(&task(PayloadBody::default())).expect("JSON");
    for (from, to) in [
        ("\"scheduled\"", "\"sleeping\""),
        ("2017-10-02T11:26:33.000Z", "2017-10-02"),
        ("\"payload\":null", "\"payload_base64\":\"?\""),
        ("\"id\":7,", ""),
    ] {
        assert!(serde_json::from_str::<TaskBody>(&good.replace(from, to)).is_err(), "{to}");
    }
}
