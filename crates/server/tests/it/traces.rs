//! W3C trace context: the trace of a put comes back with its task.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::served::{Served, on_any_port, virtual_memory};
use tickwheel_server::{Config, Span, SpanKind, SpanSink, Store};

const TASK: &str = "/v1/queues/close/tasks/order:1";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = "vendor=1,other=2";

fn shown(task: &Value) -> (&Value, &Value) {
    (&task["traceparent"], &task["tracestate"])
}

#[test]
fn the_trace_of_the_last_put_comes_back_with_the_task() {
    let served = Served::memory();
    let headers = [("traceparent", PARENT), ("tracestate", STATE)];
    assert_eq!(served.call_with("PUT", TASK, &headers, r#"{"delay":"1s"}"#).status, 201);
    let traced = (&json!(PARENT), &json!(STATE));
    assert_eq!(shown(&served.expect(200, "GET", TASK, "")), traced);
    // A patch does not change the trace of a task.
    let other = [("traceparent", "00-11111111111111111111111111111111-2222222222222222-00")];
    assert_eq!(served.call_with("PATCH", TASK, &other, r#"{"delay":"0s"}"#).status, 200);
    assert_eq!(shown(&served.lease("close", 1)[0]), traced);
    // A request with a malformed header is not refused, and the header is not stored.
    let bad = [("traceparent", "nonsense"), ("tracestate", STATE)];
    assert_eq!(served.call_with("PUT", &format!("{TASK}?revoke=true"), &bad, "").status, 200);
    assert_eq!(shown(&served.lease("close", 1)[0]), (&Value::Null, &Value::Null));
}

#[test]
fn all_puts_of_a_batch_have_the_trace_of_its_request() {
    let served = Served::memory();
    let lines = "{\"op\":\"put\",\"key\":\"a\"}\n{\"op\":\"put\",\"key\":\"b\"}\n";
    served.call_with("POST", "/v1/queues/close/batch", &[("traceparent", PARENT)], lines);
    let post = served.call_with("POST", "/v1/queues/close/tasks", &[("traceparent", PARENT)], "");
    assert_eq!(post.status, 201);
    let leased = served.lease("close", 9);
    assert_eq!(leased.len(), 3);
    assert!(leased.iter().all(|task| shown(task) == (&json!(PARENT), &Value::Null)), "{leased:?}");
}

#[test]
fn a_trace_survives_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = || on_any_port(Store::Dir(directory.path().join("data")));
    let served = Served::start(config()).expect("started");
    let headers = [("traceparent", PARENT), ("tracestate", STATE)];
    assert_eq!(served.call_with("PUT", TASK, &headers, r#"{"delay":"30d"}"#).status, 201);
    served.stop();
    let served = Served::start(config()).expect("started again");
    assert_eq!(shown(&served.expect(200, "GET", TASK, "")), (&json!(PARENT), &json!(STATE)));
}

#[test]
fn requests_have_spans_and_a_delivery_links_to_its_put() {
    const WORKER: &str = "00-11111111111111111111111111111111-2222222222222222-01";
    let (sender, spans) = mpsc::channel();
    let sink = SpanSink::new(move |span| sender.send(span).expect("the test waits for it"));
    let served = Served::start(Config { spans: Some(sink), ..virtual_memory() }).expect("started");
    let next = || -> Span { spans.recv_timeout(tickwheel_testing::HANG_TIME).expect("a span") };
    let numbers = |trace: &Option<tickwheel_api::TraceContext>| trace.as_ref().map(|trace| trace.to_text());

    served.call_with("PUT", TASK, &[("traceparent", PARENT)], r#"{"delay":"1s"}"#);
    let put = next();
    assert_eq!((put.name.as_str(), put.kind), ("PUT /v1/queues/{q}/tasks/{key}", SpanKind::Server));
    assert_eq!((numbers(&put.parent).as_deref(), &put.link, put.failed), (Some(PARENT), &None, false));
    assert!(!format!("{put:?}").contains("order:1"), "no key is told: {put:?}");

    served.advance("3s");
    assert_eq!(next().name, "POST /v1/clock/advance");
    served.call_with("POST", "/v1/queues/close/lease", &[("traceparent", WORKER)], "{}");
    let delivered = next();
    assert_eq!((delivered.name.as_str(), delivered.kind), ("deliver close", SpanKind::Consumer));
    assert_eq!(
        numbers(&delivered.link).as_deref(),
        Some(PARENT),
        "the put may be long ago: a link, no parent"
    );
    assert_eq!(numbers(&delivered.parent).as_deref(), Some(WORKER));
    let late = delivered.ended.duration_since(delivered.begun).expect("an end after the begin");
    assert_eq!(late, Duration::from_secs(2));
    assert_eq!(next().name, "POST /v1/queues/{q}/lease");
}
