//! Backups that a server makes of its own data while it serves.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tickwheel_queue::backup::{Manifest, restore};
use tickwheel_server::{BackupPlan, Config, PushPlan, Store};

use crate::databases::is_left_out;
use crate::served::{Served, on_any_port, until};

/// A directory with a server's data and its backups.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn backups(&self) -> PathBuf {
        self.0.path().join("backups")
    }

    fn config(&self) -> Config {
        let plan = BackupPlan { directory: self.backups(), every: None, keep: None };
        let store = Store::Dir(self.data());
        Config { virtual_clock: true, backups: Some(plan), ..on_any_port(store) }
    }

    fn start(&self) -> Served {
        let served = Served::start(self.config()).expect("started");
        for key in ["a", "b", "c"] {
            served.call("PUT", &format!("/v1/queues/q/tasks/{key}"), r#"{"delay":"1h"}"#);
        }
        served
    }

    /// The entries of the directory of backups, without its lock.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.backups()).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
        names.retain(|name| name != "lock");
        names.sort();
        names
    }
}

/// A server with a directory for backups, and the temporary directory of both.
pub(crate) fn with_place() -> (tempfile::TempDir, Served) {
    with_place_and(PushPlan::default())
}

/// Like [`with_place`], with this part about targets.
pub(crate) fn with_place_and(push: PushPlan) -> (tempfile::TempDir, Served) {
    let place = Place::new();
    let served = Served::start(Config { push, ..place.config() }).expect("started");
    (place.0, served)
}

fn begin(served: &Served) -> Value {
    served.expect(202, "POST", "/v1/backups", "")
}

fn at(backup: &Value) -> String {
    format!("/v1/backups/{}", backup["id"])
}

/// The backup once it has ended.
fn over(served: &Served, backup: &Value) -> Value {
    let mut last = Value::Null;
    until("the backup is over", || {
        last = served.expect(200, "GET", &at(backup), "");
        last["state"] != "running"
    });
    last
}

#[test]
fn a_backup_is_begun_followed_and_whole() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = Place::new();
    let served = place.start();
    assert_eq!(served.expect(200, "GET", "/v1/backups", "")["backups"], serde_json::json!([]));
    assert_eq!(served.metric("tickwheel_backup_last_success_timestamp_seconds"), 0.0);
    let reply = served.call("POST", "/v1/backups", "");
    let begun = reply.json();
    assert_eq!((reply.status, reply.header("location")), (202, Some(at(&begun).as_str())), "{begun}");
    assert_eq!(begun["state"], "running");
    served.call("POST", "/v1/backups", "").assert_problem(409, "backup-under-way", &begun["id"].to_string());
    let whole = over(&served, &begun);
    assert_eq!((&whole["state"], &whole["tasks"]), (&"done".into(), &3.into()), "{whole}");
    assert_eq!(whole["bytes_done"], whole["bytes"]);
    assert!(whole["as_of"].as_str() >= whole["begun_at"].as_str(), "{whole}");
    let name = whole["name"].as_str().expect("a name");
    assert_eq!(place.names(), [name]);
    assert_eq!(
        served.metric("tickwheel_backup_last_success_bytes"),
        whole["bytes"].as_f64().expect("a count")
    );
    let page = served.call("GET", "/metrics", "").text();
    assert!(page.contains("tickwheel_backups_total{result=\"done\"} 1\n"), "{page}");

    // The restored directory shows the contents of the backup.
    let back = place.0.path().join("back");
    let report = restore(&place.backups().join(name), &back).expect("restored");
    assert_eq!(report.tasks, Some(3));
    // A restart knows the whole backups. A whole backup cannot be stopped, and the next one has a higher number.
    served.stop();
    let served = place.start();
    assert_eq!(served.expect(200, "GET", &at(&whole), ""), whole);
    assert_eq!(served.expect(200, "DELETE", &at(&whole), ""), whole);
    let next = over(&served, &begin(&served));
    assert!(next["id"].as_u64() > whole["id"].as_u64());
    let all = served.expect(200, "GET", "/v1/backups", "");
    assert_eq!(all["backups"], Value::Array(vec![next, whole]), "the newest first");
}

#[test]
fn a_backup_is_stopped_by_a_caller_and_by_a_stop_of_the_server() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = Place::new();
    let served = place.start();
    let begun = begin(&served);
    let stopped = served.expect(200, "DELETE", &at(&begun), "");
    assert_eq!((&stopped["state"], &stopped["error"]), (&"stopped".into(), &Value::Null), "{stopped}");
    assert!(place.names().is_empty(), "{:?}", place.names());
    assert_eq!(served.expect(200, "GET", "/v1/backups", "")["backups"], Value::Array(vec![stopped]));
    begin(&served);
    served.stop();
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn unfinished_backups_of_a_killed_server_are_removed_and_a_failure_is_told() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = Place::new();
    let part = place.backups().join("backup-20261125T092640.123Z.unfinished");
    fs::create_dir_all(part.join("shard-0000")).expect("made");
    let served = place.start();
    assert!(place.names().is_empty(), "{:?}", place.names());
    fs::remove_dir_all(place.backups()).expect("removed");
    let failed = over(&served, &begin(&served));
    assert_eq!(failed["state"], "failed", "{failed}");
    let error = failed["error"].as_str().expect("it says why");
    assert!(error.contains("No such file"), "{error}");
    fs::create_dir(place.backups()).expect("made");
    let whole = over(&served, &begin(&served));
    assert_eq!(whole["state"], "done", "{whole}");
    assert_eq!(served.expect(200, "GET", "/v1/backups", "")["backups"], Value::Array(vec![whole, failed]));
}

#[test]
fn a_schedule_makes_backups_and_the_oldest_go() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = Place::new();
    let mut config = place.config();
    let plan = config.backups.as_mut().expect("there is one");
    plan.every = Some(Duration::from_millis(1));
    plan.keep = NonZeroUsize::new(2);
    let mut seen = std::collections::BTreeSet::new();
    let served = Served::start(config).expect("started");
    until("four were made", || {
        let whole = place.names().into_iter().filter(|name| !name.ends_with(".unfinished"));
        let whole: Vec<String> = whole.collect();
        // The oldest backup is removed only when a newer one is whole, so there may be one more.
        assert!(whole.len() <= 3 && (seen.is_empty() || !whole.is_empty()), "{whole:?}");
        seen.extend(whole);
        seen.len() >= 4
    });
    let page = served.call("GET", "/metrics", "").text();
    assert!(!page.contains("tickwheel_backups_total{result=\"left_out\"} 0\n"), "{page}");
    served.stop();
    assert!(place.names().len() <= 2, "{:?}", place.names());
}

#[test]
fn a_server_without_a_directory_for_backups_says_so() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let served = Served::memory();
    for (method, target) in [
        ("POST", "/v1/backups"),
        ("GET", "/v1/backups"),
        ("GET", "/v1/backups/1"),
        ("DELETE", "/v1/backups/1"),
    ] {
        served.call(method, target, "").assert_problem(404, "no-backup-dir", "--backup-dir");
    }
    assert!(served.call("GET", "/v1/backups", "").text().contains("kept in memory"));
    let place = Place::new();
    let served = Served::start(Config { backups: None, ..place.config() }).expect("started");
    assert!(served.call("GET", "/v1/backups", "").text().contains("without a place"));
    let page = served.call("GET", "/metrics", "").text();
    assert!(!page.contains("tickwheel_backup_last_success"), "an alert on its age would never end: {page}");
    let served = place_of(&place, "other").expect("started");
    served.call("GET", "/v1/backups/7", "").assert_problem(404, "no-backup", "");
    served.call("GET", "/v1/backups/seven", "").assert_problem(404, "no-backup", "");
    served.call("POST", "/v1/backups?to=/tmp", "").assert_problem(400, "bad-request", "to");
    served.call("POST", "/v1/backups", r#"{"to":"/tmp"}"#).assert_problem(400, "bad-request", "");
    let refused = place_of(&place, "third").err().expect("the directory is another's").to_string();
    assert!(refused.contains("another running server"), "{refused}");
}

/// A server with this data directory, and with the backups of `place`.
fn place_of(place: &Place, data: &str) -> Result<Served, tickwheel_server::StartError> {
    let data: &Path = &place.0.path().join(data);
    Served::start(Config { store: Store::Dir(data.to_owned()), ..place.config() })
}

#[test]
fn a_damaged_backup_is_shown_as_such() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = Place::new();
    let served = place.start();
    let whole = over(&served, &begin(&served));
    let name = whole["name"].as_str().expect("a name");
    fs::write(place.backups().join(name).join(Manifest::FILE), b"{}").expect("harmed");
    let shown = served.expect(200, "GET", &at(&whole), "");
    assert_eq!(shown["state"], "failed");
    assert!(shown["error"].as_str().is_some_and(|error| error.contains("damaged")), "{shown}");
}

#[test]
fn the_newest_backups_are_listed_and_the_rest_counted() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = Place::new();
    let served = place.start();
    // Damaged backups are listed, too.
    for n in 100..209 {
        let old = place.backups().join(format!("backup-20251125T100000.{n}Z"));
        fs::create_dir(&old).expect("made");
        fs::write(old.join(Manifest::FILE), b"{}").expect("written");
    }
    let all = served.expect(200, "GET", "/v1/backups", "");
    let shown = all["backups"].as_array().expect("a list");
    assert_eq!((shown.len(), &all["older"]), (100, &9.into()));
    assert_eq!(
        (&shown[0]["name"], &shown[99]["name"]),
        (&"backup-20251125T100000.208Z".into(), &"backup-20251125T100000.109Z".into())
    );
    let older = served.expect(200, "GET", "/v1/backups/1764064800100", "");
    assert_eq!(older["name"], "backup-20251125T100000.100Z", "each one can be looked at");
}
