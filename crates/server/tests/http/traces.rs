//! W3C trace context: what a put was traced by comes back with its task.

use serde_json::{Value, json};

use crate::served::{Served, on_any_port};
use tickwheel_server::Store;

const TASK: &str = "/v1/queues/close/tasks/order:1";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = "vendor=1,other=2";

fn shown(task: &Value) -> (&Value, &Value) {
    (&task["traceparent"], &task["tracestate"])
}

#[test]
fn it_comes_back_with_the_task_and_is_that_of_the_last_put() {
    let served = Served::memory();
    let headers = [("traceparent", PARENT), ("tracestate", STATE)];
    assert_eq!(served.call_with("PUT", TASK, &headers, r#"{"delay":"1s"}"#).status, 201);
    let traced = (&json!(PARENT), &json!(STATE));
    assert_eq!(shown(&served.expect(200, "GET", TASK, "")), traced);
    // Neither a patch nor whoever sends it makes it another's work.
    let other = [("traceparent", "00-11111111111111111111111111111111-2222222222222222-00")];
    assert_eq!(served.call_with("PATCH", TASK, &other, r#"{"delay":"0s"}"#).status, 200);
    assert_eq!(shown(&served.lease("close", 1)[0]), traced);
    // A malformed one refuses nothing and is not kept.
    let bad = [("traceparent", "nonsense"), ("tracestate", STATE)];
    assert_eq!(served.call_with("PUT", &format!("{TASK}?revoke=true"), &bad, "").status, 200);
    assert_eq!(shown(&served.lease("close", 1)[0]), (&Value::Null, &Value::Null));
}

#[test]
fn all_puts_of_a_batch_have_that_of_its_request() {
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
fn it_survives_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = || on_any_port(Store::Dir(directory.path().join("data")));
    let served = Served::start(config()).expect("started");
    let headers = [("traceparent", PARENT), ("tracestate", STATE)];
    assert_eq!(served.call_with("PUT", TASK, &headers, r#"{"delay":"30d"}"#).status, 201);
    served.stop();
    let served = Served::start(config()).expect("started again");
    assert_eq!(shown(&served.expect(200, "GET", TASK, "")), (&json!(PARENT), &json!(STATE)));
}
