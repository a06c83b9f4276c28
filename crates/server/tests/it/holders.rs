//! `GET /v1/leases`: who has what.

use serde_json::{Value, json};
use tickwheel_server::{Config, Store, Tokens};

use crate::served::{Served, on_any_port, shards, virtual_memory};

fn put(served: &Served, queue: &str, key: &str) {
    served.expect(201, "PUT", &format!("/v1/queues/{queue}/tasks/{key}"), "");
}

fn take(served: &Served, queue: &str, body: &Value) -> Value {
    let leased = served.expect(200, "POST", &format!("/v1/queues/{queue}/lease"), &body.to_string());
    leased["tasks"][0].clone()
}

fn keys(page: &Value) -> Vec<&str> {
    let leases = page["leases"].as_array().expect("a list");
    leases.iter().map(|lease| lease["key"].as_str().expect("a key")).collect()
}

#[test]
fn the_list_says_which_worker_has_which_task() {
    let served = Served::memory();
    let none = served.expect(200, "GET", "/v1/leases", "");
    assert_eq!(none, json!({"leases": [], "next_cursor": null}));
    put(&served, "close", "a");
    put(&served, "mail", "b");
    put(&served, "close", "c");
    let first = take(&served, "close", &json!({"worker": "host 1/7", "lease": "1h"}));
    served.advance("5s");
    take(&served, "mail", &json!({}));
    take(&served, "close", &json!({"worker": "host 1/8"}));
    let page = served.expect(200, "GET", "/v1/leases", "");
    // The leases of one shard follow those of another.
    if shards() == 1 {
        assert_eq!(keys(&page), ["a", "b", "c"], "in the order in which they began");
    }
    let of_key = |key: &str| {
        let leases = page["leases"].as_array().expect("a list");
        leases.iter().find(|lease| lease["key"] == key).expect("it is leased")
    };
    let lease = of_key("a");
    assert_eq!((&lease["queue"], &lease["worker"]), (&json!("close"), &json!("host 1/7")));
    assert_eq!((&lease["attempt"], &lease["until"]), (&json!(1), &first["lease_until"]));
    assert!(lease["since"].as_str() < of_key("c")["since"].as_str());
    assert_eq!(of_key("b")["worker"], Value::Null, "it gave no name");
    let of = |query: &str| served.expect(200, "GET", &format!("/v1/leases?{query}"), "");
    assert_eq!(keys(&of("queue=close")), ["a", "c"]);
    assert_eq!(keys(&of("worker=host%201%2F8")), ["c"]);
    assert_eq!(keys(&of("queue=mail&worker=host%201%2F8")), [] as [&str; 0]);
    let token = first["token"].as_str().expect("a token");
    served.expect(200, "POST", "/v1/queues/close/ack", &json!({"tokens": [token]}).to_string());
    let rest = of("");
    let mut rest = keys(&rest);
    rest.sort_unstable();
    assert_eq!(rest, ["b", "c"]);
}

#[test]
fn leases_come_in_pages() {
    let served = Served::memory();
    for key in ["a", "b", "c"] {
        put(&served, "close", key);
        take(&served, "close", &json!({}));
    }
    let first = served.expect(200, "GET", "/v1/leases?limit=2", "");
    assert_eq!(keys(&first), ["a", "b"]);
    let cursor = first["next_cursor"].as_str().expect("one more");
    let last = served.expect(200, "GET", &format!("/v1/leases?limit=2&cursor={cursor}"), "");
    assert_eq!((keys(&last), &last["next_cursor"]), (vec!["c"], &Value::Null));
    let whole = served.expect(200, "GET", "/v1/leases?limit=3", "");
    assert_eq!((keys(&whole).len(), &whole["next_cursor"]), (3, &Value::Null), "none is behind it");
    let other = served.call("GET", &format!("/v1/leases?queue=close&cursor={cursor}"), "");
    other.assert_problem(400, "bad-request", "a cursor of another list");
}

#[test]
fn a_list_of_leases_that_cannot_be_says_why() {
    let served = Served::memory();
    for (query, parameter) in
        [("worker=", "worker"), ("limit=0", "limit"), ("cursor=x", "cursor"), ("key=a", "key")]
    {
        let reply = served.call("GET", &format!("/v1/leases?{query}"), "");
        reply.assert_problem(400, "bad-request", query);
        assert_eq!(reply.json()["parameter"], parameter);
    }
    served.call("GET", "/v1/leases?queue=a%20b", "").assert_problem(400, "bad-name", "a space");
    let long = json!({"worker": "x".repeat(129)}).to_string();
    let reply = served.call("POST", "/v1/queues/close/lease", &long);
    reply.assert_problem(400, "bad-request", "too long");
    assert_eq!(reply.json()["member"], "worker");
}

/// A token sees the leases of its queues only, and is not told that there are others.
#[test]
fn a_scope_hides_the_leases_of_other_queues() {
    let tokens = "all-of-it-1234567 rights=read,produce,consume\nsome-of-it-123456 rights=read scope=shop/\nno-read-at-all-12 rights=consume\n";
    let tokens = Tokens::parse(tokens).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let call = |token: &str, method: &str, target: &str| {
        let bearer = format!("Bearer {token}");
        served.call_with(method, target, &[("authorization", &bearer)], "")
    };
    for (queue, key) in [("other", "a"), ("shop%2Fclose", "b"), ("other", "c"), ("shop%2Fclose", "d")] {
        call("all-of-it-1234567", "PUT", &format!("/v1/queues/{queue}/tasks/{key}"));
        call("all-of-it-1234567", "POST", &format!("/v1/queues/{queue}/lease"));
    }
    let seen = call("some-of-it-123456", "GET", "/v1/leases").json();
    assert_eq!((keys(&seen), &seen["next_cursor"]), (vec!["b", "d"], &Value::Null));
    let first = call("some-of-it-123456", "GET", "/v1/leases?limit=1").json();
    assert_eq!(keys(&first), ["b"]);
    let next = format!("/v1/leases?limit=1&cursor={}", first["next_cursor"].as_str().expect("one more"));
    let last = call("some-of-it-123456", "GET", &next).json();
    assert_eq!((keys(&last), &last["next_cursor"]), (vec!["d"], &Value::Null));
    call("some-of-it-123456", "GET", "/v1/leases?queue=other").assert_problem(404, "out-of-scope", "hidden");
    call("no-read-at-all-12", "GET", "/v1/leases").assert_problem(403, "forbidden", "no right");
}

/// The server forgets the names of workers when it stops; a lease goes on.
#[test]
fn after_a_restart_it_is_unknown_who_has_what() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = || {
        let store = Store::Dir(directory.path().join("data"));
        Served::start(on_any_port(store)).expect("started")
    };
    let served = start();
    put(&served, "close", "a");
    let leased = take(&served, "close", &json!({"worker": "w", "lease": "1h"}));
    served.stop();
    let page = start().expect(200, "GET", "/v1/leases", "");
    let lease = &page["leases"][0];
    assert_eq!((&lease["key"], &lease["until"]), (&json!("a"), &leased["lease_until"]));
    assert_eq!((&lease["worker"], &lease["since"]), (&Value::Null, &Value::Null));
}
