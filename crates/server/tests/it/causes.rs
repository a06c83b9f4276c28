//! Causes of death: groups of dead tasks, and redrives and cancels by filter.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tickwheel_postgres::ClusterClock;
use tickwheel_server::Store;

use crate::bulk::over;
use crate::databases;
use crate::searching::keys;
use crate::served::{Served, on_any_port};

const GROUPS: &str = "/v1/queues/q/dead/groups";
const REDRIVE: &str = "/v1/queues/q/dead/redrive";
const CANCEL: &str = "/v1/queues/q/cancel";

/// Puts tasks with one attempt, and nacks each with its reason.
fn kill(served: &Served, tasks: &[(&str, &str)]) {
    for (key, reason) in tasks {
        let body = r#"{"retry":{"max_attempts":1},"tags":["t"],"group":"g"}"#;
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), body);
        let leased = served.lease("q", 1);
        let body = json!({ "tokens": [leased[0]["token"]], "reason": reason }).to_string();
        served.expect(200, "POST", "/v1/queues/q/nack", &body);
        served.advance("1s");
    }
}

/// Lets this many tasks expire at one instant.
fn expire(served: &Served, name: &str, tasks: usize) {
    let numbers: Vec<usize> = (0..tasks).collect();
    for part in numbers.chunks(10_000) {
        let mut lines = String::new();
        for n in part {
            writeln!(lines, r#"{{"op":"put","key":"{name}-{n}","expire_after":"1m"}}"#).expect("a string");
        }
        assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).status, 200);
    }
    served.advance("1m");
}

fn redrive(served: &Served, body: &Value) -> Value {
    served.expect(200, "POST", REDRIVE, &body.to_string())
}

fn dead(served: &Served) -> u64 {
    served.expect(200, "GET", "/v1/queues/q", "")["dead"].as_u64().expect("a number")
}

fn four() -> Served {
    let served = Served::memory();
    kill(
        &served,
        &[
            ("a", "order 503 of \"x\""),
            ("b", "card refused"),
            ("c", "order 500 of 'y'"),
            ("d", "order 500 of `z`"),
        ],
    );
    served
}

#[test]
fn tasks_with_one_cause_are_one_group() {
    let served = four();
    expire(&served, "late", 1);
    let found = served.expect(200, "GET", GROUPS, "");
    assert_eq!((&found["looked_at"], &found["window"]), (&json!(5), &json!("all")));
    let groups = found["groups"].as_array().expect("a list");
    let seen: Vec<_> =
        groups.iter().map(|group| (&group["failure"], &group["count"], &group["reason"])).collect();
    let (nacked, expired) = (json!("max_attempts"), json!("expired"));
    assert_eq!(
        seen,
        [
            (&json!("order # of #"), &json!(3), &nacked),
            (&json!(""), &json!(1), &expired),
            (&json!("card refused"), &json!(1), &nacked)
        ]
    );
    assert_eq!((&groups[0]["how"], &groups[1]["how"]), (&json!("nacked"), &Value::Null));
    let examples: Vec<_> = groups[0]["examples"].as_array().expect("a list").iter().collect();
    assert_eq!(
        (examples.len(), &examples[0]["key"], &examples[0]["text"]),
        (3, &json!("d"), &json!("order 500 of `z`"))
    );
    assert!(groups[0]["first"].as_str() < groups[0]["last"].as_str());
    served.expect(400, "GET", "/v1/queues/q/dead/groups?limit=1", "");
    let empty = served.expect(200, "GET", "/v1/queues/other/dead/groups", "");
    assert_eq!(empty, json!({"groups": [], "looked_at": 0, "window": "all"}));
}

/// A bug that was found: what the receiver will never take (422) was in one group with what it may take tomorrow (500).
#[test]
fn the_status_of_an_answer_is_part_of_the_cause() {
    let served = Served::memory();
    kill(
        &served,
        &[
            ("a", r#"http 422: {"error": "no order 1"}"#),
            ("b", r#"http 500: {"error": "deadlock 2"}"#),
            ("c", r#"http 500: {"error": "deadlock 3"}"#),
            ("d", "Connection reset by peer (os error 104)"),
            ("e", "Connection reset by peer (os error 10054)"),
        ],
    );
    let found = served.expect(200, "GET", GROUPS, "");
    let groups = found["groups"].as_array().expect("a list").iter();
    let mut seen: Vec<_> =
        groups.map(|group| (group["count"].as_u64(), group["failure"].as_str().expect("a text"))).collect();
    seen.sort_unstable();
    let wanted = [
        (Some(1), "Connection reset by peer (os error 10054)"),
        (Some(1), "Connection reset by peer (os error 104)"),
        (Some(1), "http 422: {#: #}"),
        (Some(2), "http 500: {#: #}"),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn dead_tasks_are_listed_by_cause() {
    let served = four();
    let group = served.expect(200, "GET", GROUPS, "")["groups"][0]["id"].as_str().expect("an id").to_owned();
    let list = |query: &str| served.expect(200, "GET", &format!("/v1/queues/q/dead?{query}"), "");
    assert_eq!(keys(&list(&format!("group_id={group}"))), ["a", "c", "d"]);
    assert_eq!(list(&format!("group_id={group}"))["looked_at"], 4);
    assert_eq!(keys(&list("failure=refused")), ["b"]);
    assert_eq!(keys(&list("failure=order+500&reason=max_attempts&tag=t&group=g")), ["c", "d"]);
    assert_eq!(keys(&list("reason=expired")), [] as [&str; 0]);
    assert_eq!(keys(&list("key_contains=c")), ["c"]);
    assert_eq!(keys(&list("key=d")), ["d"]);
    assert_eq!(keys(&list("key=d&failure=refused")), [] as [&str; 0]);
    for (query, parameter) in [("failure=", "failure"), ("group_id=7", "group_id"), ("reason=x", "reason")] {
        let problem = served.expect(400, "GET", &format!("/v1/queues/q/dead?{query}"), "");
        assert_eq!(problem["parameter"], parameter);
    }
}

#[test]
fn a_filter_redrives_the_tasks_of_one_cause() {
    let served = four();
    let group = served.expect(200, "GET", GROUPS, "")["groups"][0]["id"].clone();
    let body = json!({"filter": {"group_id": group}, "dry_run": true});
    assert_eq!(redrive(&served, &body), json!({"matched": 3, "redriven": 0}));
    assert_eq!(dead(&served), 4, "a dry run changes nothing");
    let body = json!({"filter": {"failure": "order 500", "due_from": 0, "tag": "t", "group": "g"}});
    assert_eq!(redrive(&served, &body), json!({"matched": 2, "redriven": 2}));
    assert_eq!(served.counts("q"), [0, 2, 0]);
    let body = json!({"filter": {"reason": "max_attempts", "key_contains": "b"}});
    assert_eq!(redrive(&served, &body), json!({"matched": 1, "redriven": 1}));
    assert_eq!(redrive(&served, &json!({"filter": {"key": "a"}})), json!({"matched": 1, "redriven": 1}));
    assert_eq!(redrive(&served, &json!({"filter": {}})), json!({"matched": 0, "redriven": 0}));
    for body in [
        r#"{"filter":{"state":"dead"}}"#,
        r#"{"filter":{},"key":"a"}"#,
        r#"{"dry_run":true}"#,
        r#"{"filter":{"group_id":"x"}}"#,
    ] {
        served.call("POST", REDRIVE, body).assert_problem(400, "bad-request", body);
    }
}

#[test]
fn tasks_that_stay_dead_are_counted_by_reason() {
    let served = four();
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", r#"{"delay":"1h"}"#);
    served.expect(200, "PATCH", "/v1/queues/q", r#"{"max_backlog":3}"#);
    let answer = redrive(&served, &json!({"filter": {}}));
    assert_eq!(answer, json!({"matched": 3, "redriven": 2, "skipped": {"backlog_full": 1}}));
    assert_eq!(dead(&served), 2);
}

/// The story: a queue was drained, and a redrive of its dead tasks filled it again.
#[test]
fn a_queue_that_drains_redrives_no_task_in_whatever_way() {
    let served = four();
    let count = dead(&served);
    served.expect(200, "POST", "/v1/queues/q/drain", "");
    let answer = redrive(&served, &json!({"filter": {}}));
    assert_eq!(answer, json!({"matched": count, "redriven": 0, "skipped": {"draining": count}}));
    let answer = redrive(&served, &json!({"keys": ["a"]}));
    assert_eq!(answer["results"], json!(["draining"]));
    let all = served.expect(200, "POST", REDRIVE, "");
    assert_eq!((&all["redriven"], &all["results"][0]), (&json!(0), &json!("draining")), "{all}");
    served.call("POST", REDRIVE, r#"{"key":"a"}"#).assert_problem(409, "draining", "resume");
    assert_eq!(dead(&served), count);
    served.expect(200, "POST", "/v1/queues/q/resume", "");
    assert_eq!(redrive(&served, &json!({"filter": {}})), json!({"matched": count, "redriven": count}));
}

#[test]
fn a_filter_cancels_the_dead_tasks_of_one_cause() {
    let served = four();
    let group = served.expect(200, "GET", GROUPS, "")["groups"][0]["id"].clone();
    let body = json!({"filter": {"state": "dead", "group_id": group}}).to_string();
    assert_eq!(served.expect(200, "POST", CANCEL, &body), json!({"matched": 3, "cancelled": 3}));
    let body = json!({"filter": {"state": "dead", "failure": "refused", "reason": "expired"}}).to_string();
    assert_eq!(served.expect(200, "POST", CANCEL, &body), json!({"matched": 0, "cancelled": 0}));
    let body = json!({"filter": {"group_id": group}}).to_string();
    let problem = served.expect(400, "POST", CANCEL, &body);
    assert_eq!(problem["detail"], "`filter.group_id`: is known of dead tasks only");
    let problem = served.expect(400, "POST", "/v1/queues/q/move", r#"{"filter":{"failure":"x"},"by":"1h"}"#);
    assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("redrive")), "{problem}");
    assert_eq!(dead(&served), 1);
}

/// The newest deaths are found although the store reads the oldest first.
#[test]
fn the_groups_are_of_the_newest_deaths() {
    let served = Served::memory();
    expire(&served, "oldest", 9_000);
    served.advance("3d");
    expire(&served, "middle", 6_000);
    served.advance("2h");
    expire(&served, "newest", 5_000);
    kill(&served, &[("last", "card refused")]);
    let found = served.expect(200, "GET", GROUPS, "");
    assert_eq!((&found["looked_at"], &found["window"]), (&json!(10_000), &json!("newest")));
    let (expired, nacked) = (&found["groups"][0], &found["groups"][1]);
    assert_eq!((&expired["count"], &nacked["count"]), (&json!(9_999), &json!(1)));
    let example = expired["examples"][0]["key"].as_str().expect("a key");
    assert!(example.starts_with("newest-"), "{example}");
    let begins = expired["first"].as_str().expect("a time").to_owned();
    let oldest = served.expect(200, "GET", "/v1/queues/q/dead?limit=1", "")["tasks"][0]["dead_at"].clone();
    assert!(oldest.as_str().is_some_and(|oldest| oldest < begins.as_str()), "{oldest} {begins}");
}

#[test]
fn many_deaths_at_one_instant_are_a_part_if_the_newest_are_not_found() {
    let served = Served::memory();
    expire(&served, "a", 12_000);
    let found = served.expect(200, "GET", GROUPS, "");
    assert_eq!((&found["looked_at"], &found["window"]), (&json!(10_000), &json!("newest")));
    expire(&served, "b", 48_000);
    let found = served.expect(200, "GET", GROUPS, "");
    assert_eq!((&found["looked_at"], &found["window"]), (&json!(10_000), &json!("part")));
}

#[test]
fn above_ten_thousand_a_job_redrives_and_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = on_any_port(Store::Dir(dir.path().to_owned()));
    config.virtual_clock = true;
    let served = Served::start(config.clone()).expect("started");
    expire(&served, "k", 10_001);
    let dry = served.call("POST", REDRIVE, r#"{"filter":{"key_contains":"k"},"dry_run":true}"#);
    assert_eq!(dry.status, 202, "{}", dry.text());
    let job = dry.json();
    assert_eq!(dry.header("location"), Some(format!("/v1/jobs/{}", job["id"]).as_str()));
    let counted = over(&served, &job);
    assert_eq!(
        (&counted["kind"], &counted["matched"], &counted["redriven"]),
        (&json!("redrive"), &json!(10_001), &json!(0))
    );
    assert_eq!((dead(&served), &counted["of"]), (10_001, &json!(10_001)));
    served.stop();
    as_if_killed(dir.path(), &counted);
    let served = Served::start(config).expect("started");
    let done = over(&served, &job);
    assert_eq!(
        (&done["state"], &done["done"], &done["redriven"]),
        (&json!("done"), &json!(10_001), &json!(10_001))
    );
    assert_eq!((dead(&served), served.counts("q")[1]), (0, 10_001));
}

/// Makes the directory look as if the server was killed at the beginning of the job, and the job redrove tasks.
fn as_if_killed(directory: &std::path::Path, job: &Value) {
    let queue = databases::opened(directory, ClusterClock::Virtual);
    let id = job["id"].as_u64().expect("a number");
    let (_, value) =
        queue.jobs().wait().expect("read").into_iter().find(|(of, _)| *of == id).expect("it is kept");
    let mut kept: Value = serde_json::from_slice(&value).expect("JSON");
    kept["job"]["state"] = json!("running");
    kept["job"]["matched"] = json!(0);
    kept["request"]["dry_run"] = json!(false);
    queue.keep_job(id, kept.to_string().into_bytes()).wait().expect("kept");
    queue.close();
}

/// Regression: both generations of a key were redriven, the older one first, and the newer one stayed dead.
#[test]
fn a_dead_task_whose_key_a_later_task_took_is_not_redriven() {
    let served = Served::memory();
    kill(&served, &[("a", "no money"), ("a", "no money"), ("b", "no money")]);
    served.expect(201, "PUT", "/v1/queues/q/tasks/b", r#"{"delay":"1h"}"#);
    assert_eq!(dead(&served), 3, "two of `a`, one of `b`");
    let newest = served.expect(200, "GET", "/v1/queues/q/tasks/a", "")["id"].clone();
    let filter = json!({ "filter": { "failure": "no money" }, "dry_run": true });
    assert_eq!(redrive(&served, &filter)["matched"], json!(1));
    let answer = redrive(&served, &json!({ "filter": { "failure": "no money" } }));
    assert_eq!((&answer["matched"], &answer["redriven"]), (&json!(1), &json!(1)), "{answer}");
    let leased = served.lease("q", 10);
    assert_eq!(leased.iter().map(|task| &task["id"]).collect::<Vec<_>>(), [&newest]);
    assert_eq!(dead(&served), 2);
}
