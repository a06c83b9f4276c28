//! Two servers on one database: the second one waits, and goes on with everything once the first one is gone.

use serde_json::{Value, json};
use tickwheel_server::{Config, PostgresPlan, Store};

use crate::bulk::{over, put_ten_thousand};
use crate::postgres;
use crate::receiver::Receiver;
use crate::served::{Served, on_any_port, until};
use crate::targets;

fn server(url: &str, node: &str, receiver: &Receiver) -> Served {
    let store = Store::Postgres(PostgresPlan { url: url.to_owned(), node: node.to_owned(), migrate: true });
    let push = targets::open(receiver);
    Served::start(Config { push, shards: Some(3), ..on_any_port(store) }).expect("started")
}

fn is_ready(served: &Served) -> bool {
    served.call("GET", "/readyz", "").status == 200
}

#[test]
fn jobs_and_targets_go_on_with_the_next_server() {
    let Some(database) = postgres::shared().map(postgres::Server::database) else { return };
    let receiver = Receiver::start(&[]);
    let first = server(&database.url(), "first", &receiver);
    until("the first server has the shards", || is_ready(&first));
    let second = server(&database.url(), "second", &receiver);
    let told = second.call("GET", "/readyz", "");
    assert_eq!(told.status, 503);
    assert!(told.text().contains("`first`"), "it says who has the shards: {}", told.text());
    second.call("GET", "/v1/jobs", "").assert_problem(503, "starting", "another process");

    first.expect(201, "PUT", "/v1/queues/close/target", &targets::webhook(&receiver, json!({})));
    for part in 0..3 {
        put_ten_thousand(&first, &format!("{part}-"));
    }
    let job = first.call("POST", "/v1/queues/q/cancel", r#"{"filter":{}}"#).json();
    assert_eq!(job["state"], "running", "30 pages are not done at once: {job}");
    first.stop();

    until("the second server has the shards", || is_ready(&second));
    let done = until_known(&second, &job);
    assert_eq!((&done["state"], &done["of"]), (&json!("done"), &json!(30_000)), "{done}");
    assert_eq!(second.counts("q"), [0, 0, 0]);
    second.expect(201, "PUT", "/v1/queues/close/tasks/order-1", r#"{"payload":{"order":1}}"#);
    until("the target gets the task", || receiver.requests().len() == 1);
    second.stop();
}

#[test]
#[ignore = "the first server may take its shards back before the second one has them all, and the test does not wait for that"]
fn a_job_that_was_stopped_on_another_server_stays_stopped() {
    let Some(database) = postgres::shared().map(postgres::Server::database) else { return };
    let receiver = Receiver::start(&[]);
    let first = server(&database.url(), "first", &receiver);
    until("the first server has the shards", || is_ready(&first));
    let second = server(&database.url(), "second", &receiver);
    for part in 0..10 {
        put_ten_thousand(&first, &format!("{part}-"));
    }
    let job = first.call("POST", "/v1/queues/q/cancel", r#"{"filter":{}}"#).json();
    let path = format!("/v1/jobs/{}", job["id"]);
    // As if the first server had been silent for a lease: it goes on, and has lost its shards.
    // The first server begins a new incarnation at once. It may be faster than the second server.
    until("the second server has the shards", || {
        if is_ready(&first) {
            database.psql("UPDATE tickwheel.node SET ended = true WHERE name = 'first'");
        }
        is_ready(&second)
    });
    until("the first server knows that it has lost them", || !is_ready(&first));
    first.call("GET", &path, "").assert_problem(503, "starting", "another process");
    let stopped = second.expect(200, "DELETE", &path, "");
    // On a slow machine the job may be over by now. Then the first server must not run it again.
    assert_ne!(stopped["state"], "running", "{stopped}");
    second.stop();
    until("the first server has the shards again", || is_ready(&first));
    // The first server has looked at the jobs once it runs one that came later.
    let later = first.call("POST", "/v1/queues/q/cancel", r#"{"filter":{"key_contains":"9-"}}"#).json();
    if later["id"].is_u64() {
        over(&first, &later);
    }
    let known = first.expect(200, "GET", &path, "");
    assert_eq!((&known["state"], &known["looked_at"]), (&stopped["state"], &stopped["looked_at"]), "{known}");
    assert_eq!(first.counts("q") == [0, 0, 0], stopped["state"] == "done", "nothing goes on");
    first.stop();
}

/// Returns the job once it is over. The server reads the jobs a moment after it has the shard.
fn until_known(served: &Served, job: &Value) -> Value {
    until("the job runs again, or is over", || {
        let known = served.call("GET", &format!("/v1/jobs/{}", job["id"]), "");
        known.status == 200 && known.json()["looked_at"] != job["looked_at"]
    });
    over(served, job)
}
