//! Tasks that are searched for: by group, by key, by a part of the key, and one key in all queues.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tickwheel_server::{Config, Tokens};

use crate::served::{Served, virtual_memory};

const TASKS: &str = "/v1/queues/q/tasks";

fn put(served: &Served, queue: &str, key: &str, body: &str) {
    served.expect(201, "PUT", &format!("/v1/queues/{queue}/tasks/{key}"), body);
}

pub(crate) fn keys(page: &Value) -> Vec<&str> {
    let tasks = page["tasks"].as_array().expect("an array");
    tasks.iter().map(|task| task["key"].as_str().expect("a key")).collect()
}

fn some_tasks() -> Served {
    let served = Served::memory();
    for (key, body) in [
        ("order:1", r#"{"delay":"1h","group":"user:7","tags":["vip"]}"#),
        ("order:2", r#"{"delay":"2h","group":"user:8"}"#),
        ("Order:3", r#"{"delay":"3h","group":"user:7"}"#),
        ("cart:1", r#"{"delay":"4h"}"#),
    ] {
        put(&served, "q", key, body);
    }
    served
}

#[test]
fn a_list_is_filtered_by_group_and_by_a_part_of_the_key() {
    let served = some_tasks();
    let list = |query: &str| served.expect(200, "GET", &format!("{TASKS}?{query}"), "");
    let of_group = list("group=user:7");
    assert_eq!((keys(&of_group), &of_group["looked_at"]), (vec!["order:1", "Order:3"], &Value::Null));
    let of_text = list("key_contains=order");
    assert_eq!((keys(&of_text), &of_text["looked_at"]), (vec!["order:1", "order:2"], &json!(4)));
    assert_eq!(keys(&list("key_contains=%3A1&state=scheduled")), ["order:1", "cart:1"]);
    assert_eq!(keys(&list("key_contains=%3A1&group=user:7&tag=vip")), ["order:1"]);
    assert_eq!(keys(&list("key_contains=none")), [] as [&str; 0]);
}

#[test]
fn a_key_is_looked_up_and_must_match_the_other_members() {
    let served = some_tasks();
    let list = |query: &str| served.expect(200, "GET", &format!("{TASKS}?{query}"), "");
    let found = list("key=order:1");
    assert_eq!((keys(&found), &found["next_cursor"]), (vec!["order:1"], &Value::Null));
    assert_eq!(keys(&list("key=order:1&group=user:7&state=scheduled&key_contains=der")), ["order:1"]);
    for other in
        ["key=order:1&group=user:8", "key=order:1&state=ready", "key=order:1&key_contains=x", "key=no"]
    {
        assert_eq!(keys(&list(other)), [] as [&str; 0], "{other}");
    }
}

#[test]
fn a_page_by_text_ends_at_its_limit_and_goes_on_behind_it() {
    let served = Served::memory();
    let mut lines = String::new();
    for n in 0..2_500 {
        let name = if n % 3 == 0 { "hit" } else { "miss" };
        writeln!(lines, r#"{{"op":"put","key":"{name}:{n:04}","delay":"{}s"}}"#, n / 5 + 60)
            .expect("a string");
    }
    assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).status, 200);
    for limit in [1, 7, 100, 834, 1_000] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let target = format!("{TASKS}?key_contains=hit&limit={limit}{cursor}");
            let page = served.expect(200, "GET", &target, "");
            let here = keys(&page);
            assert!(here.len() <= limit, "{} of {limit}", here.len());
            found.extend(here.into_iter().map(str::to_owned));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let expected: Vec<String> = (0..2_500).step_by(3).map(|n| format!("hit:{n:04}")).collect();
        assert_eq!(found, expected, "limit {limit}");
    }
}

#[test]
fn a_page_by_text_looks_at_a_bounded_number_of_tasks() {
    let served = Served::memory();
    for part in 0..3 {
        let mut lines = String::new();
        for n in 0..10_000 {
            writeln!(lines, r#"{{"op":"put","key":"{part}-{n}","delay":"1h"}}"#).expect("a string takes all");
        }
        assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).status, 200);
    }
    let page = served.expect(200, "GET", &format!("{TASKS}?key_contains=none"), "");
    let looked_at = page["looked_at"].as_u64().expect("a number");
    assert!((1..=21_000).contains(&looked_at), "{looked_at}");
    let cursor = page["next_cursor"].as_str().expect("10,000 tasks are left");
    assert_eq!(keys(&page), [] as [&str; 0]);
    let target = format!("{TASKS}?key_contains=nine&cursor={cursor}");
    served.call("GET", &target, "").assert_problem(400, "bad-request", "the cursor of another search");
}

#[test]
fn a_list_without_payloads_has_none() {
    let served = Served::memory();
    put(&served, "q", "a", r#"{"delay":"1h","payload":{"n":1}}"#);
    put(&served, "q", "b", r#"{"timeline":[{"at":"2090-01-01T00:00:00Z"},{"at":"2091-01-01T00:00:00Z"}]}"#);
    let page = served.expect(200, "GET", &format!("{TASKS}?payloads=false"), "");
    for task in page["tasks"].as_array().expect("an array") {
        let members = task.as_object().expect("an object");
        assert!(
            !["payload", "payload_base64", "timeline"].iter().any(|name| members.contains_key(*name)),
            "{task}"
        );
    }
    let page = served.expect(200, "GET", &format!("{TASKS}?payloads=true"), "");
    assert_eq!(page["tasks"][0]["payload"], json!({"n": 1}));
}

#[test]
fn bad_parameters_are_named() {
    let served = Served::memory();
    for (query, parameter) in [
        ("group=", "group"),
        ("key=", "key"),
        ("key_contains=%0A", "key_contains"),
        ("payloads=1", "payloads"),
        ("reason=expired", "reason"),
        ("group_id=0123456789abcdef", "group_id"),
    ] {
        let problem = served.expect(400, "GET", &format!("{TASKS}?{query}"), "");
        assert_eq!(problem["parameter"], parameter, "{query}");
    }
    for query in ["", "?key=", "?key=%00", "?keys=a"] {
        let problem = served.expect(400, "GET", &format!("/v1/tasks{query}"), "");
        assert!(problem["parameter"].is_string(), "{problem}");
    }
}

#[test]
fn many_tasks_are_changed_by_group_and_by_key() {
    let served = some_tasks();
    let cancel = |filter: Value| {
        let body = json!({ "filter": filter, "dry_run": true }).to_string();
        served.expect(200, "POST", "/v1/queues/q/cancel", &body)["matched"].clone()
    };
    assert_eq!(cancel(json!({"group": "user:7"})), 2);
    assert_eq!(cancel(json!({"key": "order:1"})), 1);
    assert_eq!(cancel(json!({"key": "order:1", "group": "user:8"})), 0);
    assert_eq!(cancel(json!({"key_contains": ":1"})), 2);
    let body = r#"{"filter":{"key_contains":"order"},"by":"10h"}"#;
    let moved = served.expect(200, "POST", "/v1/queues/q/move", body);
    assert_eq!(moved, json!({"matched": 2, "moved": 2}));
    assert_eq!(keys(&served.expect(200, "GET", TASKS, "")), ["Order:3", "cart:1", "order:1", "order:2"]);
    let body = r#"{"filter":{"key":"cart:1"}}"#;
    let cancelled = served.expect(200, "POST", "/v1/queues/q/cancel", body);
    assert_eq!(cancelled, json!({"matched": 1, "cancelled": 1}));
    for filter in [r#"{"reason":"expired"}"#, r#"{"failure":"x"}"#, r#"{"group_id":"0123456789abcdef"}"#] {
        let problem = served.expect(400, "POST", "/v1/queues/q/cancel", &format!(r#"{{"filter":{filter}}}"#));
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.starts_with("`filter.")), "{problem}");
    }
}

#[test]
fn one_key_is_found_in_all_queues() {
    let served = Served::memory();
    for queue in ["a", "b", "shop%2Fc", "shop%2Fd"] {
        put(&served, queue, "order:1", r#"{"delay":"1h"}"#);
    }
    put(&served, "e", "order:2", "");
    let of = |found: &Value| -> Vec<String> {
        let tasks = found["tasks"].as_array().expect("an array");
        tasks.iter().map(|task| task["queue"].as_str().expect("a name").to_owned()).collect()
    };
    let found = served.expect(200, "GET", "/v1/tasks?key=order:1", "");
    assert_eq!(
        (of(&found), &found["truncated"]),
        (["a", "b", "shop/c", "shop/d"].map(str::to_owned).to_vec(), &json!(false))
    );
    let none = served.expect(200, "GET", "/v1/tasks?key=order:9", "");
    assert_eq!(none, json!({"tasks": [], "truncated": false}));
}

#[test]
fn a_scoped_token_finds_keys_in_its_queues_only() {
    const READ: &str = "a-canary-that-reads-in-shop";
    const PRODUCE: &str = "a-canary-that-produces-in-shop";
    const ALL: &str = "a-canary-of-the-administrator";
    let text = format!("{ALL}\n{READ} rights=read scope=shop/\n{PRODUCE} rights=produce scope=shop/\n");
    let tokens = Tokens::parse(&text).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let call = |token: &str, method: &str, target: &str, body: &str| {
        served.call_with(method, target, &[("authorization", &format!("Bearer {token}"))], body)
    };
    for queue in ["shop%2Fa", "bank"] {
        let target = format!("/v1/queues/{queue}/tasks/order:1");
        assert_eq!(call(ALL, "PUT", &target, r#"{"delay":"1h"}"#).status, 201);
    }
    let found = call(READ, "GET", "/v1/tasks?key=order:1", "").json();
    assert_eq!((keys(&found), &found["tasks"][0]["queue"]), (vec!["order:1"], &json!("shop/a")));
    assert_eq!(found["truncated"], false);
    for (target, status) in [
        ("/v1/queues/shop%2Fa/tasks?key=order:1", 200),
        ("/v1/queues/shop%2Fa/dead/groups", 200),
        ("/v1/queues/bank/tasks?key=order:1", 404),
        ("/v1/queues/bank/tasks?key_contains=o", 404),
        ("/v1/queues/bank/dead/groups", 404),
    ] {
        assert_eq!(call(READ, "GET", target, "").status, status, "{target}");
    }
    for target in
        ["/v1/tasks?key=order:1", "/v1/queues/shop%2Fa/dead/groups", "/v1/queues/shop%2Fa/tasks?key=a"]
    {
        assert_eq!(call(PRODUCE, "GET", target, "").status, 403, "{target}");
    }
    let redrive = r#"{"filter":{},"dry_run":true}"#;
    for token in [READ, PRODUCE] {
        assert_eq!(call(token, "POST", "/v1/queues/shop%2Fa/dead/redrive", redrive).status, 403);
        assert!([403, 404].contains(&call(token, "POST", "/v1/queues/bank/dead/redrive", redrive).status));
    }
    assert_eq!(call(ALL, "POST", "/v1/queues/bank/dead/redrive", redrive).status, 200);
}

/// A key with a large payload in each of many queues is no answer of gigabytes.
#[test]
fn a_search_in_all_queues_ends_after_many_bytes() {
    let served = Served::memory();
    let payload = format!(r#"{{"payload":"{}"}}"#, "x".repeat(1_000_000));
    for number in 0..40 {
        served.expect(201, "PUT", &format!("/v1/queues/q{number:03}/tasks/k"), &payload);
    }
    let found = served.expect(200, "GET", "/v1/tasks?key=k", "");
    let tasks = found["tasks"].as_array().expect("a list");
    assert_eq!((tasks.len(), &found["truncated"]), (32, &true.into()), "it looks into 16 queues at a time");
}
