//! Two servers on one database. The one that has the shards is frozen until the other one has taken them.

use std::fmt::Write as _;

use rustix::process::Signal;
use serde_json::Value;

use crate::kit::{self, until};
use crate::postgres::words::{ask, asked};
use crate::server::Server;

const KEYS: usize = 10_000;

fn serve(url: &str, node: &str) -> Server {
    Server::start(&["--listen", "127.0.0.1:0", "--postgres", url, "--node", node, "--shards", "3"])
}

fn is_ready(server: &Server) -> bool {
    ask(server, "GET", "/readyz", "").0 == 200
}

/// Puts tasks that are due in an hour.
fn put(server: &Server, part: usize) {
    let mut lines = String::new();
    for key in 0..KEYS {
        writeln!(lines, r#"{{"op":"put","key":"{part}-{key}","delay":"1h"}}"#).expect("a string takes all");
    }
    asked(server, "POST", "/v1/queues/q/batch", &lines);
}

/// The number of scheduled tasks.
fn scheduled(server: &Server) -> Value {
    asked(server, "GET", "/v1/queues/q", "")["scheduled"].clone()
}

/// Waits until the job is over.
fn over(server: &Server, job: &Value) {
    let path = format!("/v1/jobs/{}", job["id"]);
    until("the job is over", || asked(server, "GET", &path, "")["state"] != "running");
}

/// The tasks of one page of a job.
const PAGE: u64 = 1_000;

#[test]
fn a_job_that_was_stopped_on_another_server_stays_stopped() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let first = serve(&database.url(), "first");
    until("the first server has the shards", || is_ready(&first));
    let second = serve(&database.url(), "second");
    assert!(!is_ready(&second));
    for part in 0..10 {
        put(&first, part);
    }
    let job = asked(&first, "POST", "/v1/queues/q/cancel", r#"{"filter":{}}"#);
    assert_eq!(job["state"], "running", "100 pages are not done at once: {job}");
    let path = format!("/v1/jobs/{}", job["id"]);

    first.signal(Signal::STOP);
    until("the second server has the shards", || is_ready(&second));
    let mut stopped = Value::Null;
    until("the second server has read the jobs", || {
        let (status, told) = ask(&second, "DELETE", &path, "");
        stopped = told;
        status == 200
    });
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    assert_ne!(scheduled(&second), 0, "the job had not reached all tasks");

    // The first server still has the running job in its memory.
    first.signal(Signal::CONT);
    until("the first server says who has the shards", || {
        let (status, told) = ask(&first, "GET", &path, "");
        assert_eq!(status, 503, "the first server has no say about the job: {told}");
        told["detail"].as_str().is_some_and(|detail| detail.contains("`second` at "))
    });

    assert_eq!(second.stop(Signal::TERM).code(), Some(0));
    until("the first server has the shards again", || is_ready(&first));
    // A job over all tasks takes longer than the pauses after which an entry from before would go on.
    let later = asked(&first, "POST", "/v1/queues/q/cancel", r#"{"filter":{},"dry_run":true}"#);
    assert!(later["id"].is_u64(), "it is no job: {later}");
    over(&first, &later);
    let known = asked(&first, "GET", &path, "");
    assert_eq!(known["state"], "stopped", "{known}");
    // The page that was under way at the stop is done to its end, and no page follows it.
    let number = |job: &Value, member: &str| job[member].as_u64().expect("a number");
    let pages = number(&known, "looked_at") - number(&stopped, "looked_at");
    assert!(pages <= PAGE, "the stopped job goes on: {stopped}, then {known}");
    assert_eq!(scheduled(&first), number(&known, "of") - number(&known, "cancelled"), "{known}");
}
