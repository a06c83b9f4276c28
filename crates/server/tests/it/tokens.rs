//! Tokens: rights, scopes and quotas.

use serde_json::{Value, json};
use tickwheel_server::{Config, StartError, Tokens, hashed};

use crate::raw::Reply;
use crate::served::{Served, virtual_memory};

const ADMIN: &str = "a-canary-of-the-administrator";
const WORKER: &str = "a-canary-of-a-worker-of-shop";

fn served() -> Served {
    let text = format!("{}\n{WORKER} rights=read,consume scope=shop/,close\n", hashed(ADMIN));
    let tokens = Tokens::parse(&text).expect("tokens");
    Served::start(Config { tokens, ..virtual_memory() }).expect("started")
}

fn call(served: &Served, token: &str, method: &str, target: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &[("authorization", &bearer)] };
    served.call_with(method, target, headers, body)
}

#[test]
fn a_caller_is_told_what_it_may_do() {
    let served = served();
    assert_eq!(call(&served, "", "GET", "/v1/whoami", "").status, 401);
    let told = |token| call(&served, token, "GET", "/v1/whoami", "").json();
    let worker = told(WORKER);
    assert_eq!(worker["rights"], json!(["read", "consume"]));
    assert_eq!(worker["scopes"], json!(["shop/", "close"]));
    assert_eq!((&worker["anonymous"], &worker["token"]), (&json!(false), &json!("line:2")));
    let admin = told(ADMIN);
    assert_eq!(
        (&admin["rights"], &admin["scopes"]),
        (&json!(["read", "produce", "consume", "admin"]), &json!([]))
    );
    assert_eq!((&admin["limits"], &worker["console"]), (&json!({}), &json!("on")));
    assert_eq!((&admin["virtual_clock"], &admin["read_only"]), (&json!(true), &json!(false)));
    assert_eq!(worker["instance"], admin["instance"], "it is of the server, and of no caller");
    let tokens = format!("{WORKER} tasks=3 max_delay=2h bytes=1000/h rate=9/h\nother rate=1/s");
    let tokens = Tokens::parse(&tokens).expect("tokens");
    let limited = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let limits = |token| call(&limited, token, "GET", "/v1/whoami", "").json()["limits"].clone();
    assert_eq!(limits(WORKER), json!({"rate": "9/h", "bytes": "1000/h", "tasks": 3, "max_delay": "2h"}));
    assert_eq!(limits("other"), json!({"rate": "1/s"}));
    let open = Served::memory().expect(200, "GET", "/v1/whoami", "");
    assert_ne!(open["instance"], admin["instance"], "each start of a server has its own");
    assert_eq!((&open["anonymous"], &open["token"]), (&json!(true), &Value::Null));
    assert_eq!(open["rights"], admin["rights"]);
}

#[test]
fn without_a_token_only_health_is_shown() {
    let served = served();
    for target in ["/healthz", "/readyz"] {
        assert_eq!(call(&served, "", "GET", target, "").status, 200, "{target}");
        assert_eq!(call(&served, "", "POST", target, "").status, 405, "{target}");
    }
    for (method, target) in [
        ("GET", "/v1/queues"),
        ("PUT", "/v1/queues/close/tasks/k"),
        ("POST", "/v1/queues/close/lease"),
        ("GET", "/metrics"),
        ("POST", "/v1/clock/advance"),
        ("GET", "/v1/jobs/1"),
        ("GET", "/v1/jobs"),
        ("GET", "/nothing"),
    ] {
        for token in ["", "wrong", &ADMIN[1..], &hashed(ADMIN)] {
            let reply = call(&served, token, method, target, "{}");
            reply.assert_problem(401, "unauthorized", "no token");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            assert!(!reply.text().contains("canary"), "{}", reply.text());
        }
    }
}

#[test]
fn rights_and_scope_decide_what_a_token_may_do() {
    let served = served();
    for queue in ["close", "shop%2Forders", "other"] {
        let target = format!("/v1/queues/{queue}/tasks/k");
        assert_eq!(call(&served, ADMIN, "PUT", &target, "{}").status, 201);
    }
    let as_worker = |method: &str, target: &str, body: &str| call(&served, WORKER, method, target, body);
    assert_eq!(as_worker("GET", "/v1/queues/shop%2Forders/tasks/k", "").status, 200);
    assert_eq!(
        as_worker("POST", "/v1/queues/close/lease", "{}").json()["tasks"].as_array().map(Vec::len),
        Some(1)
    );
    let known = as_worker("GET", "/v1/queues", "").json();
    let names: Vec<_> =
        known["queues"].as_array().expect("an array").iter().map(|one| one["queue"].clone()).collect();
    assert_eq!(names, ["close", "shop/orders"]);
    let page = as_worker("GET", "/v1/queues?limit=1&prefix=s", "").json();
    assert_eq!((&page["queues"][0]["queue"], &page["next_cursor"]), (&json!("shop/orders"), &Value::Null));
    let first = as_worker("GET", "/v1/queues?limit=1", "").json();
    let next = format!("/v1/queues?limit=1&cursor={}", first["next_cursor"].as_str().expect("one more"));
    assert_eq!(as_worker("GET", &next, "").json()["queues"][0]["queue"], "shop/orders");
    for place in ["close/schedules/s", "other/schedules/s", "shop%2Forders/schedules/s"] {
        let target = format!("/v1/queues/{place}");
        assert_eq!(call(&served, ADMIN, "PUT", &target, r#"{"every":"1h"}"#).status, 201);
    }
    let first = as_worker("GET", "/v1/schedules?limit=1", "").json();
    assert_eq!(first["schedules"][0]["queue"], "close");
    let next = format!("/v1/schedules?limit=1&cursor={}", first["next_cursor"].as_str().expect("one more"));
    let next = as_worker("GET", &next, "").json();
    assert_eq!((&next["schedules"][0]["queue"], &next["next_cursor"]), (&json!("shop/orders"), &Value::Null));
    for (method, target) in [
        ("GET", "/v1/queues/other/tasks/k"),
        ("POST", "/v1/queues/other/lease"),
        ("DELETE", "/v1/queues/other/tasks/k"),
        ("GET", "/v1/queues/shop"),
    ] {
        as_worker(method, target, "{}").assert_problem(404, "out-of-scope", "outside of the token's scope");
    }
    for (method, target, right) in [
        ("PUT", "/v1/queues/close/tasks/k", "produce"),
        ("POST", "/v1/queues/close/tasks/k/run", "produce"),
        ("POST", "/v1/queues/close/tasks/k/release", "produce"),
        ("POST", "/v1/queues/close/batch", "produce"),
        ("PUT", "/v1/queues/close", "admin"),
        ("POST", "/v1/queues/close/pause", "admin"),
        ("POST", "/v1/clock/advance", "admin"),
        ("POST", "/v1/drain", "admin"),
        ("POST", "/v1/backups", "admin"),
        ("GET", "/v1/backups", "admin"),
        ("POST", "/v1/resume", "admin"),
    ] {
        as_worker(method, target, "{}").assert_problem(403, "forbidden", &format!("the right `{right}`"));
    }
    as_worker("GET", "/metrics", "").assert_problem(403, "forbidden", "concerns all queues");
    assert_eq!(call(&served, ADMIN, "GET", "/metrics", "").status, 200);
    assert_eq!(call(&served, ADMIN, "POST", "/v1/clock/advance", r#"{"by":"1s"}"#).status, 200);
    call(&served, ADMIN, "GET", "/nothing", "").assert_problem(404, "no-endpoint", "/nothing");
    call(&served, WORKER, "GET", "/v1/queues/a%zz/tasks", "").assert_problem(400, "bad-name", "queue name");
}

#[test]
fn tokens_come_from_a_file_and_a_file_without_any_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("tokens");
    let start = || Served::start(Config { token_file: Some(file.clone()), ..virtual_memory() });
    let refused = |what: &str| match start() {
        Err(error @ StartError::Tokens { .. }) => assert!(error.to_string().contains(what), "{error}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was started"),
    };
    refused("cannot read it");
    std::fs::write(&file, "# none yet\n").expect("written");
    refused("there is no token");
    std::fs::write(&file, format!("{ADMIN} rights=everything\n")).expect("written");
    refused("line 1: `rights=` takes some of");
    std::fs::write(&file, format!("{ADMIN}\n{}\n", hashed("another"))).expect("written");
    let served = start().expect("started");
    for token in [ADMIN, "another"] {
        assert_eq!(call(&served, token, "GET", "/v1/queues", "").status, 200);
    }
    call(&served, "", "GET", "/v1/queues", "").assert_problem(401, "unauthorized", "no token");
}

#[test]
fn the_quota_of_a_token_does_not_affect_others() {
    let line = format!("{WORKER} scope=shop/ tasks=3 max_delay=2h bytes=1000/h rate=9/h");
    let tokens = Tokens::parse(&format!("{ADMIN}\n{line}\n")).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let mine = |method: &str, target: &str, body: &str| call(&served, WORKER, method, target, body);
    let put = |key: &str, body: &str| mine("PUT", &format!("/v1/queues/shop%2Fa/tasks/{key}"), body);

    put("far", r#"{"delay":"3h"}"#).assert_problem(400, "too-far", "`max_delay` is 2 h");
    assert_eq!(put("a", r#"{"delay":"2h"}"#).status, 201);
    assert_eq!(call(&served, ADMIN, "PUT", "/v1/queues/other/tasks/k", "").status, 201, "not in its scope");
    let patched = mine("PATCH", "/v1/queues/shop%2Fa/tasks/a", r#"{"delay":"3h"}"#);
    patched.assert_problem(400, "too-far", "`max_delay` is 2 h");
    let timeline = r#"{"timeline":[{"at":"2090-01-01T00:00:00Z","payload":1}]}"#;
    mine("PATCH", "/v1/queues/shop%2Fa/tasks/a", timeline).assert_problem(
        400,
        "too-far",
        "so are its instants",
    );
    let lines = "{\"op\":\"put\",\"key\":\"b\"}\n{\"op\":\"put\",\"key\":\"c\",\"delay\":\"9h\"}\n{\"op\":\"put\",\"key\":\"d\"}\n{\"op\":\"put\",\"key\":\"e\"}\n";
    let results = mine("POST", "/v1/queues/shop%2Fb/batch", lines).text();
    let statuses: Vec<u64> = results
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("JSON")["status"]
                .as_u64()
                .expect("a number")
        })
        .collect();
    assert_eq!(statuses, [201, 400, 201, 429], "{results}");

    let spent = put("f", "");
    spent.assert_problem(429, "busy", "the puts, the patches, the batch and its four lines are calls");
    assert!(spent.text().contains("9/h calls"), "{}", spent.text());
    let wait: u64 = spent.header("retry-after").and_then(|wait| wait.parse().ok()).expect("how long");
    assert!((1..=450).contains(&wait), "{wait}");
    assert_eq!(mine("GET", "/healthz", "").status, 200);
    assert_eq!(call(&served, ADMIN, "PUT", "/v1/queues/shop%2Fa/tasks/f", "").status, 201);
}

#[test]
fn a_token_with_all_its_tasks_may_still_change_them() {
    let tokens = Tokens::parse(&format!("{WORKER} tasks=2\n")).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let put = |target: &str| call(&served, WORKER, "PUT", &format!("/v1/queues/q/tasks/{target}"), "{}");
    assert_eq!([put("a").status, put("b").status], [201, 201]);
    for target in ["a", "b?mode=replace", "a?mode=debounce"] {
        assert_eq!(put(target).status, 200, "{target}");
    }
    put("c").assert_problem(429, "busy", "it would be the third");
    put("c?mode=replace").assert_problem(404, "not-found", "there is none");
    let lines = "{\"op\":\"put\",\"key\":\"b\"}\n{\"op\":\"put\",\"key\":\"c\"}\n";
    let results = call(&served, WORKER, "POST", "/v1/queues/q/batch", lines).text();
    assert!(results.contains("\"status\":200") && results.contains("\"status\":429"), "{results}");
    assert_eq!(call(&served, WORKER, "POST", "/v1/queues/q/tasks", "").status, 429);
}

#[test]
fn a_token_without_bytes_left_may_still_read() {
    let tokens = Tokens::parse(&format!("{WORKER} bytes=1000/h\n")).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let body = format!(r#"{{"payload":"{}"}}"#, "x".repeat(3_000));
    assert_eq!(
        call(&served, WORKER, "PUT", "/v1/queues/q/tasks/a", &body).status,
        201,
        "it began within them"
    );
    let refused = call(&served, WORKER, "PUT", "/v1/queues/q/tasks/b", "{}");
    refused.assert_problem(429, "busy", "3 h of bytes were sent");
    let batch = call(&served, WORKER, "POST", "/v1/queues/q/batch", "{}\n");
    batch.assert_problem(429, "busy", "3 h of bytes were sent");
    assert_eq!(call(&served, WORKER, "GET", "/v1/queues/q/tasks/a", "").status, 200);
}
