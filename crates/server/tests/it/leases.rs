//! The calls of workers.

use std::thread;

use serde_json::{Value, json};

use crate::served::{Served, until, virtual_memory};
use tickwheel_server::{Config, Limits};

fn keys(tasks: &[Value]) -> Vec<&str> {
    tasks.iter().map(|task| task["key"].as_str().expect("a key")).collect()
}

#[test]
fn ready_tasks_are_leased_in_the_order_of_their_due_time() {
    let served = Served::memory();
    for (key, delay) in [("c", "3s"), ("a", "1s"), ("b", "2s"), ("later", "1h")] {
        served.expect(
            201,
            "PUT",
            &format!("/v1/queues/q/tasks/{key}"),
            &format!(r#"{{"delay":"{delay}","payload":"{key}"}}"#),
        );
    }
    assert_eq!(served.lease("q", 10), [] as [Value; 0], "nothing is due");
    served.advance("3s");
    let reply = served.call("POST", "/v1/queues/q/lease", r#"{"max":2,"lease":"10s"}"#);
    assert!(reply.text().starts_with(r#"{"tasks":[{"key":"a","id":"#), "{}", reply.text());
    let tasks = reply.json()["tasks"].as_array().expect("an array").clone();
    assert_eq!(keys(&tasks), ["a", "b"]);
    assert_eq!((&tasks[0]["payload"], &tasks[0]["attempt"]), (&json!("a"), &json!(1)));
    let token = tasks[0]["token"].as_str().expect("a token");
    assert!(
        token.len() <= 64 && token.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
        "{token}"
    );
    assert_eq!(served.counts("q"), [1, 1, 2]);

    served.advance("10s");
    let again = served.lease("q", 10);
    assert_eq!(keys(&again), ["a", "b", "c"], "expired leases keep their place");
    assert_eq!(again[0]["attempt"], 2);
    assert_eq!(served.say("q", "ack", &[&tasks[0]["token"], &again[0]["token"]]), ["expired", "acked"]);
}

#[test]
fn every_token_gets_its_answer() {
    let served = Served::memory();
    for key in ["a", "b", "c"] {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), "");
    }
    let tasks = served.lease("q", 3);
    let [a, b, c] = [0, 1, 2].map(|index| &tasks[index]["token"]);
    let never = json!("never-issued-never-issued-never_");
    assert_eq!(served.say("q", "ack", &[&never, a, &never, a]), ["expired", "acked", "expired", "acked"]);
    assert_eq!(served.say("q", "extend", &[b, a, &never]), ["extended", "expired", "expired"]);
    assert_eq!(served.say("q", "nack", &[b, &never]), ["nacked", "expired"]);
    assert_eq!(served.counts("q"), [0, 1, 1], "b is ready again");
    let body = json!({"tokens": [c], "delay": "1h", "reason": "not now"}).to_string();
    assert_eq!(served.expect(200, "POST", "/v1/queues/q/nack", &body)["results"], json!(["nacked"]));
    assert_eq!(served.counts("q"), [1, 1, 0], "c is due in an hour");
    assert_eq!(keys(&served.lease("q", 3)), ["b"]);
}

#[test]
fn an_ack_may_be_sent_again() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", "");
    let token = served.lease("q", 1)[0]["token"].clone();
    for _ in 0..2 {
        assert_eq!(served.say("q", "ack", &[&token]), ["acked"]);
        assert_eq!(served.say("other", "ack", &[&token]), ["expired"]);
        assert_eq!(served.say("q", "nack", &[&token]), ["expired"]);
    }
    assert_eq!(served.metric(r#"tickwheel_delivered_total{result="acked"}"#), 1.0, "it was acked once");
}

#[test]
fn a_malformed_token_refuses_the_whole_call() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", "");
    let token = served.lease("q", 1)[0]["token"].clone();
    let text = token.as_str().expect("a text");
    for odd in ["", "never-issued", &text[1..], &format!("{text}A"), &text.replacen(&text[9..10], "=", 1)] {
        let body = json!({"tokens": [token, token, token, odd]}).to_string();
        for verb in ["ack", "nack", "extend"] {
            let problem = served.expect(400, "POST", &format!("/v1/queues/q/{verb}"), &body);
            assert_eq!(problem["member"], "tokens[3]", "{odd:?}: {problem}");
        }
        assert_eq!(served.counts("q"), [0, 0, 1], "{odd:?}");
    }
    assert_eq!(served.say("q", "ack", &[&token]), ["acked"]);
}

#[test]
fn an_extended_lease_holds_for_longer() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", "");
    let token = served.lease("q", 1)[0]["token"].clone();
    let body = json!({"tokens": [token], "lease": "2h"}).to_string();
    assert_eq!(served.expect(200, "POST", "/v1/queues/q/extend", &body)["results"], json!(["extended"]));
    served.advance("1h");
    assert_eq!(served.lease("q", 1), [] as [Value; 0]);
    served.advance("1h");
    assert_eq!(served.lease("q", 1)[0]["attempt"], 2);
}

#[test]
fn a_waiting_worker_is_woken_by_a_put() {
    let served = Served::memory();
    thread::scope(|scope| {
        let worker = scope.spawn(|| served.expect(200, "POST", "/v1/queues/q/lease", r#"{"wait":"60s"}"#));
        served.await_waiting(1.0);
        served.expect(201, "PUT", "/v1/queues/other/tasks/a", "");
        served.expect(201, "PUT", "/v1/queues/q/tasks/a", r#"{"payload":7}"#);
        let answer = worker.join().expect("no panic");
        assert_eq!(answer["tasks"][0]["payload"], 7);
    });
}

#[test]
fn a_waiting_worker_is_woken_by_time() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", r#"{"delay":"15d"}"#);
    thread::scope(|scope| {
        let worker = scope.spawn(|| served.expect(200, "POST", "/v1/queues/q/lease", r#"{"wait":"60s"}"#));
        served.await_waiting(1.0);
        served.advance("15d");
        assert_eq!(worker.join().expect("no panic")["tasks"][0]["key"], "a");
        assert_eq!(served.metric("tickwheel_delivery_lateness_seconds_count"), 1.0);
    });
}

#[test]
fn a_worker_that_leaves_gets_no_task() {
    let served = Served::memory();
    let mut worker = served.connect();
    worker.request("POST", "/v1/queues/q/lease", &[], br#"{"wait":"60s"}"#);
    served.await_waiting(1.0);
    drop(worker);
    served.await_waiting(0.0);
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", "");
    assert_eq!(served.counts("q"), [0, 1, 0]);
    assert_eq!(served.lease("q", 1)[0]["attempt"], 1);
}

#[test]
fn many_large_tasks_come_in_one_answer() {
    let served = Served::memory();
    let payload = "x".repeat(900_000);
    for key in ["a", "b", "c"] {
        let body = format!(r#"{{"payload":"{payload}"}}"#);
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), &body);
    }
    let listed = served.expect(200, "GET", "/v1/queues/q/tasks", "");
    assert_eq!(keys(listed["tasks"].as_array().expect("an array")), ["a", "b", "c"]);
    assert_eq!(listed["next_cursor"], Value::Null);
    let leased = served.lease("q", 10);
    assert_eq!(keys(&leased), ["a", "b", "c"]);
    assert!(leased.iter().all(|task| task["payload"] == *payload));
}

/// The story: clients asked for 1,000 tasks of 1 MB and read nothing. The server held 846 MB of answers for them.
#[test]
fn answers_that_clients_do_not_read_have_a_budget() {
    const PAYLOAD: usize = 900_000;
    let limits = Limits { answer_bytes: 18 * PAYLOAD + PAYLOAD / 2, ..Limits::default() };
    let served = Served::start(Config { limits, ..virtual_memory() }).expect("it starts");
    let body = json!({"payload": "x".repeat(PAYLOAD)}).to_string();
    for number in 0..30 {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{number:02}"), &body);
    }
    let mut slow = served.connect();
    slow.request("POST", "/v1/queues/q/lease", &[], br#"{"max":1000,"lease":"10m"}"#);
    let head = slow.head();
    assert_eq!(head.status, 200);
    assert_eq!(served.counts("q"), [0, 12, 18], "an answer has at most 16 MiB of payloads");

    let calls =
        [("POST", "/lease", r#"{"max":3}"#), ("GET", "/tasks?payloads=true", ""), ("GET", "/tasks/20", "")];
    for (method, target, body) in calls {
        let refused = served.call(method, &format!("/v1/queues/q{target}"), body);
        refused.assert_problem(429, "busy", target);
        assert!(refused.text().contains("--max-answer-bytes"), "{}", refused.text());
    }
    assert_eq!(served.counts("q"), [0, 12, 18], "what was not handed out is ready");
    served.expect(201, "PUT", "/v1/queues/small/tasks/a", r#"{"payload":"x"}"#);
    assert_eq!(served.lease("small", 5).len(), 1, "small answers have room always");

    drop(slow);
    until("the memory is given back", || served.call("GET", "/v1/queues/q/tasks/20", "").status == 200);
    let page = served.expect(200, "GET", "/v1/queues/q/tasks?payloads=true&limit=1000", "");
    assert_eq!(page["tasks"].as_array().map(Vec::len), Some(19), "a page ends behind 16 MiB");
    assert!(page["next_cursor"].is_string(), "{}", page["next_cursor"]);
    let again = served.lease("q", 1_000);
    assert_eq!((again.len(), &again[0]["attempt"]), (12, &json!(1)), "no attempt was counted");
}
