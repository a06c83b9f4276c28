//! A data directory is examined, copied, and restored from its copy.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;
use tickwheel_queue::{Key, Put, Queue, QueueName};

use crate::cli::run::run;
use crate::server::Server;
use crate::stores::is_left_out;

/// Makes the directory of a stopped server that had three tasks, one of them cancelled.
fn shop(data: &Path) {
    let data = text(data);
    let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0"]);
    for key in ["order:1", "order:2", "order:3"] {
        let put = run(&["put", "close", key, "--in", "30m", "--server", &server.url]);
        assert_eq!(put.code, 0, "{}", put.err);
    }
    assert_eq!(run(&["cancel", "close", "order:3", "--server", &server.url]).code, 0);
    assert!(server.stop(Signal::TERM).success());
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_directory_in_order_is_told_to_people_and_to_programs() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    shop(&data);
    let seen = run(&["doctor", text(&data), "--deep", "-o", "table"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""), "{}", seen.out);
    for part in
        ["in order", "real clock", "2 live, 0 dead, 1 ended", "QUEUE", "close", "LOG FILE", "shard-0000/log-"]
    {
        assert!(seen.out.contains(part), "{part} is not in {}", seen.out);
    }
    assert!(!seen.out.contains("problem"), "{}", seen.out);
    let told = run(&["doctor", text(&data)]);
    let line: serde_json::Value = serde_json::from_str(told.lines()[0]).expect("one object into a pipe");
    assert_eq!(
        (&line["in_order"], &line["tasks"], &line["in_use"]),
        (&true.into(), &2.into(), &false.into())
    );
    assert_eq!(line["queues"][0]["queue"], "close");
    assert_eq!(line["problems"], serde_json::json!([]));
}

#[test]
fn dead_tasks_are_counted_apart_from_live_ones() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    let server = Server::start(&["--data", text(&data), "--listen", "127.0.0.1:0"]);
    let at = |words: &[&str]| {
        let ran = run(&[words, &["--server", &server.url]].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        ran.out
    };
    for (queue, key) in [("close", "dies"), ("mail", "dies")] {
        at(&["put", queue, key, "--max-attempts", "1"]);
        let leased: serde_json::Value =
            serde_json::from_str(&at(&["lease", queue, "-o", "json"])).expect("one task");
        at(&["nack", queue, leased["token"].as_str().expect("a token")]);
    }
    at(&["put", "close", "lives", "--in", "30m"]);
    at(&["put", "close", "ends", "--in", "30m"]);
    at(&["cancel", "close", "ends"]);
    assert!(server.stop(Signal::TERM).success());
    let seen = run(&["doctor", text(&data), "-o", "table"]);
    assert!(seen.out.contains("1 live, 2 dead, 1 ended remembered"), "{}", seen.out);
    let rows: Vec<Vec<&str>> = seen.out.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [["QUEUE", "LIVE", "DEAD"], ["close", "1", "1"], ["mail", "0", "1"]] {
        assert!(rows.contains(&row.to_vec()), "{row:?} is not in {}", seen.out);
    }
    let line: serde_json::Value = serde_json::from_str(&run(&["doctor", text(&data)]).out).expect("JSON");
    assert_eq!((&line["tasks"], &line["dead"], &line["ended"]), (&json!(1), &json!(2), &json!(1)));
    assert_eq!(line["queues"][1], json!({"queue": "mail", "tasks": 0, "dead": 1}));
}

#[test]
fn a_running_server_is_no_obstacle_and_is_told() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    let server = Server::start(&["--data", text(&data), "--listen", "127.0.0.1:0"]);
    assert_eq!(run(&["put", "close", "order:1", "--in", "30m", "--server", &server.url]).code, 0);
    let seen = run(&["doctor", text(&data), "--deep"]);
    assert_eq!(seen.code, 0, "{}", seen.out);
    assert!(seen.out.contains("\"in_use\":true") && seen.err.contains("may change"), "{}", seen.err);
    let copied = run(&["backup", text(&data), text(&place.path().join("copy"))]);
    assert_eq!((copied.code, copied.out.as_str()), (1, ""));
    assert!(copied.err.contains("running process"), "{}", copied.err);
    assert!(server.stop(Signal::TERM).success());
}

#[test]
fn damage_is_told_with_its_place_and_a_way_out() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    shop(&data);
    let meta = data.join("meta");
    let mut bytes = std::fs::read(&meta).expect("readable");
    bytes[20] ^= 1;
    std::fs::write(&meta, bytes).expect("writable");
    let seen = run(&["doctor", text(&data), "-o", "table"]);
    assert_eq!(seen.code, 1, "{}", seen.out);
    assert!(seen.out.contains("1 problem") && seen.out.contains("meta at byte 0"), "{}", seen.out);
    assert!(seen.out.contains("restore the data directory from a copy"), "{}", seen.out);
    let copied = run(&["backup", text(&data), text(&place.path().join("copy"))]);
    assert_eq!(copied.code, 1);
    assert!(copied.err.contains("meta at byte 0"), "{}", copied.err);
}

#[test]
fn a_secret_key_that_is_missing_is_named() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, keys, other] = ["data", "keys", "other"].map(|name| place.path().join(name));
    let key = |byte: char| format!("{}=\n", byte.to_string().repeat(43));
    std::fs::write(&keys, key('A')).expect("writable");
    std::fs::write(&other, key('B').replace("BBB=", "BBA=")).expect("writable");
    let options = ["--data", text(&data), "--listen", "127.0.0.1:0", "--secret-key-file", text(&keys)];
    let server = Server::start(&options);
    for queue in ["mails", "orders"] {
        let set = ["target", "set", queue, "--url", "https://shop.example/", "--new-secret"];
        let set = run(&[&set[..], &["--server", &server.url]].concat());
        assert_eq!(set.code, 0, "{}", set.err);
    }
    assert!(server.stop(Signal::TERM).success());
    let asked = |more: &[&str]| {
        let seen = run(&[&["doctor", text(&data), "-o", "json"], more].concat());
        let report: serde_json::Value = serde_json::from_str(&seen.out).expect("JSON");
        (seen.code, report)
    };
    let (code, report) = asked(&[]);
    let key = &report["secret_keys"][0];
    assert_eq!((code, &key["in_file"], &key["queues"]), (0, &json!(null), &json!(["mails", "orders"])));
    let (code, report) = asked(&["--secret-key-file", text(&keys)]);
    assert_eq!(
        (code, &report["secret_keys"][0]["in_file"], &report["in_order"]),
        (0, &json!(true), &json!(true))
    );
    let (code, report) = asked(&["--secret-key-file", text(&other)]);
    assert_eq!(
        (code, &report["secret_keys"][0]["in_file"], &report["in_order"]),
        (1, &json!(false), &json!(false))
    );
    let problem = report["problems"][0]["what"].as_str().expect("a problem");
    let id = report["secret_keys"][0]["id"].as_str().expect("an id");
    assert!(problem.contains(id) && problem.ends_with(": mails, orders"), "{problem}");
    let seen = run(&["doctor", text(&data), "-o", "table", "--secret-key-file", text(&other)]);
    assert!(seen.out.contains("lacks the key") && seen.out.contains("IN THE FILE"), "{}", seen.out);
    let seen = run(&["doctor", text(&data), "--secret-key-file", text(&place.path().join("absent"))]);
    assert!(
        seen.code == 1 && seen.out.contains("absent") && seen.out.contains("No such file"),
        "{}",
        seen.out
    );
}

#[test]
fn a_wrong_path_says_so() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let absent = place.path().join("absent");
    let seen = run(&["doctor", text(&absent)]);
    assert_eq!((seen.code, seen.out.as_str()), (1, ""));
    assert!(seen.err.contains(text(&absent)) && seen.err.contains("No such file"), "{}", seen.err);
    assert!(!absent.exists());
    let empty = run(&["doctor", text(place.path()), "-o", "table"]);
    assert_eq!(empty.code, 1);
    assert!(empty.out.contains("it is empty") && empty.out.contains("serve --data"), "{}", empty.out);
    assert_eq!(std::fs::read_dir(place.path()).expect("there").count(), 0, "nothing was made");
}

#[test]
fn a_copy_is_made_and_made_a_directory_again() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, copy, back] = ["data", "copy", "back"].map(|name| place.path().join(name));
    shop(&data);
    let copied = run(&["backup", text(&data), text(&copy)]);
    assert_eq!((copied.code, copied.out.as_str()), (0, ""), "{}", copied.err);
    assert!(copied.err.contains("files, ") && copied.err.contains("checked"), "{}", copied.err);
    let again = run(&["backup", text(&data), text(&copy)]);
    assert!(again.code == 1 && again.err.contains("is not empty"), "{}", again.err);
    let restored = run(&["restore", text(&copy), text(&back)]);
    assert_eq!(restored.code, 0, "{}", restored.err);
    let server = Server::start(&["--data", text(&back), "--listen", "127.0.0.1:0"]);
    for (key, code) in [("order:1", 0), ("order:2", 0), ("order:3", 1)] {
        assert_eq!(run(&["get", "close", key, "--server", &server.url]).code, code, "{key}");
    }
    assert!(server.stop(Signal::TERM).success());
    std::fs::write(copy.join("notes"), b"mine").expect("written");
    let foreign = run(&["restore", text(&copy), text(&place.path().join("other"))]);
    assert!(foreign.code == 1 && foreign.err.contains("`notes`"), "{}", foreign.err);
}

fn present_format() -> u8 {
    u8::try_from(tickwheel_queue::FORMAT).expect("formats are few")
}

/// A directory of another format, made of the one that the store keeps for its tests.
fn of_format(format: u8, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden/format-1");
    std::fs::create_dir_all(to.join("shard-0000")).expect("made");
    for entry in std::fs::read_dir(from.join("shard-0000")).expect("a golden directory") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join("shard-0000").join(path.file_name().expect("a name"))).expect("copied");
    }
    let mut meta = std::fs::read(from.join("meta")).expect("readable");
    meta[8] = format;
    let sum = crc32c::crc32c_append(crc32c::crc32c(&meta[..12]), &meta[16..64]);
    meta[12..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(to.join("meta"), meta).expect("written");
}

/// The story: an old version is started on the directory of a newer one. It changes no byte, and says what to do.
#[test]
fn a_directory_of_a_newer_version_is_refused_untouched() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    let (present, newer) = (present_format(), present_format() + 1);
    of_format(newer, &data);
    let files = || {
        let mut files = std::collections::BTreeMap::new();
        for folder in [data.clone(), data.join("shard-0000")] {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_file() && !path.ends_with("lock") {
                    files.insert(path.clone(), std::fs::read(path).expect("readable"));
                }
            }
        }
        files
    };
    let before = files();
    let started = run(&["serve", "--data", text(&data), "--listen", "127.0.0.1:0"]);
    assert_eq!(started.code, 1, "{}", started.err);
    let (found, up_to) = (format!("format {newer}"), format!("reads format {present}"));
    assert!(started.err.contains(&found) && started.err.contains(&up_to), "{}", started.err);
    let seen = run(&["doctor", text(&data), "-o", "table"]);
    assert_eq!(seen.code, 1, "{}", seen.out);
    assert!(
        seen.out.contains(&found) && seen.out.contains("-> open it with the version that wrote it"),
        "{}",
        seen.out
    );
    let copied = run(&["backup", text(&data), text(&place.path().join("copy"))]);
    assert_eq!(copied.code, 1, "{}", copied.out);
    assert!(files() == before, "a byte was changed");
}

/// Makes a directory of three shards with a task in each of nine queues.
pub(crate) fn of_shards(data: &Path) {
    let queue = Queue::options().shards(3).open(data).expect("it opens");
    for n in 0..9 {
        let name = QueueName::new(&format!("q{n}")).expect("a name");
        queue.put(Put::new(&name, Key::new("k").expect("a key"))).wait().expect("put");
    }
}

/// Runs a command that succeeds, and returns its output.
fn printed(args: &[&str]) -> String {
    let seen = run(args);
    assert_eq!(seen.code, 0, "{}{}", seen.out, seen.err);
    seen.out
}

fn json_of(told: &str) -> serde_json::Value {
    serde_json::from_str(told.lines().next().expect("a line")).expect("one object into a pipe")
}

#[test]
fn a_directory_of_several_shards_is_told_with_a_line_for_each() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    of_shards(&data);
    let seen = run(&["doctor", text(&data), "--deep", "-o", "table"]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""), "{}", seen.out);
    for part in
        ["in order", "shards        3", "9 live", "shard         0001: in order, ", "0002/shard-0000/log-"]
    {
        assert!(seen.out.contains(part), "{part} is not in {}", seen.out);
    }
    let line = json_of(&printed(&["doctor", text(&data)]));
    let (members, first) = (&line["members"], &line["members"][1]);
    assert_eq!((&line["shards"], &line["tasks"], &line["checkpoint"]), (&3.into(), &9.into(), &json!(null)));
    assert_eq!((members.as_array().map(Vec::len), &first["shard"]), (Some(3), &1.into()));
    assert_eq!(first["directory"], text(&data.join("0001")));
    assert_eq!(line["queues"].as_array().map(Vec::len), Some(9));
    let member = data.join("0001");
    let seen = run(&["doctor", text(&member), "-o", "table"]);
    let root = data.canonicalize().expect("it is there");
    let expected = format!("shard         1 of 3; {} has all of them", root.display());
    assert!(seen.code == 0 && seen.out.contains(&expected), "{}", seen.out);
    let line = json_of(&printed(&["doctor", text(&member)]));
    assert_eq!((&line["shards"], &line["shard"], &line["root"]), (&3.into(), &1.into(), &json!(text(&root))));
    let line = json_of(&printed(&["doctor", text(&data.join("0002"))]));
    assert_eq!(line.get("members"), None);
    std::fs::rename(data.join("0001"), data.join("moved")).expect("renamed");
    let seen = run(&["doctor", text(&data), "-o", "table"]);
    assert_eq!(seen.code, 1, "{}", seen.out);
    for part in ["0001: the directory of shard 1 of 3 is missing", "tickwheel salvage", "not ours      moved"]
    {
        assert!(seen.out.contains(part), "{part} is not in {}", seen.out);
    }
}

#[test]
fn a_directory_of_one_shard_has_one_and_no_members() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    drop(Queue::open(&data).expect("it opens"));
    let line = json_of(&printed(&["doctor", text(&data)]));
    assert_eq!(line["shards"], 1);
    for absent in ["shard", "root", "members"] {
        assert_eq!(line.get(absent), None, "{absent}");
    }
}

#[test]
fn a_backup_of_several_shards_is_compared_with_its_manifests() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (data, copy) = (place.path().join("data"), place.path().join("copy"));
    of_shards(&data);
    printed(&["backup", text(&data), text(&copy)]);
    let line = json_of(&printed(&["doctor", "--deep", text(&copy)]));
    assert_eq!((&line["in_order"], &line["tasks"]), (&true.into(), &9.into()));
    assert!(line["backup_as_of"].is_string(), "{line}");
    let other = place.path().join("other");
    of_shards(&other);
    printed(&["backup", text(&other), text(&place.path().join("other-copy"))]);
    std::fs::remove_dir_all(copy.join("0001")).expect("removed");
    std::fs::rename(place.path().join("other-copy/0001"), copy.join("0001")).expect("renamed");
    let seen = run(&["doctor", text(&copy), "-o", "table"]);
    assert!(seen.code == 1 && seen.out.contains("backup.json: it"), "{}", seen.out);
    // A start from a backup makes a data directory of it, with no manifest any more.
    let copy = place.path().join("third");
    printed(&["backup", text(&data), text(&copy)]);
    drop(Queue::open(&copy).expect("it opens"));
    let line = json_of(&printed(&["doctor", text(&copy)]));
    assert_eq!((&line["in_order"], &line["backup_as_of"]), (&true.into(), &json!(null)), "{line}");
}

#[test]
fn the_keys_of_the_targets_of_all_shards_are_named() {
    if is_left_out("`doctor` examines a directory") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let [data, keys] = ["data", "keys"].map(|name| place.path().join(name));
    of_shards(&data);
    std::fs::write(&keys, format!("{}=\n", "A".repeat(43))).expect("writable");
    let options = ["--data", text(&data), "--listen", "127.0.0.1:0", "--secret-key-file", text(&keys)];
    let server = Server::start(&options);
    let queues: Vec<String> = (0..9).map(|n| format!("q{n}")).collect();
    for queue in &queues {
        let set = ["target", "set", queue, "--url", "https://shop.example/", "--new-secret"];
        printed(&[&set[..], &["--server", &server.url]].concat());
    }
    assert!(server.stop(Signal::TERM).success());
    let line = json_of(&printed(&["doctor", text(&data), "--secret-key-file", text(&keys)]));
    assert_eq!(line["secret_keys"][0]["queues"], json!(queues));
}
