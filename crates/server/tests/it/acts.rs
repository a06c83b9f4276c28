//! A task runs before its time, or is taken from its worker.

use serde_json::{Value, json};

use crate::raw::Reply;
use crate::served::Served;

const TASK: &str = "/v1/queues/close/tasks/order:1";
const RUN: &str = "/v1/queues/close/tasks/order:1/run";
const RELEASE: &str = "/v1/queues/close/tasks/order:1/release";

/// The problem with which a call is refused.
fn refused(served: &Served, status: u16, kind: &str, target: &str, body: &str) -> Value {
    let reply: Reply = served.call("POST", target, body);
    let problem = reply.json();
    assert_eq!((reply.status, &problem["type"]), (status, &json!(format!("/problems/{kind}"))), "{problem}");
    problem
}

fn token_of(leased: &Value) -> String {
    leased["tasks"][0]["token"].as_str().expect("a token").to_owned()
}

#[test]
fn a_scheduled_task_runs_now_and_keeps_everything_else() {
    let served = Served::memory();
    let put = json!({"delay": "1h", "payload": {"order": 1}, "tags": ["vip"], "priority": 7, "retry": {"max_attempts": 3}});
    served.call("PUT", TASK, &put.to_string());
    let before = served.expect(200, "GET", TASK, "");
    let run = served.call("POST", RUN, "");
    assert_eq!((run.status, &run.json()["state"]), (200, &json!("ready")), "{}", run.text());
    let mut after = served.expect(200, "GET", TASK, "");
    assert_eq!(run.header("etag"), Some(format!("\"{}\"", after["version"]).as_str()));
    assert!(after["version"].as_u64() > before["version"].as_u64());
    assert!(after["due_at"].as_str() < before["due_at"].as_str());
    let again = served.expect(200, "POST", RUN, "{}");
    assert_eq!(
        (&again["version"], &again["due_at"]),
        (&after["version"], &after["due_at"]),
        "it stands as it was"
    );
    for member in ["due_at", "version", "state"] {
        after[member] = before[member].clone();
    }
    assert_eq!(after, before);
}

#[test]
fn a_run_that_cannot_be_says_why() {
    let served = Served::memory();
    refused(&served, 404, "not-found", RUN, "");
    served.call("PUT", TASK, r#"{"retry": {"max_attempts": 1}, "delay": "1h"}"#);
    let stale = served.call_with("POST", RUN, &[("if-match", "\"999\"")], "");
    assert_eq!((stale.status, &stale.json()["type"]), (412, &json!("/problems/version-mismatch")));
    served.expect(200, "POST", RUN, "");
    let leased = served.expect(200, "POST", "/v1/queues/close/lease", "");
    refused(&served, 409, "leased", RUN, "");
    let nack = json!({"tokens": [token_of(&leased)]});
    served.expect(200, "POST", "/v1/queues/close/nack", &nack.to_string());
    let dead = refused(&served, 409, "dead", RUN, "");
    assert!(dead["hint"].as_str().expect("a hint").contains("/dead/redrive"), "{dead}");
    served.expect(200, "POST", "/v1/queues/close/dead/redrive", r#"{"key":"order:1"}"#);
    let leased = served.expect(200, "POST", "/v1/queues/close/lease", "");
    let ack = json!({"tokens": [token_of(&leased)]});
    served.expect(200, "POST", "/v1/queues/close/ack", &ack.to_string());
    refused(&served, 404, "done", RUN, "");
    let body = refused(&served, 400, "bad-request", RUN, r#"{"delay":"1h"}"#);
    assert_eq!(body["member"], "delay");
}

#[test]
fn a_leased_task_is_taken_from_its_worker() {
    let served = Served::memory();
    refused(&served, 404, "not-found", RELEASE, "");
    served.call("PUT", TASK, r#"{"retry": {"max_attempts": 1}}"#);
    refused(&served, 409, "not-leased", RELEASE, "");
    let leased = served.expect(200, "POST", "/v1/queues/close/lease", "");
    let (old, shown) = (token_of(&leased), served.expect(200, "GET", TASK, ""));
    let version = shown["version"].clone();
    assert_eq!(shown["lease_until"], leased["tasks"][0]["lease_until"], "a look says when the lease ends");
    let page = served.expect(200, "GET", "/v1/queues/close/tasks", "");
    assert_eq!(page["tasks"][0]["lease_until"], shown["lease_until"]);
    let stale = served.call_with("POST", RELEASE, &[("if-match", "\"999\"")], "");
    assert_eq!((stale.status, &stale.json()["version"]), (412, &version));
    let seen = format!("\"{version}\"");
    let released = served.call_with("POST", RELEASE, &[("if-match", &seen)], "");
    let (json, etag) = (released.json(), released.header("etag"));
    assert_eq!((released.status, &json["state"], &json["attempt"]), (200, &json!("ready"), &json!(1)));
    assert_eq!(etag, Some(format!("\"{}\"", json["version"]).as_str()));
    let told = served.expect(200, "POST", "/v1/queues/close/ack", &json!({"tokens": [old]}).to_string());
    assert_eq!(told["results"], json!(["revoked"]));
    let shown = served.expect(200, "GET", TASK, "");
    assert_eq!(
        (&shown["failures"][0]["how"], &shown["failures"][0]["attempt"]),
        (&json!("revoked"), &json!(1))
    );
    assert_eq!(shown["lease_until"], Value::Null, "no worker has it");
    let new = served.expect(200, "POST", "/v1/queues/close/lease", "");
    assert_eq!(new["tasks"][0]["attempt"], 2, "a release does not use the last attempt up");
    let both = served.call_with("POST", RELEASE, &[("if-match", &seen)], "");
    assert_eq!(both.status, 412, "a second click does not take it from the next worker");
}
