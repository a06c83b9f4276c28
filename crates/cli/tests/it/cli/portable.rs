//! `tickwheel export` and `tickwheel import`, over HTTP and without a server.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use tickwheel_api::{BatchLine, BatchOp, Due, PayloadBody, PutBody, PutMode, SettingsBody};
use tickwheel_client::blocking::Client;

use crate::folder::Folder;
use crate::server::{Server, tickwheel};
use crate::stores::is_left_out;

/// Starts a server on this directory.
fn serve(data: &Path) -> Server {
    Server::start(&["--listen", "127.0.0.1:0", "--data", data.to_str().expect("UTF-8")])
}

fn run(words: &[&str]) -> Output {
    tickwheel(words).output().expect("run it")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeeds(words: &[&str]) -> Output {
    let output = run(words);
    assert!(output.status.success(), "{words:?}: {}", told(&output));
    output
}

fn fails(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {}", told(&output));
    told(&output)
}

fn put(key: usize, bytes: usize) -> BatchLine {
    let payload = PayloadBody::json(format!("\"{key}{}\"", "x".repeat(bytes)).into_bytes());
    let due = Due::After(3_600_000 + key as u64 * 1_000);
    let body = PutBody { due, payload, ..PutBody::default() };
    let op = BatchOp::Put { body, mode: PutMode::Upsert };
    BatchLine { key: format!("k{key}"), if_match: None, revoke: false, op }
}

fn fill(server: &Server, tasks: usize, bytes: usize) {
    let client = Client::new(&server.url).expect("a URL");
    for from in (0..tasks).step_by(500) {
        let lines: Vec<BatchLine> = (from..tasks.min(from + 500)).map(|key| put(key, bytes)).collect();
        client.batch("close", &lines).expect("stored");
    }
    let settings = SettingsBody { max_in_flight: Some(3), ..SettingsBody::default() };
    client.configure("close", &settings).expect("configured");
}

/// The arguments of the command that an import prints to resume it.
fn way_on(told: &str) -> Vec<String> {
    let command = told.split("go on with `tickwheel ").nth(1).and_then(|rest| rest.split('`').next());
    command.expect("a command").split(' ').map(str::to_owned).collect()
}

/// The lines without the header and the cursors, in sorted order.
fn plain(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).expect("a file");
    let lines =
        text.lines().filter(|line| !line.starts_with("{\"export\"") && !line.starts_with("{\"cursor\""));
    lines.map(str::to_owned).collect()
}

#[test]
fn an_export_is_imported_over_http_offline_and_crosswise() {
    if is_left_out("the suite `postgres` has the exports and imports of a database") {
        return;
    }
    let folder = Folder::new();
    let [source, offline, online, a, b, c, d] =
        ["source", "offline", "online", "a.ndjson", "b.ndjson", "c.ndjson", "d.ndjson"]
            .map(|name| folder.text(name));
    let server = serve(Path::new(&source));
    fill(&server, 2_500, 10);
    let output = succeeds(&["export", "-o", &a, "--server", &server.url]);
    assert!(told(&output).contains("2,500 tasks exported"), "{}", told(&output));
    assert!(
        told(&output).contains("the file has 2500 tasks, 0 dead ones, settings of 1 queue, "),
        "{}",
        told(&output)
    );
    assert!(fails(&["export", "--data", &source]).contains("lock"), "a server runs on it");
    // The export to stdout has the same content.
    let stdout = succeeds(&["export", "--server", &server.url]).stdout;
    let stdout = String::from_utf8(stdout).expect("UTF-8");
    let in_file = fs::read_to_string(&a).expect("a file");
    // Header and cursors depend on the start of the export.
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("{\"cursor\""));
        lines.skip(1).map(str::to_owned).collect()
    };
    assert!(lines(&stdout) == lines(&in_file), "{}", stdout.len());
    server.kill();

    succeeds(&["export", "--data", &source, "-o", &b]);
    assert_eq!(plain(Path::new(&b)), plain(Path::new(&a)), "without the server");
    let output = succeeds(&["import", &a, "--data", &offline]);
    assert!(
        told(&output).contains("2501 added (0 with new ids), 0 replaced, 0 skipped"),
        "{}",
        told(&output)
    );
    let target = serve(Path::new(&online));
    succeeds(&["import", &b, "--server", &target.url]);
    succeeds(&["export", "--server", &target.url, "-o", &c]);
    succeeds(&["export", "--data", &offline, "-o", &d]);
    assert_eq!(plain(Path::new(&c)), plain(Path::new(&a)));
    assert_eq!(plain(Path::new(&d)), plain(Path::new(&a)));
    // The same file again, with each choice for existing tasks.
    let refused = fails(&["import", &a, "--server", &target.url, "--from-line", "4"]);
    assert!(refused.contains("line 4: queue `close` has a live task with the key `k0`"), "{refused}");
    let way_on = format!("go on with `tickwheel import {a} --server {} --from-line 4`", target.url);
    assert!(refused.contains(&way_on), "{refused}");
    let skipped = succeeds(&["import", &a, "--server", &target.url, "--existing", "skip", "-v"]);
    assert!(
        told(&skipped).contains("0 added (0 with new ids), 0 replaced, 2501 skipped"),
        "{}",
        told(&skipped)
    );
    let rows = String::from_utf8(skipped.stdout).expect("UTF-8");
    let first: Value = serde_json::from_str(rows.lines().nth(1).expect("a line")).expect("JSON");
    assert_eq!(
        (&first["number"], &first["result"], &first["why"]),
        (&4.into(), &"skipped".into(), &"live".into())
    );
    let replaced = succeeds(&["import", &a, "--data", &offline, "--existing", "replace"]);
    assert!(
        told(&replaced).contains("0 added (0 with new ids), 2500 replaced, 1 skipped"),
        "{}",
        told(&replaced)
    );
}

#[test]
fn a_bad_line_and_a_cut_file_are_named_by_their_numbers() {
    if is_left_out("the suite `postgres` has the exports and imports of a database") {
        return;
    }
    let folder = Folder::new();
    let [source, all, bad, cut] =
        ["source", "all.ndjson", "bad.ndjson", "cut.ndjson"].map(|name| folder.text(name));
    let server = serve(Path::new(&source));
    fill(&server, 700, 10);
    succeeds(&["export", "-o", &all, "--server", &server.url]);
    let text = fs::read_to_string(&all).expect("a file");
    let mut lines: Vec<&str> = text.lines().collect();
    let good = lines[500];
    lines[500] = &good[..good.len() / 2];
    fs::write(&bad, lines.join("\n") + "\n").expect("written");
    for (target, is_server) in [("t1", false), ("t2", true)] {
        let target = folder.text(target);
        let running = is_server.then(|| serve(Path::new(&target)));
        let to: [&str; 2] = match &running {
            Some(server) => ["--server", &server.url],
            None => ["--data", &target],
        };
        let refused = fails(&["import", &bad, to[0], to[1]]);
        assert!(refused.contains("line 501: the body: is not JSON"), "{refused}");
        assert!(refused.contains("all lines before line 501 are imported, and none after"), "{refused}");
        assert!(refused.contains("498 added"), "{refused}");
        // The printed command continues at the same line. The bad line was corrected meanwhile.
        fs::write(&bad, &text).expect("written");
        let done = succeeds(&way_on(&refused).iter().map(String::as_str).collect::<Vec<_>>());
        assert!(told(&done).contains("203 added"), "{}", told(&done));
        fs::write(&bad, lines.join("\n") + "\n").expect("written");
        drop(running);
        let again = folder.text(&format!("again-{is_server}.ndjson"));
        succeeds(&["export", "--data", &target, "-o", &again]);
        assert_eq!(plain(Path::new(&again)), plain(Path::new(&all)));
    }
    let end = text.trim_end().rfind('\n').expect("lines") + 1;
    for (at, missing) in [(end, 0), (text.len() / 2, 1)] {
        fs::write(&cut, &text[..at]).expect("written");
        let target = folder.text(&format!("cut-{missing}"));
        let told = fails(&["import", &cut, "--data", &target]);
        let expected =
            if missing == 0 { "the file is incomplete: it has no `end` line" } else { "is not JSON" };
        assert!(told.contains(expected), "{told}");
    }
    fs::create_dir(folder.path("empty")).expect("made");
    let told = fails(&["import", &folder.text("empty"), "--data", &folder.text("t3")]);
    assert!(told.contains("empty is no data directory"), "{told}");
    fs::write(&cut, "{\"cursor\":\"a\"}\n").expect("written");
    assert!(
        fails(&["import", &cut, "--data", &folder.text("t3")]).contains("line 1 is not an export header")
    );
    assert!(!folder.path("t3").exists(), "nothing is made of what is no export");
}

/// The resume command has each option that determines source and target, and never a token.
#[test]
fn the_way_on_has_all_that_was_given() {
    let folder = Folder::new();
    let [bad, target, token] = ["bad.ndjson", "target", "token"].map(|name| folder.text(name));
    fs::write(&token, "a-canary-of-a-token\n").expect("written");
    fs::write(
        &bad,
        "{\"export\":{\"format\":1,\"at\":\"2030-01-01T00:00:00Z\",\"release\":\"0\"}}\n{\"tusk\":1}\n",
    )
    .expect("written");
    let told = fails(&["import", &bad, "--data", &target, "--existing", "replace", "--revoke", "-v"]);
    let whole = format!(
        "go on with `tickwheel import {bad} --existing replace --revoke --verbose --data {target} --from-line 2`"
    );
    assert!(told.contains(&whole), "{told}");
    let server = serve(&folder.path("source"));
    let told =
        fails(&["import", &bad, "--server", &server.url, "--token-file", &token, "--existing", "skip"]);
    let whole = format!(
        "go on with `tickwheel import {bad} --existing skip --server {} --token-file {token} --from-line 2`",
        server.url
    );
    assert!(told.contains(&whole) && !told.contains("canary"), "{told}");
    let lost = fails(&["import", &bad, "--server", "http://127.0.0.1:1"]);
    let whole = format!(
        "go on with `tickwheel import {bad} --existing skip --server http://127.0.0.1:1 --from-line 2`"
    );
    assert!(lost.contains(&whole), "{lost}");
    let stdin = tickwheel(&["import", "-", "--data", &target])
        .stdin(fs::File::open(&bad).expect("a file"))
        .output()
        .expect("run it");
    let stdin = String::from_utf8_lossy(&stdin.stderr).into_owned();
    assert!(
        stdin.contains(&format!("give the same input again, with --data {target} --from-line 2")),
        "{stdin}"
    );
    assert!(!stdin.contains("`tickwheel import"), "{stdin}");
    assert!(fails(&["import", &bad, "--data", &target, "--revoke"]).contains("--existing replace"));
}

#[test]
fn an_export_that_was_interrupted_goes_on_and_is_whole() {
    if is_left_out("the suite `postgres` has the exports and imports of a database") {
        return;
    }
    let folder = Folder::new();
    let [source, all, other] = ["source", "all.ndjson", "other.ndjson"].map(|name| folder.text(name));
    let unfinished = folder.path("other.ndjson.unfinished");
    let server = serve(Path::new(&source));
    fill(&server, 3_500, 10);
    succeeds(&["export", "-o", &all, "--server", &server.url]);
    assert!(fails(&["export", "-o", &all, "--server", &server.url]).contains("exists already"));
    let text = fs::read(&all).expect("a file");
    let told = fails(&["export", "-o", &other, "--resume", "--server", &server.url]);
    assert!(told.contains("other.ndjson.unfinished, to go on with"), "{told}");
    fs::write(&unfinished, &text[..100]).expect("written");
    assert!(
        fails(&["export", "-o", &other, "--resume", "--server", &server.url])
            .contains("no whole cursor line")
    );
    assert!(fails(&["export", "-o", &other, "--server", &server.url]).contains("--resume"));
    for part in 1..8 {
        fs::write(&unfinished, &text[..text.len() * part / 8]).expect("written");
        succeeds(&["export", "-o", &other, "--resume", "--server", &server.url]);
        assert!(fs::read(&other).expect("a file") == text, "cut at {part} eighths");
        fs::remove_file(&other).expect("removed");
    }
    // A part of one server's export is not completed from another server.
    let stranger = serve(&folder.path("stranger"));
    fs::write(&unfinished, &text[..text.len() / 2]).expect("written");
    let begun = fs::read(&unfinished).expect("a file");
    let told = fails(&["export", "-o", &other, "--resume", "--server", &stranger.url]);
    assert!(told.contains("another server or data directory"), "{told}");
    assert!(!told.contains("going on behind"), "what is refused is not asked for again: {told}");
    assert!(!Path::new(&other).exists() && begun.starts_with(&fs::read(&unfinished).expect("a file")));
    // An export that had nothing to write leaves no file.
    let nothing = folder.text("nothing.ndjson");
    let told = fails(&["export", "-o", &nothing, "--queue", "nosuch", "--server", &server.url]);
    assert!(told.contains("there is no queue `nosuch`"), "{told}");
    let told = fails(&["export", "-o", &nothing, "--server", "http://127.0.0.1:1"]);
    assert!(told.contains("no server answers") && !told.contains("--resume"), "{told}");
    assert!(!folder.path("nothing.ndjson.unfinished").exists());
    // The same file is resumed without a server, too.
    fs::write(&unfinished, &text[..text.len() / 2]).expect("written");
    server.kill();
    succeeds(&["export", "-o", &other, "--resume", "--data", &source]);
    assert!(fs::read(&other).expect("a file") == text);
}

/// The server is killed during an import and restarted. A second import with `skip` leaves each task there exactly
/// once.
#[test]
fn an_import_whose_server_was_killed_is_run_again_with_skip() {
    if is_left_out("the suite `postgres` has the exports and imports of a database") {
        return;
    }
    const TASKS: usize = 30_000;
    let folder = Folder::new();
    let [source, target, all, again] =
        ["source", "target", "all.ndjson", "again.ndjson"].map(|name| folder.text(name));
    let server = serve(Path::new(&source));
    fill(&server, TASKS, 200);
    succeeds(&["export", "-o", &all, "--server", &server.url]);
    server.kill();

    let server = serve(Path::new(&target));
    let client = Client::new(&server.url).expect("a URL");
    // The last lines come when the server is gone, so that the import cannot end before.
    let pipe = folder.text("lines");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("started").success());
    let words = ["import", &pipe, "--server", &server.url];
    let importing = tickwheel(&words).stderr(std::process::Stdio::piped()).spawn().expect("started");
    let (gone, is_gone) = mpsc::channel::<()>();
    let lines = fs::read(&all).expect("a file");
    let writing = thread::spawn(move || {
        let (most, last) = lines.split_at(lines.len() - 100_000);
        let mut pipe = File::create(pipe)?;
        pipe.write_all(most)?;
        let _told = is_gone.recv();
        pipe.write_all(last)
    });
    let begun = Instant::now();
    let mut live = 0;
    while live < 1_000 && begun.elapsed() < tickwheel_testing::HANG_TIME {
        live = client.queue("close").map_or(0, |queue| queue.counts.scheduled);
    }
    server.kill();
    drop(gone);
    let output = importing.wait_with_output().expect("it ends");
    // The import has left the pipe before it was empty.
    let _broken = writing.join().expect("no panic");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("may be in or not; go on with"), "{}", told(&output));
    assert!(told(&output).contains("--existing skip"), "{}", told(&output));

    let server = serve(Path::new(&target));
    let client = Client::new(&server.url).expect("a URL");
    let before = client.queue("close").expect("a queue").counts.scheduled;
    assert!((live..TASKS as u64).contains(&before), "{before} of {live} and more");
    let done = succeeds(&["import", &all, "--existing", "skip", "--server", &server.url]);
    let expected = format!("{} added (0 with new ids)", TASKS as u64 - before);
    assert!(told(&done).contains(&expected), "{expected}: {}", told(&done));
    succeeds(&["export", "-o", &again, "--server", &server.url]);
    assert_eq!(plain(Path::new(&again)), plain(Path::new(&all)));
}

fn peak_mib(told: &str) -> f64 {
    let mut words = told.split("peak memory ").nth(1).expect("memory").split([' ', ':', ';', '\n']);
    let (number, unit) = (words.next().expect("a number"), words.next().expect("a unit"));
    assert_eq!(unit, "MiB", "{told}");
    number.parse().expect("a number")
}

/// 240 MB of payloads are copied, and neither side holds more than some pages of them.
#[test]
fn neither_side_holds_what_passes_through() {
    if is_left_out("the suite `postgres` has the exports and imports of a database") {
        return;
    }
    let folder = Folder::new();
    let [source, target, offline, all] =
        ["source", "target", "offline", "all.ndjson"].map(|name| folder.text(name));
    let server = serve(Path::new(&source));
    fill(&server, 4_000, 60_000);
    server.kill();
    let server = serve(Path::new(&source));
    let before = server.peak_bytes();
    let exported = succeeds(&["export", "-o", &all, "--server", &server.url]);
    assert!(fs::metadata(&all).expect("a file").len() > 240_000_000);
    assert!(peak_mib(&told(&exported)) < 64.0, "{}", told(&exported));
    let grown = (server.peak_bytes() - before) >> 20;
    assert!(grown < 64, "the server grew by {grown} MiB");
    server.kill();
    let server = serve(Path::new(&target));
    let before = server.peak_bytes();
    let imported = succeeds(&["import", &all, "--server", &server.url]);
    assert!(peak_mib(&told(&imported)) < 96.0, "{}", told(&imported));
    let grown = (server.peak_bytes() - before) >> 20;
    assert!(grown < 128, "the server grew by {grown} MiB");
    let imported = succeeds(&["import", &all, "--data", &offline]);
    assert!(peak_mib(&told(&imported)) < 176.0, "{}", told(&imported));
}

#[test]
fn a_directory_keeps_its_clock() {
    if is_left_out("the suite `postgres` has the exports and imports of a database") {
        return;
    }
    let folder = Folder::new();
    let [source, target, all, again] =
        ["source", "target", "all.ndjson", "again.ndjson"].map(|name| folder.text(name));
    let server = Server::start(&["--listen", "127.0.0.1:0", "--data", &source, "--virtual-clock"]);
    let client = Client::new(&server.url).expect("a URL");
    client
        .put(
            "close",
            "a",
            &PutBody { due: Due::After(86_400_000), ..PutBody::default() },
            Default::default(),
            None,
        )
        .expect("stored");
    succeeds(&["export", "-o", &all, "--server", &server.url]);
    drop(server);
    succeeds(&["import", &all, "--data", &target]);
    succeeds(&["export", "--data", &target, "-o", &again]);
    let head: Value =
        serde_json::from_str(fs::read_to_string(&again).expect("a file").lines().next().expect("a line"))
            .expect("JSON");
    assert_eq!(head["export"]["virtual_clock"], true);
    assert_eq!(plain(Path::new(&again)), plain(Path::new(&all)));
    // A directory with the other kind of clock is not changed without `--other-clock`.
    let other = folder.text("other");
    drop(serve(Path::new(&other)));
    let told = fails(&["import", &all, "--data", &other]);
    assert!(told.contains("line 1: the body: is the header of a file of a virtual clock"), "{told}");
    assert!(told.starts_with("error: "), "nothing was imported, so nothing is counted: {told}");
    let done = succeeds(&["import", &all, "--data", &other, "--other-clock"]);
    assert!(self::told(&done).contains("1 added"), "{}", self::told(&done));
    assert!(fails(&["export", "--data", &folder.text("nowhere")]).contains("is no data directory"));
}
