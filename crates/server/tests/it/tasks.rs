//! Put, get, patch, cancel and post.

use serde_json::{Value, json};

use tickwheel_server::Config;

use crate::served::{self, Served};

const TASK: &str = "/v1/queues/close/tasks/order:1";

fn state(task: &Value) -> &str {
    task["state"].as_str().expect("a state")
}

#[test]
fn a_put_creates_then_replaces_and_says_which() {
    let served = Served::memory();
    let first = served.call("PUT", TASK, r#"{"delay":"30m","payload":{"n":1}}"#);
    assert_eq!(first.status, 201, "{}", first.text());
    assert_eq!(first.header("location"), Some(TASK));
    assert_eq!(first.header("content-type"), Some("application/json"));
    let task = first.json();
    assert_eq!(first.header("etag"), Some(format!("\"{}\"", task["version"]).as_str()));
    assert!(first.text().starts_with(r#"{"queue":"close","key":"order:1","id":"#), "{}", first.text());
    assert_eq!(state(&task), "scheduled");

    let second = served.call("PUT", TASK, r#"{"delay":"20m"}"#);
    assert_eq!(second.status, 200, "{}", second.text());
    assert_eq!(second.header("location"), None, "it is no new place");
    assert_eq!(second.json()["id"], task["id"], "the same task");
    assert!(second.json()["version"].as_u64() > task["version"].as_u64(), "{}", second.text());
    assert_eq!(served.counts("close"), [1, 0, 0]);
}

#[test]
fn a_get_returns_the_payload_byte_for_byte() {
    let served = Served::memory();
    let payload = r#"{ "b" : 1.0,"a":[1e2, "\u00fc" ] }"#;
    served.expect(201, "PUT", TASK, &format!(r#"{{"delay":"30m","payload":{payload}}}"#));
    let reply = served.call("GET", TASK, "");
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains(&format!(r#""payload":{payload},"#)), "{}", reply.text());

    served.expect(200, "PUT", TASK, r#"{"payload_base64":"AAH/","content_type":"image/png"}"#);
    let task = served.expect(200, "GET", TASK, "");
    assert_eq!((&task["payload_base64"], &task["content_type"]), (&json!("AAH/"), &json!("image/png")));
    let head = served.call("HEAD", TASK, "");
    assert_eq!((head.status, head.header("etag").is_some()), (200, true));
}

#[test]
fn a_put_without_a_body_is_due_now_with_a_null_payload() {
    let served = Served::memory();
    assert_eq!(state(&served.expect(201, "PUT", TASK, "")), "ready");
    let leased = served.lease("close", 1);
    assert_eq!(leased[0]["payload"], Value::Null);
}

#[test]
fn instants_are_kept_exactly_and_come_back_in_utc() {
    let served = Served::memory();
    for (body, due_at) in [
        (r#"{"at":"2117-10-02T13:26:33.5+02:00"}"#, "2117-10-02T11:26:33.500Z"),
        (r#"{"at_ms":4662617193001}"#, "2117-10-02T11:26:33.001Z"),
    ] {
        served.call("DELETE", TASK, "");
        assert_eq!(served.expect(201, "PUT", TASK, body)["due_at"], due_at, "{body}");
    }
}

#[test]
fn modes_say_what_must_exist() {
    let served = Served::memory();
    served.call("PUT", &format!("{TASK}?mode=replace"), "{}").assert_problem(404, "not-found", "replace");
    let made = served.expect(201, "PUT", &format!("{TASK}?mode=create"), r#"{"delay":"1h"}"#);
    let refused = served.call("PUT", &format!("{TASK}?mode=create"), r#"{"delay":"2h"}"#);
    refused.assert_problem(409, "live", "create");
    assert_eq!(refused.json()["version"], made["version"]);
    served.expect(200, "PUT", &format!("{TASK}?mode=replace"), r#"{"delay":"2h"}"#);
}

#[test]
fn a_change_for_another_version_changes_nothing() {
    let served = Served::memory();
    let made = served.expect(201, "PUT", TASK, r#"{"delay":"1h"}"#);
    let version = made["version"].as_u64().expect("a version");
    let (right, wrong) = (format!("\"{version}\""), format!("\"{}\"", version + 1));
    for (method, body) in [("PUT", "{}"), ("PATCH", r#"{"delay":"2h"}"#), ("DELETE", "")] {
        let refused = served.call_with(method, TASK, &[("If-Match", &wrong)], body);
        refused.assert_problem(412, "version-mismatch", method);
        assert_eq!(refused.json()["version"], version, "{method}");
        assert_eq!(served.expect(200, "GET", TASK, "")["version"], version, "{method}");
    }
    let moved = served.call_with("PATCH", TASK, &[("If-Match", &right)], r#"{"delay":"2h"}"#);
    assert_eq!(moved.status, 200, "{}", moved.text());
    let stale = served.call_with("DELETE", TASK, &[("If-Match", &right)], "");
    stale.assert_problem(412, "version-mismatch", "the patch made a new version");
    let fresh = moved.header("etag").expect("a patch has one").to_owned();
    assert_eq!(served.call_with("DELETE", TASK, &[("If-Match", &fresh)], "").status, 200);
}

#[test]
fn a_patch_keeps_members_that_it_does_not_name() {
    let served = Served::memory();
    let made = served.expect(201, "PUT", TASK, r#"{"delay":"1h","payload":{"n":1}}"#);
    let patched = served.expect(200, "PATCH", TASK, r#"{"payload":{"n":2}}"#);
    assert_eq!((&patched["due_at"], &patched["id"]), (&made["due_at"], &made["id"]));
    let moved = served.expect(200, "PATCH", TASK, r#"{"delay":"2h"}"#);
    assert_ne!(moved["due_at"], made["due_at"]);
    assert_eq!(served.expect(200, "GET", TASK, "")["payload"], json!({"n": 2}));
    served.call("PATCH", "/v1/queues/close/tasks/none", r#"{"delay":"1h"}"#).assert_problem(
        404,
        "not-found",
        "patch",
    );
}

#[test]
fn a_cancel_has_one_definite_answer() {
    let served = Served::memory();
    let refused = |target: &str, status, slug, result| {
        let reply = served.call("DELETE", target, "");
        reply.assert_problem(status, slug, target);
        assert_eq!(reply.json()["result"], result, "{target}");
    };
    refused(TASK, 404, "not-found", "not_found");
    served.expect(201, "PUT", TASK, r#"{"delay":"1h"}"#);
    assert_eq!(served.expect(200, "DELETE", TASK, ""), json!({"result": "cancelled"}));
    refused(TASK, 404, "not-found", "not_found");

    served.expect(201, "PUT", TASK, "");
    let token = served.lease("close", 1)[0]["token"].clone();
    refused(TASK, 409, "leased", "leased");
    assert_eq!(
        served.expect(200, "DELETE", &format!("{TASK}?revoke=true"), ""),
        json!({"result": "revoked"})
    );
    assert_eq!(served.say("close", "ack", &[&token]), ["revoked"]);

    served.expect(201, "PUT", TASK, "");
    let token = served.lease("close", 1)[0]["token"].clone();
    assert_eq!(served.say("close", "ack", &[&token]), ["acked"]);
    refused(TASK, 404, "done", "done");
    served.call("GET", TASK, "").assert_problem(404, "done", "get");
    served.expect(201, "PUT", TASK, "{}");
}

#[test]
fn a_leased_task_is_changed_only_by_revoking_it() {
    let served = Served::memory();
    served.expect(201, "PUT", TASK, "");
    let token = served.lease("close", 1)[0]["token"].clone();
    served.call("PUT", TASK, r#"{"delay":"1h"}"#).assert_problem(409, "leased", "put");
    served.call("PATCH", TASK, r#"{"delay":"1h"}"#).assert_problem(409, "leased", "patch");
    let taken = served.expect(200, "PATCH", &format!("{TASK}?revoke=true"), r#"{"delay":"1h"}"#);
    assert_eq!(state(&taken), "scheduled");
    assert_eq!(served.say("close", "ack", &[&token]), ["revoked"]);
    assert_eq!(served.counts("close"), [1, 0, 0]);
}

#[test]
fn a_post_makes_its_own_key() {
    let served = Served::memory();
    let reply = served.call("POST", "/v1/queues/close/tasks", r#"{"delay":"1h"}"#);
    assert_eq!(reply.status, 201, "{}", reply.text());
    let task = reply.json();
    assert_eq!(task["key"], task["id"].to_string());
    let location = reply.header("location").expect("a new place");
    assert_eq!(served.expect(200, "GET", location, "")["id"], task["id"]);
    let other = served.expect(201, "POST", "/v1/queues/close/tasks", r#"{"delay":"1h"}"#);
    assert_ne!(other["id"], task["id"]);
}

#[test]
fn one_idempotency_key_makes_one_task() {
    let served = Served::memory();
    let post =
        |key, body| served.call_with("POST", "/v1/queues/close/tasks", &[("Idempotency-Key", key)], body);
    let first = post("\"a-1\"", r#"{"delay":"1h"}"#);
    assert_eq!(first.status, 201, "{}", first.text());
    let again = post("a-1", r#"{"delay":"5h"}"#);
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.json(), first.json(), "nothing is changed by a retry");
    assert_eq!(post("a-2", "{}").status, 201);
    assert_eq!(served.counts("close"), [1, 1, 0]);

    // A retry after the task was done must not make a second task.
    let token = served.lease("close", 1)[0]["token"].clone();
    assert_eq!(served.say("close", "ack", &[&token]), ["acked"]);
    post("a-2", "{}").assert_problem(404, "done", "a retry of what is done");
    assert_eq!(served.counts("close"), [1, 0, 0]);
}

#[test]
fn curl_and_urllib_need_no_header() {
    let served = Served::memory();
    for content_type in ["application/x-www-form-urlencoded", "application/json; charset=utf-8"] {
        let headers = [("Content-Type", content_type)];
        let reply = served.call_with("PUT", TASK, &headers, r#"{"delay":"1h"}"#);
        assert!([200, 201].contains(&reply.status), "{content_type}: {}", reply.text());
    }
}

#[test]
fn tags_priority_and_group_are_kept_shown_and_changed() {
    let served = Served::memory();
    let made = served.expect(201, "PUT", TASK, r#"{"tags":["vip","a b"],"priority":7,"group":"user:7"}"#);
    let terms = |task: &Value| (task["tags"].clone(), task["priority"].clone(), task["group"].clone());
    let expected = (json!(["vip", "a b"]), json!(7), json!("user:7"));
    assert_eq!(terms(&made), expected);
    assert_eq!(terms(&served.expect(200, "GET", TASK, "")), expected);
    let list = served.expect(200, "GET", "/v1/queues/close/tasks", "");
    assert_eq!(terms(&list["tasks"][0]), expected);
    let patched = served.expect(200, "PATCH", TASK, r#"{"priority":9}"#);
    assert_eq!(terms(&patched), (json!(["vip", "a b"]), json!(9), json!("user:7")));
    served.expect(200, "PATCH", TASK, r#"{"tags":[],"group":null}"#);
    let leased = served.lease("close", 1);
    assert_eq!(terms(&leased[0]), (json!([]), json!(9), Value::Null));
}

#[test]
fn a_smaller_priority_is_leased_first() {
    let served = Served::memory();
    for (key, priority) in [("a", 1024), ("b", 0), ("c", 4_294_967_295_u32), ("d", 0)] {
        let target = format!("/v1/queues/close/tasks/{key}");
        served.expect(201, "PUT", &target, &format!(r#"{{"priority":{priority}}}"#));
    }
    let leased = served.lease("close", 9);
    let keys: Vec<&str> = leased.iter().map(|task| task["key"].as_str().expect("a key")).collect();
    assert_eq!(keys, ["b", "d", "a", "c"]);
}

#[test]
fn a_delay_level_is_the_configured_delay() {
    let served = Served::memory();
    let now = served.advance("0s")["now"].as_str().expect("an instant").to_owned();
    assert_eq!(served.expect(201, "PUT", TASK, r#"{"at":"1970-01-01T00:00:00Z"}"#)["state"], "ready");
    served.expect(200, "PUT", TASK, r#"{"level":3}"#);
    served.advance("9999ms");
    assert_eq!(served.lease("close", 1).len(), 0, "put at {now}");
    served.advance("1ms");
    assert_eq!(served.lease("close", 1).len(), 1);

    let levels = "250ms 1d".parse().expect("a list");
    let served = Served::start(Config { levels, ..served::virtual_memory() }).expect("started");
    served.call("PUT", TASK, r#"{"level":3}"#).assert_problem(400, "bad-request", "250ms 1d");
    served.expect(201, "PUT", TASK, r#"{"level":1}"#);
    served.advance("250ms");
    assert_eq!(state(&served.expect(200, "GET", TASK, "")), "ready");
    let lines = "{\"op\":\"put\",\"key\":\"a\",\"level\":2}\n{\"op\":\"put\",\"key\":\"b\",\"level\":9}\n";
    let reply = served.call_with(
        "POST",
        "/v1/queues/close/batch",
        &[("content-type", "application/x-ndjson")],
        lines,
    );
    let rows: Vec<Value> = reply.text().lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    assert_eq!((&rows[0]["status"], &rows[1]["status"]), (&json!(201), &json!(400)), "{}", reply.text());
    assert_eq!(rows[1]["problem"]["member"], "level");
}

#[test]
fn a_debounced_task_moves_with_each_put_but_not_for_ever() {
    let served = Served::memory();
    let target = format!("{TASK}?mode=debounce");
    let put = || served.call("PUT", &target, r#"{"delay":"10s","max_wait":"25s"}"#);
    let first = put();
    assert_eq!(first.status, 201, "{}", first.text());
    for _ in 0..3 {
        served.advance("8s");
        assert_eq!(put().status, 200);
    }
    // 24 s have passed since the first put. With 10 s more it would be 34 s, which is too late.
    served.advance("999ms");
    assert_eq!(state(&served.expect(200, "GET", TASK, "")), "scheduled");
    served.advance("1ms");
    let leased = served.lease("close", 1);
    assert_eq!(leased.len(), 1, "25 s after the first put it is due");
    assert_eq!(served.say("close", "ack", &[&leased[0]["token"]]), ["acked"]);
    // A put after the task was done makes a new task, with a new debounce.
    assert_eq!(put().status, 201);
    served.advance("9999ms");
    assert_eq!(served.counts("close"), [1, 0, 0]);
    served.call("PUT", TASK, r#"{"max_wait":"1s"}"#).assert_problem(400, "bad-request", "debounce");
}

#[test]
fn a_timeline_is_one_task_with_many_instants() {
    let served = Served::memory();
    let plan = r#"{"timeline":[{"at_ms":4000000000000,"payload":{"price":9}},{"at":"2096-10-02T08:06:40Z","payload":{"price":7}}]}"#;
    let made = served.expect(201, "PUT", TASK, plan);
    assert_eq!(made["due_at"], "2096-10-02T07:06:40.000Z");
    let task = served.expect(200, "GET", TASK, "");
    assert_eq!(task["payload"], json!({"price":9}));
    assert_eq!(task["timeline"], json!([{"at":"2096-10-02T08:06:40.000Z","payload":{"price":7}}]));
    served.call("PATCH", TASK, r#"{"delay":"1h"}"#).assert_problem(409, "timeline", "whole");
    let now = served.advance("0s")["now"].as_str().expect("an instant").to_owned();
    let now_ms = tickwheel_api::time::parse(&now).expect("RFC 3339");
    served.advance(&format!("{}ms", 4_000_000_000_000 - now_ms));
    let leased = served.lease("close", 9);
    assert_eq!(leased[0]["payload"], json!({"price":9}));
    assert_eq!(served.say("close", "ack", &[&leased[0]["token"]]), ["acked"]);
    assert_eq!(served.counts("close"), [1, 0, 0]);
    served.advance("1h");
    let leased = served.lease("close", 9);
    assert_eq!(leased[0]["payload"], json!({"price":7}));
    assert_eq!(served.say("close", "ack", &[&leased[0]["token"]]), ["acked"]);
    served.call("GET", TASK, "").assert_problem(404, "done", "");
}
