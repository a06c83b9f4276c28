//! `tickwheel salvage`: from damage to a server that works again.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::cli::doctor::of_shards;
use crate::cli::run::run;
use crate::server::{Server, tickwheel};
use crate::stores::is_left_out;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Makes the directory of a stopped server that had ten tasks.
fn shop(data: &Path) {
    let server = Server::start(&["--data", text(data), "--listen", "127.0.0.1:0"]);
    for n in 0..10 {
        let put = run(&["put", "close", &format!("order:{n}"), "--in", "30m", "--server", &server.url]);
        assert_eq!(put.code, 0, "{}", put.err);
    }
    assert!(server.stop(Signal::TERM).success());
}

/// All files with their content.
fn files(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for folder in [data.to_owned(), data.join("shard-0000")] {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                files.push((path.clone(), fs::read(path).expect("readable")));
            }
        }
    }
    files.sort();
    files
}

/// Damages the frame of the put of this key.
fn damage(data: &Path, key: &str) {
    let log = data.join("shard-0000/log-00000001");
    let mut bytes = fs::read(&log).expect("readable");
    let at = bytes.windows(key.len()).position(|bytes| bytes == key.as_bytes()).expect("it was put");
    bytes[at - 3] ^= 0x40;
    fs::write(&log, bytes).expect("writable");
}

#[test]
fn a_damaged_directory_is_refused_examined_salvaged_and_served_again() {
    if is_left_out("`salvage` saves a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, out] = ["data", "out"].map(|name| place.path().join(name));
    shop(&data);
    damage(&data, "order:4");
    let before = files(&data);

    let refused =
        tickwheel(&["serve", "--data", text(&data), "--listen", "127.0.0.1:0"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("tickwheel salvage"), "{told}");

    let seen = run(&["doctor", text(&data), "-o", "table"]);
    assert_eq!(seen.code, 1, "{}", seen.out);
    let last: Vec<&str> = seen.out.trim_end().lines().rev().take(2).collect();
    assert!(last[1].starts_with("way out") && last[1].contains("tickwheel restore"), "{}", seen.out);
    assert!(last[0].contains(&format!("tickwheel salvage {} NEW", data.display())), "{}", seen.out);
    assert!(last[0].contains("tickwheel serve --data NEW"), "{}", seen.out);

    let saved = run(&["salvage", text(&data), text(&out), "-o", "table"]);
    assert_eq!(saved.code, 3, "{}{}", saved.out, saved.err);
    for part in [
        "9 live, 0 dead",
        "one part of the directory",
        "(frame)",
        "at most 1 task is lost, or was saved in an older state",
        "settings and schedules may be older ones",
        "such a key is answered `not_found`",
        "may hold 1 task that had ended",
    ] {
        assert!(saved.out.contains(part), "{part} is not in {}", saved.out);
    }
    assert!(saved.out.contains(&format!("tickwheel serve --data {}", out.display())), "{}", saved.out);
    assert_eq!(files(&data), before, "the damaged directory was changed");

    let server = Server::start(&["--data", text(&out), "--listen", "127.0.0.1:0"]);
    for n in 0..10 {
        let got = run(&["get", "close", &format!("order:{n}"), "--server", &server.url]);
        assert_eq!(got.code, i32::from(n == 4), "order:{n}: {}", got.err);
    }
    assert!(server.stop(Signal::TERM).success());
    assert_eq!(run(&["doctor", text(&out), "--deep"]).code, 0);
}

#[test]
fn the_report_is_json_and_a_whole_directory_is_no_failure() {
    if is_left_out("`salvage` saves a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, out, other] = ["data", "out", "other"].map(|name| place.path().join(name));
    shop(&data);
    let saved = run(&["salvage", text(&data), text(&out)]);
    let line: serde_json::Value = serde_json::from_str(saved.lines()[0]).expect("one object into a pipe");
    assert_eq!(
        (&line["whole"], &line["tasks"], &line["losses"]),
        (&true.into(), &10.into(), &serde_json::json!([]))
    );
    assert_eq!(line["queues"][0]["queue"], "close");
    damage(&data, "order:7");
    let saved = run(&["salvage", text(&data), text(&other)]);
    assert_eq!(saved.code, 3, "{}", saved.err);
    let line: serde_json::Value = serde_json::from_str(&saved.out).expect("one object into a pipe");
    let loss = &line["losses"][0];
    assert_eq!(
        (&loss["unit"], &loss["tasks_max"], &loss["certain"]),
        (&"frame".into(), &1.into(), &true.into())
    );
    assert_eq!((&line["may_hold_ended_tasks"], &line["ended_tasks_max"]), (&true.into(), &1.into()));
}

#[test]
fn a_directory_of_several_shards_is_salvaged_shard_by_shard() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, whole, out] = ["data", "whole", "out"].map(|name| place.path().join(name));
    of_shards(&data);
    let saved = run(&["salvage", text(&data), text(&whole), "-o", "table"]);
    assert_eq!(saved.code, 0, "{}{}", saved.out, saved.err);
    assert!(saved.out.contains(": 3 shards, ") && saved.out.contains("9 live"), "{}", saved.out);
    assert_eq!(run(&["doctor", text(&whole), "--deep"]).code, 0);
    fs::remove_dir_all(data.join("0001")).expect("removed");
    let saved = run(&["salvage", text(&data), text(&out), "-o", "table"]);
    assert_eq!(saved.code, 3, "{}{}", saved.out, saved.err);
    let expected = "0001 (shard): the directory is missing; all of shard 1 of 3 is lost";
    assert!(saved.out.contains(expected), "{}", saved.out);
    assert_eq!(run(&["doctor", text(&out), "--deep"]).code, 0);
    fs::remove_dir_all(&out).expect("removed");
    let saved = run(&["salvage", text(&data), text(&out)]);
    let line: serde_json::Value = serde_json::from_str(&saved.out).expect("one object into a pipe");
    let loss = &line["losses"][0];
    assert_eq!((&line["shards"], &loss["file"], &loss["unit"]), (&3.into(), &"0001".into(), &"shard".into()));
}

#[test]
fn unusable_directories_are_refused() {
    if is_left_out("`salvage` saves a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, out] = ["data", "out"].map(|name| place.path().join(name));
    let server = Server::start(&["--data", text(&data), "--listen", "127.0.0.1:0"]);
    let refused = |from: &Path, to: &Path, what: &str| {
        let seen = run(&["salvage", text(from), text(to)]);
        assert_eq!((seen.code, seen.out.as_str()), (1, ""), "{}", seen.err);
        assert!(seen.err.contains(what), "{what} is not in {}", seen.err);
    };
    refused(&data, &out, "running process");
    assert!(server.stop(Signal::TERM).success());
    refused(&data, &data.join("inside"), "choose a place outside");
    refused(&data, &data, "is not empty");
    refused(&place.path().join("absent"), &out, "No such file");
    fs::create_dir(place.path().join("empty")).expect("made");
    refused(&place.path().join("empty"), &out, "is no data directory");
    fs::remove_file(data.join("meta")).expect("removed");
    refused(&data, &out, "no file can be read without the secret");
    refused(&data, &out, "put the `meta` of a backup into the copy");
    assert!(!out.exists() && !place.path().join("out.unfinished").exists(), "nothing is left");
}
