//! Emptying and deleting a queue.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::bulk::over;
use crate::served::Served;

const PURGE: &str = "/v1/queues/q/purge";

fn put(served: &Served, key: &str, body: &str) {
    served.call("PUT", &format!("/v1/queues/q/tasks/{key}"), body);
}

/// Puts a task with this key and makes it dead.
fn kill(served: &Served, key: &str) {
    put(served, key, r#"{"retry":{"max_attempts":1}}"#);
    let leased = served.lease("q", 1);
    assert_eq!(leased[0]["key"], key);
    assert_eq!(served.say("q", "nack", &[&leased[0]["token"]]), ["nacked"]);
}

fn dead(served: &Served) -> Value {
    served.expect(200, "GET", "/v1/queues/q", "")["dead"].clone()
}

#[test]
fn a_purge_removes_live_and_dead_tasks_and_nothing_else() {
    let served = Served::memory();
    kill(&served, "a");
    // The key of this dead task belongs to a live task now.
    kill(&served, "b");
    put(&served, "b", r#"{"delay":"1h"}"#);
    put(&served, "c", "");
    let leased = served.lease("q", 1);
    put(&served, "d", r#"{"timeline":[{"at":"2090-01-01T00:00:00Z"},{"at":"2091-01-01T00:00:00Z"}]}"#);
    served.expect(200, "PUT", "/v1/queues/q", r#"{"max_in_flight":3}"#);
    served.expect(201, "PUT", "/v1/queues/q/schedules/s", r#"{"every":"1h"}"#);
    served.call("PUT", "/v1/queues/other/tasks/a", "");
    assert_eq!(served.expect(200, "POST", PURGE, r#"{"dry_run":true}"#), json!({"matched": 5, "purged": 0}));
    assert_eq!((served.counts("q"), dead(&served)), ([2, 0, 1], json!(2)));
    let answer = served.expect(200, "POST", PURGE, "");
    assert_eq!(answer, json!({"matched": 5, "purged": 4, "skipped": {"leased": 1}}));
    assert_eq!((served.counts("q"), dead(&served)), ([0, 0, 1], json!(0)));
    let answer = served.expect(200, "POST", PURGE, r#"{"revoke":true}"#);
    assert_eq!(answer, json!({"matched": 1, "purged": 1}));
    assert_eq!(served.say("q", "ack", &[&leased[0]["token"]]), ["revoked"]);
    assert_eq!(served.expect(200, "POST", PURGE, ""), json!({"matched": 0, "purged": 0}));
    assert_eq!(served.counts("other"), [0, 1, 0]);
    assert_eq!(served.expect(200, "GET", "/v1/queues/q", "")["max_in_flight"], json!(3));
    served.expect(200, "GET", "/v1/queues/q/schedules/s", "");
    for (body, what) in
        [(r#"{"filter":{}}"#, "a filter"), (r#"{"dry_run":1}"#, "no boolean"), ("[]", "a list")]
    {
        served.call("POST", PURGE, body).assert_problem(400, "bad-request", what);
    }
    let own = served.call("POST", "/v1/queues/%24jobs/purge", "");
    own.assert_problem(403, "own-queue", "the server's own");
}

#[test]
fn a_purge_of_many_is_a_job_that_also_removes_dead_tasks() {
    let served = Served::memory();
    let mut lines = String::new();
    for n in 0..10_000 {
        writeln!(lines, r#"{{"op":"put","key":"k{n}","delay":"1h"}}"#).expect("a string takes all");
    }
    kill(&served, "x");
    kill(&served, "y");
    assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).status, 200);
    let started = served.call("POST", PURGE, "");
    assert_eq!(started.status, 202, "{}", started.text());
    let job = started.json();
    assert_eq!((&job["action"], &job["of"]), (&json!("purge"), &json!(10_002)));
    let done = over(&served, &job);
    assert_eq!((&done["state"], &done["matched"]), (&json!("done"), &json!(10_002)));
    assert_eq!((&done["purged"], &done["looked_at"]), (&json!(10_002), &json!(10_002)));
    assert_eq!((served.counts("q"), dead(&served)), ([0, 0, 0], json!(0)));
}

fn listed(served: &Served) -> Vec<String> {
    let queues = served.expect(200, "GET", "/v1/queues", "");
    let queues = queues["queues"].as_array().expect("an array");
    queues.iter().map(|queue| queue["queue"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn only_an_empty_queue_is_deleted() {
    let served = Served::memory();
    let delete = || served.call("DELETE", "/v1/queues/q", "");
    served.expect(200, "PUT", "/v1/queues/q", r#"{"max_in_flight":3}"#);
    served.expect(200, "POST", "/v1/queues/q/pause", "");
    served.expect(200, "POST", "/v1/queues/q/resume", "");
    kill(&served, "a");
    put(&served, "b", r#"{"delay":"1h"}"#);
    put(&served, "c", r#"{"delay":"2h"}"#);
    served.expect(201, "PUT", "/v1/queues/q/schedules/s", r#"{"every":"1h"}"#);
    let refused = delete();
    refused.assert_problem(409, "queue-not-empty", "it has all kinds");
    let counts = |problem: &Value| ["tasks", "dead", "schedules"].map(|member| problem[member].clone());
    assert_eq!(counts(&refused.json()), [json!(2), json!(1), json!(1)]);
    served.expect(200, "POST", PURGE, "");
    let refused = delete();
    refused.assert_problem(409, "queue-not-empty", "a schedule is left");
    assert_eq!(counts(&refused.json()), [json!(0), json!(0), json!(1)]);
    served.expect(200, "DELETE", "/v1/queues/q/schedules/s", "");
    assert_eq!(delete().json(), json!({"result": "deleted"}));
    assert!(!listed(&served).contains(&"q".to_owned()), "{:?}", listed(&served));
    assert_eq!(served.expect(200, "GET", "/v1/queues/q", "")["max_in_flight"], Value::Null);
    assert_eq!(delete().status, 200, "twice is as good as once");
    put(&served, "d", "");
    assert!(listed(&served).contains(&"q".to_owned()), "it is there again at its next use");
    served.call("DELETE", "/v1/queues/%24jobs", "").assert_problem(403, "own-queue", "the server's own");
}
