//! Real-life troubles, end to end: dead workers, clients that send everything twice, keys that are used again at
//! once, very many queues, calendar days that do not occur in every month or year.

use serde_json::{Value, json};

use crate::raw::Reply;
use crate::served::Served;

/// Sends a request twice, as a client does whose first answer was lost. Returns both answers.
fn twice(served: &Served, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> [Reply; 2] {
    [(); 2].map(|()| served.call_with(method, target, headers, body))
}

fn result(reply: &Reply) -> Value {
    reply.json()["results"][0].clone()
}

#[test]
fn a_client_that_sends_everything_twice_gets_one_task_and_one_delivery() {
    let served = Served::memory();
    let put = twice(&served, "PUT", "/v1/queues/q/tasks/k", &[], r#"{"delay":"1s"}"#);
    assert_eq!(put.each_ref().map(|reply| reply.status), [201, 200]);
    let key = [("idempotency-key", "order-7")];
    let post = twice(&served, "POST", "/v1/queues/q/tasks", &key, r#"{"delay":"1s"}"#);
    assert_eq!(post.each_ref().map(|reply| reply.status), [201, 200]);
    assert_eq!(post[0].json()["id"], post[1].json()["id"]);
    let lines = "{\"op\":\"put\",\"key\":\"k\",\"delay\":\"1s\"}\n{\"op\":\"cancel\",\"key\":\"none\"}\n";
    for reply in twice(&served, "POST", "/v1/queues/q/batch", &[], lines) {
        assert_eq!(reply.lines().iter().map(|line| line["status"].clone()).collect::<Vec<_>>(), [200, 404]);
    }
    served.advance("1s");
    let leases = twice(&served, "POST", "/v1/queues/q/lease", &[], r#"{"max":9}"#).map(|reply| reply.json());
    assert_eq!(leases[0]["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(leases[1]["tasks"], json!([]), "nobody else is given them");
    let token = |index: usize| json!({ "tokens": [leases[0]["tasks"][index]["token"]] }).to_string();
    let acks = twice(&served, "POST", "/v1/queues/q/ack", &[], &token(0));
    assert_eq!(acks.each_ref().map(result), ["acked", "acked"], "the second is told what the first was");
    let nacks = twice(&served, "POST", "/v1/queues/q/nack", &[], &token(1));
    assert_eq!(nacks.each_ref().map(result), ["nacked", "expired"], "one failure, and not two");
    let left = served.lease("q", 9);
    assert_eq!((left.len(), &left[0]["attempt"]), (1, &json!(2)));
    let revoked = twice(
        &served,
        "DELETE",
        &format!("/v1/queues/q/tasks/{}?revoke=true", left[0]["key"].as_str().expect("a key")),
        &[],
        "",
    );
    assert_eq!(revoked.each_ref().map(|reply| reply.status), [200, 404]);
    assert_eq!(served.counts("q"), [0, 0, 0]);
}

#[test]
fn tasks_of_dead_workers_go_to_others_and_end_by_their_policy() {
    let served = Served::memory();
    for n in 0..20 {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{n}"), r#"{"retry":{"max_attempts":3}}"#);
    }
    for attempt in 1..=3 {
        let taken = served.lease("q", 100);
        assert_eq!(taken.len(), 20, "attempt {attempt}");
        assert!(taken.iter().all(|task| task["attempt"] == attempt), "{taken:?}");
        // All workers die, and their leases end.
        served.advance("31s");
    }
    assert_eq!(served.lease("q", 100).len(), 0);
    let dead = served.expect(200, "GET", "/v1/queues/q/dead", "");
    let dead = dead["tasks"].as_array().expect("a list");
    assert_eq!(dead.len(), 20);
    for task in dead {
        assert_eq!(
            (&task["reason"], &task["failures"][2]["how"]),
            (&json!("max_attempts"), &json!("lease_ended"))
        );
    }
}

#[test]
fn a_key_is_free_at_once_after_its_task_is_done() {
    let served = Served::memory();
    let mut ids = Vec::new();
    for round in 0..200 {
        let put = served.expect(201, "PUT", "/v1/queues/q/tasks/same", &format!(r#"{{"payload":{round}}}"#));
        ids.push(put["id"].as_u64().expect("a number"));
        let leased = served.lease("q", 9);
        assert_eq!((leased.len(), &leased[0]["payload"]), (1, &json!(round)), "only the last one");
        assert_eq!(served.say("q", "ack", &[&leased[0]["token"]]), ["acked"]);
    }
    ids.dedup();
    assert_eq!(ids.len(), 200, "each is a task of its own");
    let last = served.call("GET", "/v1/queues/q/tasks/same", "");
    last.assert_problem(404, "done", "the last of them is done");
}

#[test]
fn ten_thousand_queues_are_counted_listed_and_served() {
    let served = Served::memory();
    let mut connection = served.connect();
    for n in 0..10_000 {
        connection.request("PUT", &format!("/v1/queues/q{n}/tasks/k"), &[], br#"{"delay":"1m"}"#);
        assert_eq!(connection.reply().status, 201);
    }
    served.advance("1m");
    let all = served.expect(200, "GET", "/v1/queues", "");
    let all = all["queues"].as_array().expect("a list");
    assert_eq!(all.len(), 10_000);
    assert!(all.iter().all(|queue| queue["ready"] == 1 && queue["scheduled"] == 0), "{:?}", all[0]);
    for n in [0, 4_999, 9_999] {
        assert_eq!(served.lease(&format!("q{n}"), 9).len(), 1);
    }
    let metrics = served.call("GET", "/metrics", "").text();
    assert!(metrics.contains("tickwheel_tasks{queue=\"{other}\",state=\"ready\"}"), "labels are bounded");
}

#[test]
fn the_last_day_of_february_follows_the_calendar() {
    let served = Served::memory();
    let body = r#"{"cron":"0 12 29 2 *","start":"2027-01-01T00:00:00Z"}"#;
    served.expect(201, "PUT", "/v1/queues/q/schedules/leap", body);
    let preview = served.expect(200, "GET", "/v1/queues/q/schedules/leap/preview?count=3", "");
    let at: Vec<_> =
        preview["occurrences"].as_array().expect("a list").iter().map(|one| one["at"].clone()).collect();
    assert_eq!(at, ["2028-02-29T12:00:00.000Z", "2032-02-29T12:00:00.000Z", "2036-02-29T12:00:00.000Z"]);
    for bad in ["2027-02-29T00:00:00Z", "2100-02-29T00:00:00Z"] {
        let refused = served.call("PUT", "/v1/queues/q/tasks/k", &format!(r#"{{"at":"{bad}"}}"#));
        refused.assert_problem(400, "bad-request", "there is no such day");
    }
    served.expect(201, "PUT", "/v1/queues/q/tasks/k", r#"{"at":"2028-02-29T00:00:00Z"}"#);
}
