//! Backups of a running server. A restore proves each of them.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use tickwheel_api::{Due, PayloadBody, PutBody, PutQuery};
use tickwheel_client::blocking::Client;

use crate::cli::run::run;
use crate::server::Server;
use crate::stores::{is_left_out, is_postgres};

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Starts a server with two tasks and a directory for backups.
fn shop(place: &Path) -> Server {
    let (data, backups) = (place.join("data"), place.join("backups"));
    let words = ["--data", text(&data), "--backup-dir", text(&backups), "--listen", "127.0.0.1:0"];
    let server = Server::start(&words);
    for key in ["order:1", "order:2"] {
        assert_eq!(run(&["put", "close", key, "--in", "30m", "--server", &server.url]).code, 0);
    }
    server
}

#[test]
fn a_running_server_is_backed_up_and_restored() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let server = shop(place.path());
    let made = run(&["backup", "--server", &server.url]);
    assert_eq!(made.code, 0, "{}", made.err);
    let backup: Value = serde_json::from_str(&made.out).expect("one object into a pipe");
    assert_eq!((&backup["state"], &backup["tasks"]), (&"done".into(), &2.into()), "{backup}");
    assert!(made.err.contains("copying"), "{}", made.err);
    let name = backup["name"].as_str().expect("a name");
    let table = run(&["backup", "--list", "-o", "table", "--server", &server.url]);
    assert!(table.out.contains(name) && table.out.contains("AS OF"), "{}", table.out);

    let (from, back) = (place.path().join("backups").join(name), place.path().join("back"));
    let doctor = run(&["doctor", text(&from), "--deep"]);
    assert_eq!(doctor.code, 0, "{}", doctor.out);
    let report: Value = serde_json::from_str(&doctor.out).expect("JSON");
    assert_eq!((&report["backup_as_of"], &report["dead"]), (&backup["as_of"], &0.into()));
    let restored = run(&["restore", text(&from), text(&back)]);
    assert_eq!(restored.code, 0, "{}", restored.err);
    let as_of = backup["as_of"].as_str().expect("a time");
    for part in ["2 live tasks and 0 dead in 1 queue, and", as_of, "verified: the files of the backup"] {
        assert!(restored.err.contains(part), "{part} is not in {}", restored.err);
    }
    let again = Server::start(&["--data", text(&back), "--listen", "127.0.0.1:0"]);
    assert_eq!(run(&["get", "close", "order:2", "--server", &again.url]).code, 0);
    assert!(again.stop(Signal::TERM).success() && server.stop(Signal::TERM).success());

    // This byte is behind the last frame of the log, so no opening reads it.
    let shard = from.join("shard-0000");
    let log = std::fs::read_dir(&shard).expect("the shard").map(|entry| entry.expect("an entry").path());
    let log = log.into_iter().find(|path| text(path).contains("/log-")).expect("a log file");
    let mut bytes = std::fs::read(&log).expect("readable");
    *bytes.last_mut().expect("some") ^= 1;
    std::fs::write(&log, bytes).expect("writable");
    let (doctor, deep) =
        (run(&["doctor", text(&from)]), run(&["doctor", text(&from), "--deep", "-o", "table"]));
    assert_eq!((doctor.code, deep.code), (0, 1), "{}", deep.out);
    assert!(deep.out.contains("backup.json: ") && deep.out.contains("with the checksum"), "{}", deep.out);
    let refused = run(&["restore", text(&from), text(&place.path().join("other"))]);
    assert!(
        refused.code == 1 && refused.err.contains("is not what its `backup.json` says"),
        "{}",
        refused.err
    );
}

#[test]
fn a_backup_is_begun_without_waiting_listed_and_stopped() {
    if is_left_out("backups are copies of a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let server = shop(place.path());
    let none = run(&["backup", "--list", "--server", &server.url]);
    assert!(none.code == 0 && none.err.contains("there are no backups"), "{}", none.err);
    // The copy of these tasks (14 MB) still runs when the next command comes.
    let client = Client::new(&server.url).expect("the server's own URL");
    for n in 0..16 {
        let payload = PayloadBody::json(format!("\"{}\"", "x".repeat(900_000)).into_bytes());
        let body = PutBody { due: Due::After(3_600_000), payload, ..PutBody::default() };
        client.put("close", &format!("large:{n}"), &body, PutQuery::default(), None).expect("taken");
    }
    let begun = run(&["backup", "--no-wait", "--server", &server.url]);
    let backup: Value = serde_json::from_str(&begun.out).expect("JSON");
    assert_eq!((begun.code, &backup["state"]), (0, &"running".into()), "{}", begun.err);
    let stopped = run(&["backup", "--stop", &backup["id"].to_string(), "--server", &server.url]);
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    let shown: Value = serde_json::from_str(&stopped.out).expect("JSON");
    assert_eq!((&shown["id"], &shown["state"]), (&backup["id"], &"stopped".into()), "{shown}");
    let left = std::fs::read_dir(place.path().join("backups")).expect("there");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["lock"], "a backup that is stopped leaves nothing");
    let absent = run(&["backup", "--stop", "7", "--server", &server.url]);
    assert!(absent.code == 1 && absent.err.contains("there is no backup `7`"), "{}", absent.err);
    assert!(server.stop(Signal::TERM).success());
}

#[test]
fn bad_arguments_of_a_backup_are_refused_with_a_hint() {
    let server = Server::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let nowhere = run(&["backup", "--server", &server.url]);
    let advice = if is_postgres() { "pg_dump" } else { "--backup-dir" };
    assert!(nowhere.code == 1 && nowhere.err.contains(advice), "{}", nowhere.err);
    let half = run(&["backup", "./data"]);
    assert!(half.code == 2 && half.err.contains("TO"), "{}", half.err);
    let schedule = run(&["serve", "--memory", "--backup-every", "1h"]);
    assert!(schedule.code == 1 && schedule.err.contains("add --backup-dir"), "{}", schedule.err);
    let often = run(&["serve", "--backup-dir", "b", "--backup-every", "1ms"]);
    assert!(often.code == 2 && often.err.contains("1s to 366d"), "{}", often.err);
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    std::fs::create_dir(&data).expect("made");
    let inside = run(&[
        "serve",
        "--data",
        text(&data),
        "--backup-dir",
        text(&data.join("b")),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert!(inside.code == 1 && inside.err.contains("lies in the data directory"), "{}", inside.err);
}
