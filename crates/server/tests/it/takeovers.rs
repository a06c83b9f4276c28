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
    second.call("GET", "/v1/backups", "").assert_problem(404, "no-backup-dir", "pg_dump");
    second.stop();
}

/// Returns the job once it is over. The server reads the jobs a moment after it has the shard.
fn until_known(served: &Served, job: &Value) -> Value {
    until("the job runs again, or is over", || {
        let known = served.call("GET", &format!("/v1/jobs/{}", job["id"]), "");
        known.status == 200 && known.json()["looked_at"] != job["looked_at"]
    });
    over(served, job)
}
