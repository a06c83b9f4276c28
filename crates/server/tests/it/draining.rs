//! `/v1/drain` and `/v1/resume`.

use serde_json::json;

use crate::served::{Served, virtual_memory};

#[test]
fn a_server_is_told_to_drain_and_back() {
    let served = Served::start(virtual_memory()).expect("started");
    let [drains, takes] = [true, false].map(|draining| json!({ "draining": draining }));
    served.expect(201, "PUT", "/v1/queues/q/tasks/k", "{}");
    assert_eq!(served.expect(200, "POST", "/v1/resume", ""), takes, "what does not drain may be resumed");
    for _ in 0..2 {
        assert_eq!(served.expect(200, "POST", "/v1/drain", ""), drains, "twice is once");
    }
    let ready = served.expect(200, "GET", "/readyz", "");
    assert_eq!((&ready["ready"], &ready["draining"]), (&json!(true), &json!(true)), "{ready}");
    for (method, target) in [("POST", "/v1/queues/q/tasks"), ("PUT", "/v1/queues/q/tasks/other")] {
        served.call(method, target, "{}").assert_problem(503, "server-draining", "POST /v1/resume");
    }
    let line = served.call("POST", "/v1/queues/q/batch", "{\"op\":\"put\",\"key\":\"other\"}\n");
    assert!(line.text().contains("server-draining"), "{}", line.text());
    assert_eq!(served.lease("q", 1)[0]["key"], "k", "workers go on");
    for _ in 0..2 {
        assert_eq!(served.expect(200, "POST", "/v1/resume", ""), takes);
    }
    assert_eq!(served.expect(200, "GET", "/readyz", "")["draining"], false);
    served.expect(201, "PUT", "/v1/queues/q/tasks/other", "{}");
}

#[test]
fn a_queue_that_drains_goes_on_to_drain() {
    let served = Served::start(virtual_memory()).expect("started");
    served.expect(200, "POST", "/v1/queues/q/drain", "");
    served.expect(200, "POST", "/v1/drain", "");
    served.expect(200, "POST", "/v1/resume", "");
    served.call("PUT", "/v1/queues/q/tasks/k", "{}").assert_problem(409, "draining", "resume");
    served.expect(201, "PUT", "/v1/queues/other/tasks/k", "{}");
}

#[test]
fn a_drain_takes_no_body() {
    let served = Served::start(virtual_memory()).expect("started");
    for path in ["/v1/drain", "/v1/resume"] {
        served.call("POST", &format!("{path}?queue=q"), "").assert_problem(400, "bad-request", "queue");
        served.call("POST", path, "{\"queue\":\"q\"}").assert_problem(400, "bad-request", "");
        served.call("GET", path, "").assert_problem(405, "bad-method", "GET");
    }
    assert_eq!(served.expect(200, "GET", "/readyz", "")["draining"], false);
}
