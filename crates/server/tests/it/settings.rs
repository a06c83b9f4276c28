//! Settings of queues, pauses and drains.

use serde_json::{Value, json};

use tickwheel_server::Store;

use crate::served::{Served, on_any_port};

const QUEUE: &str = "/v1/queues/exports";

fn put(served: &Served, key: &str, body: &str) {
    served.expect(201, "PUT", &format!("{QUEUE}/tasks/{key}"), body);
}

fn leased_keys(served: &Served, max: usize) -> Vec<String> {
    let leased = served.lease("exports", max);
    leased.iter().map(|task| task["key"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn settings_are_replaced_as_a_whole_and_shown_beside_the_counts() {
    let served = Served::memory();
    let unused = served.expect(200, "GET", QUEUE, "");
    let counts = json!({
        "queue": "exports", "scheduled": 0, "ready": 0, "leased": 0, "dead": 0, "paused": false
    });
    let mut missing = counts.clone();
    missing["exists"] = false.into();
    assert_eq!(unused, missing);
    let settings = json!({
        "max_in_flight": 2, "max_in_flight_per_group": 1, "rate": "100/m", "max_backlog": 1000,
        "default_lease": "5m", "retry": {"max_attempts": 3}, "history": {"keep": "1h"}
    });
    let laid_down = served.expect(200, "PUT", QUEUE, &settings.to_string());
    assert_eq!((&laid_down["max_in_flight"], &laid_down["burst"]), (&json!(2), &json!(100)));
    assert_eq!(laid_down["retry"]["backoff"], "exponential");
    assert_eq!(laid_down["history"], json!({"keep": "1h", "keys": 100_000}));
    assert_eq!(served.expect(200, "GET", QUEUE, ""), laid_down);
    let all = served.expect(200, "GET", "/v1/queues", "");
    assert_eq!(all["queues"][0]["queue"], "exports", "a queue with settings is there without tasks");
    assert_eq!(served.expect(200, "PUT", QUEUE, "{}"), counts);
    assert_eq!(served.expect(200, "GET", "/v1/queues", "")["queues"], json!([counts]), "for an hour");
    served.advance("1h");
    assert_eq!(served.expect(200, "GET", "/v1/queues", "")["queues"], json!([]));
    assert_eq!(served.expect(200, "GET", QUEUE, ""), missing, "as before its first use");
}

#[test]
fn a_queue_exists_with_a_task_with_settings_and_with_a_schedule_alone() {
    let served = Served::memory();
    let exists = |queue: &str| {
        let shown = served.expect(200, "GET", &format!("/v1/queues/{queue}"), "");
        shown.get("exists").is_none_or(|exists| exists == true)
    };
    served.expect(201, "PUT", "/v1/queues/tasks/tasks/a", r#"{"delay":"1m"}"#);
    served.expect(200, "PUT", "/v1/queues/settings", r#"{"max_in_flight":2}"#);
    served.expect(200, "POST", "/v1/queues/paused/pause", "");
    served.expect(201, "PUT", "/v1/queues/schedules/schedules/s", r#"{"every":"1h"}"#);
    for queue in ["tasks", "settings", "paused", "schedules"] {
        assert!(exists(queue), "{queue}");
    }
    assert!(!exists("Tasks"), "names are case-sensitive");
    served.expect(200, "DELETE", "/v1/queues/tasks/tasks/a", "");
    assert!(exists("tasks"), "for an hour, as in the list");
    served.advance("1h");
    assert!(!exists("tasks"));
    served.expect(200, "DELETE", "/v1/queues/settings", "");
    assert!(!exists("settings"), "it was deleted, so no list names it");
}

#[test]
fn a_patch_changes_only_named_settings_and_an_empty_put_nothing() {
    let served = Served::memory();
    served.expect(200, "PUT", QUEUE, r#"{"max_in_flight":2,"default_lease":"5m"}"#);
    let patched = served.expect(200, "PATCH", QUEUE, r#"{"max_in_flight":null,"rate":"5/s"}"#);
    assert_eq!((&patched["max_in_flight"], &patched["rate"]), (&Value::Null, &json!("5/s")));
    assert_eq!(patched["default_lease"], "5m");
    served.call("PUT", QUEUE, " ").assert_problem(400, "bad-request", "");
    served.call("PATCH", QUEUE, r#"{"rate":7}"#).assert_problem(400, "bad-request", "");
    assert_eq!(served.expect(200, "GET", QUEUE, ""), patched);
}

#[test]
fn bad_settings_are_named_and_change_nothing() {
    let served = Served::memory();
    served.expect(200, "PUT", QUEUE, r#"{"max_in_flight":2}"#);
    for (body, member) in [
        (r#"{"max_in_flight":0}"#, "max_in_flight"),
        (r#"{"rate":"5 a second"}"#, "rate"),
        (r#"{"max_in_fligth":1}"#, "max_in_fligth"),
        (r#"{"retry":{"base":"x"}}"#, "retry.base"),
    ] {
        let answer = served.call("PUT", QUEUE, body);
        assert_eq!(answer.json()["member"], member, "{body}");
        answer.assert_problem(400, "bad-request", "");
    }
    served.call("POST", &format!("{QUEUE}/pause"), r#"{"for":"-1s"}"#).assert_problem(400, "bad-request", "");
    served.call("POST", &format!("{QUEUE}/drain"), r#"{"now":1}"#).assert_problem(400, "bad-request", "");
    assert_eq!(served.expect(200, "GET", QUEUE, "")["max_in_flight"], 2);
}

#[test]
fn in_flight_limits_hold_for_a_queue_and_its_groups() {
    let served = Served::memory();
    served.expect(
        200,
        "PUT",
        QUEUE,
        r#"{"max_in_flight":2,"max_in_flight_per_group":1,"default_lease":"10m"}"#,
    );
    for (key, user) in [("a1", "ann"), ("a2", "ann"), ("b1", "ben"), ("c1", "cay")] {
        put(&served, key, &json!({ "group": user }).to_string());
    }
    let first = served.lease("exports", 10);
    let keys: Vec<&Value> = first.iter().map(|task| &task["key"]).collect();
    assert_eq!(keys, ["a1", "b1"], "one for each user, and two in all");
    assert_eq!(served.counts("exports"), [0, 2, 2]);
    assert!(leased_keys(&served, 10).is_empty());
    // A slow worker is not a reason to give its task to another.
    served.advance("9m");
    assert_eq!(served.say("exports", "ack", &[&first[1]["token"]]), ["acked"]);
    assert_eq!(leased_keys(&served, 10), ["c1"], "ann has one already");
    assert_eq!(served.say("exports", "ack", &[&first[0]["token"]]), ["acked"]);
    assert_eq!(leased_keys(&served, 10), ["a2"]);
}

#[test]
fn a_rate_follows_the_servers_clock() {
    let served = Served::memory();
    served.expect(200, "PUT", QUEUE, r#"{"rate":"2/s"}"#);
    for n in 0..6 {
        put(&served, &format!("k{n}"), "");
    }
    assert_eq!(leased_keys(&served, 10), ["k0", "k1"]);
    assert!(leased_keys(&served, 10).is_empty());
    served.advance("500ms");
    assert_eq!(leased_keys(&served, 10), ["k2"]);
    served.advance("1h");
    assert_eq!(leased_keys(&served, 10), ["k0", "k1"], "their leases ended, and two may go at once");
}

#[test]
fn a_paused_queue_leases_nothing_and_a_draining_one_takes_no_task() {
    let served = Served::memory();
    put(&served, "k", "");
    assert_eq!(served.expect(200, "POST", &format!("{QUEUE}/pause"), "")["paused"], true);
    assert!(leased_keys(&served, 1).is_empty());
    put(&served, "late", "");
    let paused = served.expect(200, "POST", &format!("{QUEUE}/pause"), r#"{"for":"1m"}"#);
    assert!(paused["paused_until"].as_str().expect("an instant").ends_with('Z'));
    served.advance("1m");
    assert_eq!(leased_keys(&served, 1), ["k"]);
    assert_eq!(served.expect(200, "POST", &format!("{QUEUE}/drain"), "")["draining"], true);
    let new = served.call("PUT", &format!("{QUEUE}/tasks/new"), "");
    new.assert_problem(409, "draining", "resume");
    let lines = served.call("POST", &format!("{QUEUE}/batch"), "{\"op\":\"put\",\"key\":\"new\"}\n");
    assert_eq!(lines.json()["status"], 409);
    served.call("POST", &format!("{QUEUE}/tasks"), "").assert_problem(409, "draining", "resume");
    served.expect(200, "PUT", &format!("{QUEUE}/tasks/late"), r#"{"delay":"0s"}"#);
    assert_eq!(leased_keys(&served, 1), ["late"]);
    let resumed = served.expect(200, "POST", &format!("{QUEUE}/resume"), "");
    assert_eq!((&resumed["paused"], &resumed["draining"]), (&json!(false), &Value::Null));
    put(&served, "new", "");
}

#[test]
fn a_full_backlog_says_when_to_try_again() {
    let served = Served::memory();
    served.expect(200, "PUT", QUEUE, r#"{"max_backlog":1}"#);
    put(&served, "k", r#"{"delay":"1h"}"#);
    let refused = served.call("PUT", &format!("{QUEUE}/tasks/more"), "");
    assert_eq!(refused.header("retry-after"), Some("1"));
    refused.assert_problem(429, "backlog-full", "max_backlog");
    served.expect(200, "DELETE", &format!("{QUEUE}/tasks/k"), "");
    put(&served, "more", "");
}

#[test]
fn settings_and_pauses_survive_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = || Served::start(on_any_port(Store::Dir(dir.path().join("tasks")))).expect("started");
    let served = start();
    served.expect(200, "PUT", QUEUE, r#"{"max_in_flight":2}"#);
    served.expect(200, "POST", &format!("{QUEUE}/pause"), "");
    served.stop();
    let served = start();
    let after = served.expect(200, "GET", QUEUE, "");
    assert_eq!((&after["max_in_flight"], &after["paused"]), (&json!(2), &json!(true)));
}
