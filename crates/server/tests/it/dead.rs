//! Retry policies, dead tasks and redrives.

use serde_json::{Value, json};

use crate::served::Served;

const TASK: &str = "/v1/queues/close/tasks/order:1";
const DEAD: &str = "/v1/queues/close/dead";
const REDRIVE: &str = "/v1/queues/close/dead/redrive";

/// Puts a task with one attempt, and nacks it.
fn kill(served: &Served, key: &str) -> Value {
    let task = format!("/v1/queues/close/tasks/{key}");
    served.call("PUT", &task, r#"{"retry":{"max_attempts":1},"payload":{"n":1}}"#);
    let leased = served.lease("close", 1);
    let body = json!({ "tokens": [leased[0]["token"]], "reason": "card refused" }).to_string();
    let answer = served.expect(200, "POST", "/v1/queues/close/nack", &body);
    assert_eq!(answer["results"], json!(["nacked"]));
    served.expect(200, "GET", &task, "")
}

fn dead_keys(served: &Served) -> Vec<String> {
    let page = served.expect(200, "GET", DEAD, "");
    let tasks = page["tasks"].as_array().expect("an array");
    tasks.iter().map(|task| task["key"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn a_task_that_fails_too_often_is_dead_and_listed_with_its_failures() {
    let served = Served::memory();
    let put = r#"{"retry":{"max_attempts":2,"backoff":"fixed","base":"10s"},"payload":{"n":1}}"#;
    served.expect(201, "PUT", TASK, put);
    let leased = served.lease("close", 1);
    assert_eq!(served.say("close", "nack", &[&leased[0]["token"]]), ["nacked"]);
    assert_eq!(served.counts("close"), [1, 0, 0], "it waits");
    served.advance("10s");
    let leased = served.lease("close", 1);
    assert_eq!(leased[0]["attempt"], 2);
    served.advance("30s");
    let task = served.expect(200, "GET", TASK, "");
    assert_eq!(
        (&task["state"], &task["reason"], &task["attempt"]),
        (&json!("dead"), &json!("max_attempts"), &json!(2))
    );
    let hows: Vec<&Value> = task["failures"].as_array().expect("a list").iter().map(|f| &f["how"]).collect();
    assert_eq!(hows, [&json!("nacked"), &json!("lease_ended")]);
    assert_eq!(task["payload"], json!({"n":1}));
    assert_eq!(dead_keys(&served), ["order:1"]);
    assert_eq!(served.expect(200, "GET", "/v1/queues/close", "")["dead"], 1);
    assert_eq!(served.expect(200, "GET", "/v1/queues/close/tasks", "")["tasks"], json!([]));
    let listed = served.expect(200, "GET", "/v1/queues/close/tasks?state=dead", "");
    assert_eq!(listed["tasks"][0]["key"], "order:1");
    served.call("PATCH", TASK, r#"{"delay":"1s"}"#).assert_problem(409, "dead", "redrive");
    assert_eq!(served.expect(200, "DELETE", TASK, "")["result"], "cancelled");
    assert_eq!(dead_keys(&served), Vec::<String>::new());
}

#[test]
fn a_reason_is_kept_with_the_failure() {
    let served = Served::memory();
    let task = kill(&served, "order:1");
    assert_eq!(task["failures"][0]["reason"], "card refused");
}

#[test]
fn a_task_that_no_worker_takes_in_time_expires() {
    let served = Served::memory();
    let made = served.expect(201, "PUT", TASK, r#"{"delay":"10s","expire_after":"1m"}"#);
    assert_eq!(made["state"], "scheduled");
    served.advance("59999ms");
    assert_eq!(served.counts("close"), [0, 1, 0]);
    served.advance("1ms");
    let task = served.expect(200, "GET", TASK, "");
    assert_eq!((&task["state"], &task["reason"]), (&json!("dead"), &json!("expired")));
    let refused = served.call("PUT", TASK, r#"{"delay":"1m","expire_after":"1m"}"#);
    refused.assert_problem(400, "expires-first", "longer");
}

#[test]
fn one_dead_task_is_redriven_by_key_or_id() {
    let served = Served::memory();
    let dead = kill(&served, "order:1");
    let task = served.expect(200, "POST", REDRIVE, r#"{"key":"order:1"}"#);
    assert_eq!((&task["state"], &task["attempt"], &task["id"]), (&json!("ready"), &json!(0), &dead["id"]));
    served.call("POST", REDRIVE, r#"{"key":"order:1"}"#).assert_problem(404, "not-found", "dead");
    kill(&served, "order:1");
    // A new task has the key, so the old one cannot be redriven.
    served.expect(201, "PUT", TASK, r#"{"delay":"1h"}"#);
    let by_id = json!({ "id": dead["id"] }).to_string();
    served.call("POST", REDRIVE, &by_id).assert_problem(409, "live", "cancel");
    served.expect(200, "DELETE", TASK, "");
    assert_eq!(served.expect(200, "POST", REDRIVE, &by_id)["id"], dead["id"]);
    served.call("POST", REDRIVE, r#"{"id":99}"#).assert_problem(404, "not-found", "dead");
}

#[test]
fn some_or_all_dead_tasks_are_redriven_in_one_call() {
    let served = Served::memory();
    for key in ["a", "b", "c", "d"] {
        kill(&served, key);
        served.advance("1s");
    }
    served.expect(201, "PUT", "/v1/queues/close/tasks/b", r#"{"delay":"1h"}"#);
    let answer = served.expect(200, "POST", REDRIVE, r#"{"keys":["a","b","nobody"]}"#);
    assert_eq!(answer["results"], json!(["redriven", "not_found", "not_found"]), "b leads to a live task");
    assert_eq!(dead_keys(&served), ["b", "c", "d"]);
    let answer = served.expect(200, "POST", REDRIVE, "");
    let expected =
        json!({"matched":2,"redriven":2,"results":["redriven","redriven"],"more":false,"keyless":1});
    assert_eq!(answer, expected, "b has lost its key to a live task");
    assert_eq!(served.counts("close"), [1, 3, 0]);
    assert_eq!(dead_keys(&served), ["b"]);
}

/// A dead task whose key a later task took is out of reach by its key, also when the later task has ended.
#[test]
fn a_cancel_of_dead_tasks_finds_those_without_their_keys() {
    let served = Served::memory();
    kill(&served, "a");
    kill(&served, "b");
    let later = "/v1/queues/close/tasks/a";
    served.expect(201, "PUT", later, r#"{"delay":"1h"}"#);
    let cancel = r#"{"filter":{"state":"dead"}}"#;
    let answer = served.expect(200, "POST", "/v1/queues/close/cancel", cancel);
    assert_eq!(answer, json!({"matched":2,"cancelled":2}));
    assert_eq!(dead_keys(&served), Vec::<String>::new());
    assert_eq!(served.expect(200, "GET", later, "")["state"], "scheduled", "the later task stays");
}

#[test]
fn the_dead_are_forgotten_after_thirty_days() {
    let served = Served::memory();
    kill(&served, "order:1");
    served.advance("29d");
    assert_eq!(dead_keys(&served), ["order:1"]);
    served.advance("1d");
    assert_eq!(dead_keys(&served), Vec::<String>::new());
    served.call("GET", TASK, "").assert_problem(404, "not-found", "");
}
