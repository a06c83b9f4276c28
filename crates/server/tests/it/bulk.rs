//! Cancels of many tasks, and the jobs that take over when they are too many for a call.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use tickwheel_postgres::ClusterClock;
use tickwheel_server::Store;

use crate::databases;
use crate::served::{Served, on_any_port};

const CANCEL: &str = "/v1/queues/q/cancel";

fn put(served: &Served, key: &str, body: &str) {
    served.call("PUT", &format!("/v1/queues/q/tasks/{key}"), body);
}

fn cancel(served: &Served, body: &Value) -> Value {
    served.expect(200, "POST", CANCEL, &body.to_string())
}

#[test]
fn only_the_tasks_of_the_filter_are_cancelled() {
    let served = Served::memory();
    for (key, body) in [
        ("a", r#"{"delay":"1h","tags":["vip"]}"#),
        ("b", r#"{"delay":"1h"}"#),
        ("c", r#"{"delay":"9h","tags":["x","vip"]}"#),
        ("d", r#"{"tags":["vip"]}"#),
    ] {
        put(&served, key, body);
    }
    let filter = json!({"filter": {"tag": "vip"}, "dry_run": true});
    assert_eq!(cancel(&served, &filter), json!({"matched": 3, "cancelled": 0}));
    assert_eq!(served.counts("q"), [3, 1, 0]);
    let leased = served.lease("q", 1);
    let filter = json!({"filter": {"tag": "vip"}});
    let answer = cancel(&served, &filter);
    assert_eq!(answer, json!({"matched": 3, "cancelled": 2, "skipped": {"leased": 1}}), "a worker has one");
    assert_eq!(served.say("q", "extend", &[&leased[0]["token"]]), ["extended"]);
    let revoked = json!({"filter": {"state": "leased"}, "revoke": true});
    assert_eq!(cancel(&served, &revoked), json!({"matched": 1, "cancelled": 1}));
    assert_eq!(served.say("q", "ack", &[&leased[0]["token"]]), ["revoked"]);
    assert_eq!(cancel(&served, &json!({"filter": {}})), json!({"matched": 1, "cancelled": 1}));
    assert_eq!(served.counts("q"), [0, 0, 0]);
}

#[test]
fn a_filter_is_required_and_must_make_sense() {
    let served = Served::memory();
    put(&served, "a", "");
    for body in ["", "{}", r#"{"filter":null}"#, r#"{"filter":{"keys":["a"]}}"#, r#"{"tag":"x"}"#] {
        served.call("POST", CANCEL, body).assert_problem(400, "bad-request", body);
    }
    let with_version = served.call_with("POST", CANCEL, &[("If-Match", "\"9\"")], r#"{"filter":{}}"#);
    with_version.assert_problem(400, "bad-request", "If-Match");
    assert_eq!(served.counts("q"), [0, 1, 0]);
    for (method, job) in [("GET", "1"), ("DELETE", "1"), ("GET", "01"), ("GET", "x"), ("GET", "-1")] {
        served.call(method, &format!("/v1/jobs/{job}"), "").assert_problem(404, "no-job", job);
    }
}

pub(crate) fn put_ten_thousand(served: &Served, key: &str) {
    let mut lines = String::new();
    for n in 0..10_000 {
        writeln!(lines, r#"{{"op":"put","key":"{key}{n}","delay":"1h"}}"#).expect("a string takes all");
    }
    assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).status, 200);
}

/// Asks until the job has ended. The API has no notice of the end.
pub(crate) fn over(served: &Served, job: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let now = served.expect(200, "GET", &format!("/v1/jobs/{}", job["id"]), "");
        if now["state"] != "running" {
            return now;
        }
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "it is still {now}");
        std::thread::yield_now();
    }
}

#[test]
fn above_ten_thousand_a_job_cancels_and_leaves_later_tasks_alone() {
    let served = Served::memory();
    put_ten_thousand(&served, "k");
    put(&served, "one-more", r#"{"delay":"1h"}"#);
    let body = json!({"filter": {}}).to_string();
    let dry = served.call("POST", CANCEL, r#"{"filter":{},"dry_run":true}"#);
    assert_eq!(dry.status, 202);
    let counted = over(&served, &dry.json());
    assert_eq!((&counted["matched"], &counted["cancelled"]), (&json!(10_001), &json!(0)));
    let started = served.call("POST", CANCEL, &body);
    assert_eq!(started.status, 202, "{}", started.text());
    let job = started.json();
    assert_eq!(started.header("location"), Some(format!("/v1/jobs/{}", job["id"]).as_str()));
    put(&served, "later", r#"{"delay":"9h"}"#);
    let done = over(&served, &job);
    assert_eq!((&done["state"], &done["matched"]), (&json!("done"), &json!(10_001)));
    assert_eq!((&done["cancelled"], &done["looked_at"]), (&json!(10_001), &done["of"]));
    assert_eq!((&done["kind"], &done["done"]), (&json!("cancel"), &json!(10_001)));
    assert_eq!(served.expect(200, "GET", "/v1/jobs", "")["jobs"][0], done, "a row of the list is the job");
    assert_eq!(served.counts("q"), [1, 0, 0]);
    let stopped = served.expect(200, "DELETE", &format!("/v1/jobs/{}", job["id"]), "");
    assert_eq!(stopped["state"], "done", "it was over");
}

/// Makes the directory look as if the server was killed in the middle of the job. The record of a job that only
/// counted tasks is changed to that of one that cancels them.
fn as_if_killed(directory: &std::path::Path, job: &Value) {
    let queue = databases::opened(directory, ClusterClock::Real);
    let id = job["id"].as_u64().expect("a number");
    let (_, value) =
        queue.jobs().wait().expect("read").into_iter().find(|(of, _)| *of == id).expect("it is kept");
    let mut kept: Value = serde_json::from_slice(&value).expect("JSON");
    assert_eq!((&kept["job"], &kept["request"]["dry_run"]), (job, &json!(true)));
    kept["job"]["state"] = json!("running");
    kept["job"]["looked_at"] = json!(7);
    kept["job"]["cancelled"] = json!(5);
    kept["job"]["done"] = json!(5);
    kept["job"]["matched"] = json!(6);
    kept["request"]["dry_run"] = json!(false);
    queue.keep_job(id, kept.to_string().into_bytes()).wait().expect("kept");
    queue.close();
}

#[test]
fn a_job_continues_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = || Served::start(on_any_port(Store::Dir(dir.path().to_owned()))).expect("started");
    let served = start();
    put_ten_thousand(&served, "k");
    put(&served, "one-more", r#"{"delay":"1h"}"#);
    let job = served.call("POST", CANCEL, r#"{"filter":{},"dry_run":true}"#).json();
    let counted = over(&served, &job);
    put(&served, "later", r#"{"delay":"9h"}"#);
    served.stop();
    as_if_killed(dir.path(), &counted);

    let served = start();
    let done = over(&served, &job);
    let of = |member: &str| done[member].as_u64().expect("a number");
    assert_eq!((&done["state"], of("looked_at")), (&json!("done"), 10_001));
    assert_eq!((of("matched"), of("cancelled")), (10_001 + 6, 10_001 + 5), "it goes on counting");
    assert_eq!(served.counts("q"), [1, 0, 0], "what was put after its start is left alone");
    served.stop();
    let served = start();
    assert_eq!(over(&served, &job), done, "it is over, and known");
}

#[test]
fn a_stopped_job_stays_stopped() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = || Served::start(on_any_port(Store::Dir(dir.path().to_owned()))).expect("started");
    let served = start();
    for part in 0..3 {
        put_ten_thousand(&served, &format!("{part}-"));
    }
    let job = served.call("POST", CANCEL, r#"{"filter":{}}"#).json();
    let stopped = served.expect(200, "DELETE", &format!("/v1/jobs/{}", job["id"]), "");
    assert_eq!(stopped["state"], "stopped", "30 pages are not done at once");
    served.stop();
    let served = start();
    assert_eq!(over(&served, &job)["state"], "stopped");
    assert_ne!(served.counts("q"), [0, 0, 0]);
}

#[test]
fn jobs_can_be_read_and_the_oldest_are_forgotten() {
    let served = Served::memory();
    put_ten_thousand(&served, "k");
    put(&served, "one-more", r#"{"delay":"1h"}"#);
    let start = || {
        let job = served.call("POST", CANCEL, r#"{"filter":{"tag":"none"},"dry_run":true}"#);
        assert_eq!(job.status, 200, "nothing is found: {}", job.text());
        let job = served.call("POST", CANCEL, r#"{"filter":{},"dry_run":true}"#).json();
        over(&served, &job)
    };
    let first = start();
    for _ in 1..100 {
        start();
    }
    assert_eq!(over(&served, &first), first);
    let last = start();
    let gone = served.call("GET", &format!("/v1/jobs/{}", first["id"]), "");
    gone.assert_problem(404, "no-job", "it was the oldest of 101");
    let all = served.expect(200, "GET", "/v1/jobs", "");
    let all = all["jobs"].as_array().expect("an array");
    assert_eq!((all.len(), &all[0]), (100, &last), "the newest first");
    let queues = served.expect(200, "GET", "/v1/queues", "");
    assert!(!queues.to_string().contains("$jobs"), "jobs are in no queue: {queues}");
}

#[test]
fn only_the_server_changes_its_jobs() {
    let served = Served::memory();
    for (method, path, body) in [
        ("PUT", "/tasks/1", ""),
        ("POST", "/tasks", ""),
        ("DELETE", "/tasks/1", ""),
        ("POST", "/cancel", r#"{"filter":{}}"#),
        ("POST", "/move", r#"{"filter":{},"by":"1h"}"#),
        ("POST", "/purge", ""),
        ("DELETE", "", ""),
        ("POST", "/lease", ""),
        ("POST", "/pause", ""),
        ("PUT", "/schedules/s", r#"{"cron":"0 2 * * *"}"#),
        ("PUT", "", "{}"),
    ] {
        let refused = served.call(method, &format!("/v1/queues/%24jobs{path}"), body);
        refused.assert_problem(403, "own-queue", path);
        assert!(refused.text().contains("/v1/jobs"), "{}", refused.text());
    }
    assert_eq!(served.counts("$jobs"), [0, 0, 0]);
}

#[test]
fn progress_counts_only_tasks_of_the_queue() {
    let served = Served::memory();
    put_ten_thousand(&served, "k");
    put(&served, "one-more", r#"{"delay":"1h"}"#);
    // Tasks of another queue are due between them.
    let mut lines = String::new();
    for n in 0..5_000 {
        writeln!(lines, r#"{{"op":"put","key":"o{n}","delay":"1h"}}"#).expect("a string takes all");
    }
    assert_eq!(served.call("POST", "/v1/queues/other/batch", &lines).status, 200);
    let job = served.call("POST", CANCEL, r#"{"filter":{}}"#).json();
    let begun = Instant::now();
    loop {
        let now = served.expect(200, "GET", &format!("/v1/jobs/{}", job["id"]), "");
        assert_eq!(
            (&now["looked_at"], &now["of"]),
            (&now["matched"], &json!(10_001)),
            "all it looks at match: {now}"
        );
        if now["state"] != "running" {
            return;
        }
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "it is still {now}");
    }
}
