//! Moves of many tasks, and the jobs that take over when they are too many for a call.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tickwheel_postgres::ClusterClock;
use tickwheel_server::{Config, Store, Tokens};

use crate::bulk::over;
use crate::databases;
use crate::served::{Served, on_any_port, virtual_memory};

const MOVE: &str = "/v1/queues/q/move";
/// The year 2100: no such task becomes due in a test.
const BASE_MS: u64 = 4_102_444_800_000;
const HOUR_MS: u64 = 3_600_000;

fn put(served: &Served, key: &str, body: &str) {
    served.call("PUT", &format!("/v1/queues/q/tasks/{key}"), body);
}

fn moved(served: &Served, body: &Value) -> Value {
    served.expect(200, "POST", MOVE, &body.to_string())
}

/// The due time of the task with this key, as the server shows it.
fn due_at(served: &Served, key: &str) -> String {
    let task = served.expect(200, "GET", &format!("/v1/queues/q/tasks/{key}"), "");
    task["due_at"].as_str().expect("a time").to_owned()
}

fn at(ms: u64) -> String {
    tickwheel_api::time::format(i64::try_from(ms).expect("before the year 9999"))
}

#[test]
fn the_tasks_of_the_filter_are_moved_and_keep_everything_else() {
    let served = Served::memory();
    let body = json!({"at_ms": BASE_MS, "tags": ["vip"], "payload": [1], "priority": 7});
    put(&served, "a", &body.to_string());
    put(&served, "b", &json!({"at_ms": BASE_MS + 5}).to_string());
    let before = served.expect(200, "GET", "/v1/queues/q/tasks/a", "");
    let vip = json!({"filter": {"tag": "vip"}, "by": "1h", "dry_run": true});
    assert_eq!(moved(&served, &vip), json!({"matched": 1, "moved": 0}));
    assert_eq!(due_at(&served, "a"), at(BASE_MS));
    let vip = json!({"filter": {"tag": "vip"}, "by": "1h"});
    assert_eq!(moved(&served, &vip), json!({"matched": 1, "moved": 1}));
    let mut after = served.expect(200, "GET", "/v1/queues/q/tasks/a", "");
    assert_eq!(after["due_at"], json!(at(BASE_MS + HOUR_MS)));
    assert!(after["version"].as_u64() > before["version"].as_u64());
    (after["due_at"], after["version"]) = (before["due_at"].clone(), before["version"].clone());
    assert_eq!(after, before);
    assert_eq!(due_at(&served, "b"), at(BASE_MS + 5), "it has no such tag");

    let all = json!({"filter": {}, "by": "-30m"});
    assert_eq!(moved(&served, &all), json!({"matched": 2, "moved": 2}));
    assert_eq!(due_at(&served, "a"), at(BASE_MS + HOUR_MS / 2));
    assert_eq!(due_at(&served, "b"), at(BASE_MS + 5 - HOUR_MS / 2));
    let to = json!({"filter": {}, "at_ms": BASE_MS + 9});
    assert_eq!(moved(&served, &to), json!({"matched": 2, "moved": 2}));
    assert_eq!([due_at(&served, "a"), due_at(&served, "b")], [at(BASE_MS + 9), at(BASE_MS + 9)]);
    let far_back = json!({"filter": {}, "by": "-36500d"});
    assert_eq!(moved(&served, &far_back), json!({"matched": 2, "moved": 2}));
    assert_eq!(served.counts("q"), [0, 2, 0], "none is due before now, so all are ready");
    let delay = json!({"filter": {"state": "ready"}, "delay": "10s"});
    assert_eq!(moved(&served, &delay), json!({"matched": 2, "moved": 2}));
    assert_eq!(due_at(&served, "a"), due_at(&served, "b"), "one instant for all");
    assert_eq!(served.counts("q"), [2, 0, 0]);
    served.advance("9999ms");
    assert_eq!(served.counts("q"), [2, 0, 0]);
    served.advance("1ms");
    assert_eq!(served.counts("q"), [0, 2, 0]);
}

#[test]
fn tasks_that_cannot_be_moved_are_counted_by_reason() {
    let served = Served::memory();
    put(&served, "leased", "");
    let leased = served.lease("q", 1);
    put(&served, "plan", r#"{"timeline":[{"at":"2090-01-01T00:00:00Z"},{"at":"2091-01-01T00:00:00Z"}]}"#);
    put(&served, "expires", r#"{"delay":"1h","expire_after":"2h"}"#);
    put(&served, "far", r#"{"delay":"36400d"}"#);
    put(&served, "plain", r#"{"delay":"1h"}"#);
    put(&served, "dead", r#"{"retry":{"max_attempts":1}}"#);
    let dead = served.lease("q", 1);
    assert_eq!(served.say("q", "nack", &[&dead[0]["token"]]), ["nacked"]);
    let all = json!({"filter": {}, "by": "300d"});
    let skipped = json!({"leased": 1, "timeline": 1, "expires_first": 1, "too_far": 1});
    assert_eq!(moved(&served, &all), json!({"matched": 5, "moved": 1, "skipped": skipped}));
    let revoke = json!({"filter": {"state": "leased"}, "delay": "1h", "revoke": true});
    assert_eq!(moved(&served, &revoke), json!({"matched": 1, "moved": 1}));
    assert_eq!(served.say("q", "ack", &[&leased[0]["token"]]), ["revoked"]);
    assert_eq!(served.counts("q"), [5, 0, 0]);
}

#[test]
fn a_move_must_make_sense() {
    let served = Served::memory();
    put(&served, "a", r#"{"delay":"1h"}"#);
    for body in [
        "",
        "{}",
        r#"{"filter":{}}"#,
        r#"{"by":"1h"}"#,
        r#"{"filter":{},"by":"1h","at_ms":1}"#,
        r#"{"filter":{},"by":"0s"}"#,
        r#"{"filter":{},"delay":"-1h"}"#,
        r#"{"filter":{"state":"dead"},"by":"1h"}"#,
    ] {
        served.call("POST", MOVE, body).assert_problem(400, "bad-request", body);
    }
    let with_version = served.call_with("POST", MOVE, &[("If-Match", "\"9\"")], r#"{"filter":{},"by":"1h"}"#);
    with_version.assert_problem(400, "bad-request", "If-Match");
    let own = served.call("POST", "/v1/queues/%24jobs/move", r#"{"filter":{},"by":"1h"}"#);
    own.assert_problem(403, "own-queue", "the server's own");
}

#[test]
fn max_delay_limits_moves_as_it_limits_puts() {
    let tokens = Tokens::parse("a-token-of-a-producer rights=produce,read max_delay=2h\n").expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let bearer = [("authorization", "Bearer a-token-of-a-producer")];
    let call = |method: &str, path: &str, body: &str| served.call_with(method, path, &bearer, body);
    assert_eq!(call("PUT", "/v1/queues/q/tasks/a", r#"{"delay":"1h"}"#).status, 201);
    assert_eq!(call("PUT", "/v1/queues/q/tasks/b", r#"{"delay":"2h"}"#).status, 201);
    for to in [r#""delay":"3h""#, r#""at_ms":4102444800000"#] {
        let refused = call("POST", MOVE, &format!(r#"{{"filter":{{}},{to}}}"#));
        refused.assert_problem(400, "too-far", to);
    }
    let some = call("POST", MOVE, r#"{"filter":{},"by":"1h"}"#).json();
    assert_eq!(some, json!({"matched": 2, "moved": 1, "skipped": {"too_far": 1}}));
}

/// Puts 10,500 tasks at intervals of one second. When the tasks of the first pages are moved by an hour, they come
/// between those of later pages.
fn put_a_row(served: &Served) {
    let mut lines = String::new();
    for n in 0..10_500 {
        let due = BASE_MS + n * 1_000;
        writeln!(lines, r#"{{"op":"put","key":"k{n}","at_ms":{due}}}"#).expect("a string takes all");
        if n == 5_999 {
            assert_eq!(served.call("POST", "/v1/queues/q/batch", &std::mem::take(&mut lines)).status, 200);
        }
    }
    assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).status, 200);
}

/// Checks that each task of this row is due `hours` after its first due time.
#[track_caller]
fn assert_row_is(served: &Served, hours: u64) {
    let (mut seen, mut cursor) = (0, String::new());
    loop {
        let page = served.expect(200, "GET", &format!("/v1/queues/q/tasks?limit=1000{cursor}"), "");
        for task in page["tasks"].as_array().expect("an array") {
            let Some(n) = task["key"].as_str().expect("a key").strip_prefix('k') else { continue };
            let due = BASE_MS + n.parse::<u64>().expect("a number") * 1_000 + hours * HOUR_MS;
            assert_eq!(task["due_at"], json!(at(due)), "{}", task["key"]);
            seen += 1;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, 10_500);
}

#[test]
fn a_job_moves_each_task_once_though_it_meets_moved_tasks() {
    let served = Served::memory();
    put_a_row(&served);
    let started = served.call("POST", MOVE, r#"{"filter":{},"by":"1h"}"#);
    assert_eq!(started.status, 202, "{}", started.text());
    let job = started.json();
    assert_eq!((&job["action"], &job["moved"]), (&json!("move"), &json!(0)));
    assert_eq!(started.header("location"), Some(format!("/v1/jobs/{}", job["id"]).as_str()));
    let done = over(&served, &job);
    assert_eq!((&done["state"], &done["matched"]), (&json!("done"), &json!(10_500)));
    assert_eq!((&done["moved"], &done["skipped"]), (&json!(10_500), &Value::Null));
    assert_row_is(&served, 1);
}

/// Makes the directory look as if the server was killed after it had moved tasks and before it stored that. The job's
/// record says that nothing is done yet.
fn as_if_not_kept(directory: &std::path::Path, job: &Value) {
    let queue = databases::opened(directory, ClusterClock::Real);
    let id = job["id"].as_u64().expect("a number");
    let (_, value) =
        queue.jobs().wait().expect("read").into_iter().find(|(of, _)| *of == id).expect("it is kept");
    let mut kept: Value = serde_json::from_slice(&value).expect("JSON");
    assert_eq!((&kept["job"], &kept["request"]["by"]), (job, &json!("1h")));
    for (member, value) in [("state", json!("running")), ("looked_at", json!(0)), ("moved", json!(0))] {
        kept["job"][member] = value;
    }
    kept["job"]["matched"] = json!(0);
    kept["job"]["done"] = json!(0);
    kept["after"] = Value::Null;
    queue.keep_job(id, kept.to_string().into_bytes()).wait().expect("kept");
    queue.close();
}

#[test]
fn a_job_whose_progress_was_lost_moves_nothing_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = || Served::start(on_any_port(Store::Dir(dir.path().to_owned()))).expect("started");
    let served = start();
    put_a_row(&served);
    let job = served.call("POST", MOVE, r#"{"filter":{},"by":"1h"}"#).json();
    let done = over(&served, &job);
    assert_eq!(done["moved"], json!(10_500));
    put(&served, "later", &json!({"at_ms": BASE_MS}).to_string());
    served.stop();
    as_if_not_kept(dir.path(), &done);

    let served = start();
    let again = over(&served, &job);
    assert_eq!((&again["state"], &again["matched"]), (&json!("done"), &json!(0)), "{again}");
    assert_eq!(again["moved"], json!(0));
    assert_row_is(&served, 1);
    assert_eq!(due_at(&served, "later"), at(BASE_MS), "it was put after the job began");
}
