//! The table "what is repeated" of the crate's documentation, row by row.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use tickwheel_api::{
    AttemptsQuery, BatchLine, BatchOp, BulkCancelBody, BulkMoveBody, ExportQuery, ExtendBody, ForecastQuery,
    ImportQuery, LeaseBody, LeasesQuery, ListQuery, MoveTo, NackBody, PatchBody, PauseBody, PreviewQuery,
    PurgeBody, PutBody, PutQuery, QueuesQuery, RedriveBody, RevokeQuery, RotateBody, ScheduleSpec,
    SchedulesQuery, SettingsBody, TargetBody, TargetKind, TaskFilter,
};
use tickwheel_client::blocking::Client;
use tickwheel_client::{ClientError, Outcome, Retries};

use crate::script::read_request;

/// One more try, at once.
const TWICE: Retries = Retries { calls: 2, base: Duration::ZERO, max: Duration::ZERO };

type Sends = fn(&Client) -> Result<(), ClientError>;

fn token() -> Vec<String> {
    vec!["t".to_owned()]
}

fn schedule() -> ScheduleSpec {
    ScheduleSpec::parse(br#"{"every":"1h"}"#).expect("a schedule")
}

/// Every call of the client.
const CALLS: &[(&str, Sends)] = &[
    ("ack", |client| client.ack("q", token()).map(drop)),
    ("advance", |client| client.advance(1).map(drop)),
    ("all_schedules", |client| client.all_schedules(&SchedulesQuery::default()).map(drop)),
    ("attempts", |client| client.attempts("q", &AttemptsQuery::default()).map(drop)),
    ("backup", |client| client.backup(1).map(drop)),
    ("backups", |client| client.backups().map(drop)),
    ("batch", |client| {
        let line = BatchLine { key: "k".to_owned(), if_match: None, revoke: false, op: BatchOp::Cancel };
        client.batch("q", &[line]).map(drop)
    }),
    ("begin_backup", |client| client.begin_backup().map(drop)),
    ("cancel", |client| client.cancel("q", "k", RevokeQuery::default(), None).map(drop)),
    ("cancel_many", |client| {
        let body = BulkCancelBody { filter: TaskFilter::default(), dry_run: false, revoke: false };
        client.cancel_many("q", &body).map(drop)
    }),
    ("configure", |client| client.configure("q", &SettingsBody::default()).map(drop)),
    ("dead", |client| client.dead("q", &ListQuery::default()).map(drop)),
    ("dead_groups", |client| client.dead_groups("q").map(drop)),
    ("delete_queue", |client| client.delete_queue("q").map(drop)),
    ("delete_schedule", |client| client.delete_schedule("q", "n", None).map(drop)),
    ("drain", |client| client.drain("q").map(drop)),
    ("drain_server", |client| client.drain_server().map(drop)),
    ("delete_target", |client| client.delete_target("q", None).map(drop)),
    ("export", |client| client.export(&ExportQuery { queue: None, cursor: None }).map(drop)),
    ("extend", |client| client.extend("q", &ExtendBody { tokens: token(), lease_ms: None }).map(drop)),
    ("forecast", |client| client.forecast(&ForecastQuery::default()).map(drop)),
    ("get", |client| client.get("q", "k").map(drop)),
    ("health", |client| client.health().map(drop)),
    ("import", |client| client.import(ImportQuery::default(), Vec::new()).map(drop)),
    ("index", |client| client.index().map(drop)),
    ("job", |client| client.job(1).map(drop)),
    ("jobs", |client| client.jobs().map(drop)),
    ("lease", |client| client.lease("q", &LeaseBody::default()).map(drop)),
    ("leases", |client| client.leases(&LeasesQuery::default()).map(drop)),
    ("list", |client| client.list("q", &ListQuery::default()).map(drop)),
    ("list_backups", |client| client.list_backups().map(drop)),
    ("list_queues", |client| client.list_queues(&QueuesQuery::default()).map(drop)),
    ("metrics", |client| client.metrics().map(drop)),
    ("move_many", |client| {
        let filter = TaskFilter::default();
        let body = BulkMoveBody { filter, to: MoveTo::At(1), dry_run: false, revoke: false };
        client.move_many("q", &body).map(drop)
    }),
    ("nack", |client| {
        client.nack("q", &NackBody { tokens: token(), delay_ms: None, reason: None }).map(drop)
    }),
    ("patch", |client| client.patch("q", "k", &PatchBody::default(), RevokeQuery::default(), None).map(drop)),
    ("pause", |client| client.pause("q", &PauseBody::default()).map(drop)),
    ("pause_target", |client| client.pause_target("q").map(drop)),
    ("post", |client| client.post("q", &PutBody::default()).map(drop)),
    ("post_once", |client| client.post_once("q", "k", &PutBody::default()).map(drop)),
    ("preview", |client| client.preview("q", "n", PreviewQuery::default()).map(drop)),
    ("preview_unstored", |client| client.preview_unstored(&schedule(), PreviewQuery::default()).map(drop)),
    ("purge", |client| client.purge("q", PurgeBody::default()).map(drop)),
    ("put", |client| client.put("q", "k", &PutBody::default(), PutQuery::default(), None).map(drop)),
    ("put_target", |client| {
        client.put_target("q", &TargetBody::of_kind(TargetKind::Webhook), None).map(drop)
    }),
    ("put_schedule", |client| client.put_schedule("q", "n", &schedule(), None).map(drop)),
    ("queue", |client| client.queue("q").map(drop)),
    ("queues", |client| client.queues().map(drop)),
    ("reconfigure", |client| client.reconfigure("q", b"{}".to_vec()).map(drop)),
    ("redrive", |client| client.redrive("q", &RedriveBody::Id(1)).map(drop)),
    ("redrive_many", |client| client.redrive_many("q", &TaskFilter::default(), false).map(drop)),
    ("release", |client| client.release("q", "k", None).map(drop)),
    ("resume", |client| client.resume("q").map(drop)),
    ("resume_target", |client| client.resume_target("q").map(drop)),
    ("rotate_target", |client| client.rotate_target("q", &RotateBody::default()).map(drop)),
    ("resume_server", |client| client.resume_server().map(drop)),
    ("run", |client| client.run("q", "k", None).map(drop)),
    ("schedule", |client| client.schedule("q", "n").map(drop)),
    ("schedules", |client| client.schedules("q", &SchedulesQuery::default()).map(drop)),
    ("stop_backup", |client| client.stop_backup(1).map(drop)),
    ("stop_job", |client| client.stop_job(1).map(drop)),
    ("story", |client| client.story("q", "k").map(drop)),
    ("tasks_of_key", |client| client.tasks_of_key("k").map(drop)),
    ("target", |client| client.target("q").map(drop)),
    ("targets", |client| client.targets().map(drop)),
    ("test_target", |client| client.test_target("q").map(drop)),
    ("whoami", |client| client.whoami().map(drop)),
];

/// A server that reads each request and closes its connection. Returns the number of requests.
fn swallowing() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // The thread ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            read_request(&mut BufReader::new(&stream)).expect("a request");
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (url, count)
}

/// The rows of the table: whether each call is repeated.
fn table() -> BTreeMap<String, bool> {
    let page = include_str!("../../src/lib.rs");
    let mut rows = BTreeMap::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("//! | `")) {
        let (names, rest) = row.split_once(" | ").expect("cells");
        for name in names.trim_end_matches('`').split("` `") {
            assert!(rows.insert(name.to_owned(), rest.starts_with("yes")).is_none(), "{name} stands twice");
        }
    }
    rows
}

#[test]
fn each_call_is_repeated_as_the_table_says() {
    let (url, count) = swallowing();
    let client = Client::new(&url).expect("a URL").with_retries(TWICE);
    let mut seen = BTreeMap::new();
    for (name, sends) in CALLS {
        let before = count.load(Ordering::SeqCst);
        let error = sends(&client).expect_err("no answer");
        assert_eq!(error.outcome(), Outcome::Unknown, "{name}: {error:?}");
        seen.insert((*name).to_owned(), count.load(Ordering::SeqCst) - before == 2);
    }
    assert_eq!(seen, table());
}

/// Regression: the first attempt was applied and its answer was lost. At the second attempt there was no server any more, and the error
/// said that nothing was sent.
#[test]
fn a_lost_answer_is_not_forgotten_where_the_last_attempt_is_refused() {
    for refusal in [None, Some(BUSY)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let server = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            read_request(&mut BufReader::new(&stream)).expect("a request");
            drop(stream);
            let Some(answer) = refusal else { return };
            let (mut stream, _) = listener.accept().expect("a second connection");
            read_request(&mut BufReader::new(&stream)).expect("a request");
            stream.write_all(answer.as_bytes()).expect("sent");
        });
        let client = Client::new(&url).expect("a URL").with_retries(TWICE);
        let error = client.delete_queue("q").expect_err("no answer that counts");
        assert_eq!(error.outcome(), Outcome::Unknown, "{refusal:?}: {error:?}");
        server.join().expect("the server is through");
    }
}

const BUSY: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\ncontent-length: 73\r\n\r\n{\"type\":\"/problems/busy\",\"title\":\"busy\",\"status\":429,\"detail\":\"too many\"}";

#[test]
fn a_call_with_a_version_is_not_repeated() {
    let (url, count) = swallowing();
    let client = Client::new(&url).expect("a URL").with_retries(TWICE);
    assert!(client.put_schedule("q", "n", &schedule(), Some(1)).is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn the_table_has_every_call() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/calls");
    let mut declared = Vec::new();
    for file in fs::read_dir(folder).expect("the calls") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        let calls =
            text.split("calls! {\n").nth(1).map_or("", |rest| rest.split("\n}").next().unwrap_or_default());
        let by_hand = text.lines().filter_map(|line| line.strip_prefix("    pub async fn "));
        let names = calls.lines().filter_map(|line| line.strip_prefix("    fn ")).chain(by_hand);
        declared.extend(names.map(|line| line.split('(').next().expect("a name").to_owned()));
    }
    declared.retain(|name| name != "next");
    declared.sort();
    assert_eq!(declared, table().into_keys().collect::<Vec<_>>());
}
