//! The client commands, against a server with a virtual clock.

use std::io::Read;
use std::process::Stdio;

use crate::cli::run::{Ran, run, run_with};
use crate::server::{Server, tickwheel};
use tickwheel_client::blocking::Client;

pub(crate) struct World {
    pub(crate) server: Server,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { server: Server::start(&["--memory", "--virtual-clock", "--listen", "127.0.0.1:0"]) }
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        run(&[words, &["--server", &self.server.url]].concat())
    }

    /// Moves the server's clock.
    pub(crate) fn advance(&self, ms: u64) {
        Client::new(&self.server.url).and_then(|client| client.advance(ms)).expect("move the clock");
    }
}

/// The text of a member in a line of JSON, up to the next quote.
pub(crate) fn member<'a>(line: &'a str, name: &str) -> &'a str {
    let from = line.find(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("no {name} in {line}"))
        + name.len()
        + 4;
    line[from..].split('"').next().expect("split gives one")
}

#[test]
fn a_task_from_put_to_ack() {
    let world = World::new();
    let put = world.run(&["put", "close", "order/1 ü", "--in", "30m", "--payload", " {\"a\": 1.0} "]);
    assert_eq!(member(put.lines()[0], "state"), "scheduled");
    assert!(put.out.contains("\"created\":true"), "{}", put.out);

    let got = world.run(&["get", "close", "order/1 ü"]);
    assert!(got.lines()[0].contains(r#""payload":{"a": 1.0}"#), "JSON is kept as written: {}", got.out);

    let nothing = world.run(&["lease", "close"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert!(nothing.err.contains("no task of close is ready"), "{}", nothing.err);

    world.advance(30 * 60_000);
    let leased = world.run(&["lease", "close", "--for", "1m", "--max", "5"]);
    assert_eq!(leased.lines().len(), 1);
    let token = member(&leased.out, "token");

    let held = world.run(&["cancel", "close", "order/1 ü"]);
    assert_eq!((held.code, member(&held.out, "result")), (1, "leased"));
    let longer = world.run(&["extend", "close", token, "--for", "5m"]);
    assert_eq!((longer.code, member(&longer.out, "result")), (0, "extended"));
    let back = world.run(&["nack", "close", token, "--in", "10s", "--reason", "no paper"]);
    assert_eq!((back.code, member(&back.out, "result")), (0, "nacked"));

    world.advance(10_000);
    let again = world.run(&["lease", "close"]);
    assert!(again.out.contains("\"attempt\":2"), "{}", again.out);
    let done = world.run(&["ack", "close", member(&again.out, "token"), token]);
    let results: Vec<_> = done.out.lines().map(|line| member(line, "result")).collect();
    assert_eq!((done.code, results), (1, vec!["acked", "expired"]), "one token had ended");
    let late = world.run(&["cancel", "close", "order/1 ü"]);
    assert_eq!((late.code, member(&late.out, "result")), (1, "done"));
    assert!(late.err.contains("too late"), "{}", late.err);
    let gone = world.run(&["get", "close", "order/1 ü"]);
    assert_eq!((gone.code, gone.out.as_str()), (1, ""));
    assert!(gone.err.contains("was acked"), "{}", gone.err);
    assert_eq!(gone.err.matches("put a new task").count(), 1, "a hint is given once: {}", gone.err);
}

#[test]
fn modes_versions_and_revoke() {
    let world = World::new();
    let refused = world.run(&["put", "q", "k", "--mode", "replace"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("no live task") && refused.err.contains("hint: "), "{}", refused.err);
    assert_eq!(world.run(&["put", "q", "k", "--mode", "create"]).code, 0);
    assert_eq!(world.run(&["put", "q", "k", "--mode", "create"]).code, 1);
    let other = world.run(&["put", "q", "k", "--if-match", "999"]);
    assert!(other.code == 1 && other.err.contains("999"), "{}", other.err);
    assert_eq!(world.run(&["lease", "q"]).lines().len(), 1);
    let held = world.run(&["put", "q", "k", "--in", "1h"]);
    assert_eq!(held.code, 1, "a worker has it");
    assert!(held.err.contains("--revoke") && !held.err.contains("revoke=true"), "{}", held.err);
    assert_eq!(world.run(&["put", "q", "k", "--in", "1h", "--revoke"]).code, 0);
    let cancelled = world.run(&["cancel", "q", "k", "--if-match", "\"1\""]);
    assert_eq!(cancelled.code, 1, "the version has changed");
    let cancelled = world.run(&["cancel", "q", "k"]);
    assert_eq!((cancelled.code, member(&cancelled.out, "result")), (0, "cancelled"));
    let gone = world.run(&["cancel", "q", "k"]);
    assert_eq!((gone.code, member(&gone.out, "result")), (1, "not_found"));
}

#[test]
fn payloads_of_bytes_come_from_stdin_and_go_back_as_base64() {
    let world = World::new();
    let words = [
        "put",
        "q",
        "k",
        "--payload-file",
        "-",
        "--content-type",
        "text/plain",
        "--server",
        &world.server.url,
    ];
    assert_eq!(run_with(&words, "hello").code, 0);
    let got = world.run(&["get", "q", "k"]);
    assert_eq!(member(&got.out, "payload_base64"), "aGVsbG8=");
    let table = world.run(&["get", "q", "k", "-o", "table"]);
    assert!(table.out.contains("5 bytes of text/plain"), "{}", table.out);
}

#[test]
fn lists_page_and_say_when_there_is_more() {
    let world = World::new();
    let lines: Vec<_> = (0..2_500)
        .map(|number| tickwheel_api::BatchLine {
            key: format!("k{number:04}"),
            ..tickwheel_api::BatchLine::parse(br#"{"op":"put","key":"x","delay":"1h"}"#).expect("a line")
        })
        .collect();
    Client::new(&world.server.url).and_then(|client| client.batch("q", &lines)).expect("2,500 puts");
    world.run(&["put", "other", "k"]);

    let some = world.run(&["ls", "q"]);
    assert_eq!(some.lines().len(), 100);
    assert!(some.err.contains("q has more tasks"), "{}", some.err);
    let all = world.run(&["ls", "q", "--all"]);
    let keys: Vec<_> = all.lines().iter().map(|line| member(line, "key").to_owned()).collect();
    assert_eq!(keys, (0..2_500).map(|number| format!("k{number:04}")).collect::<Vec<_>>());
    assert_eq!(all.err, "");
    assert_eq!(world.run(&["ls", "q", "--limit", "1200"]).lines().len(), 1_200);
    assert_eq!(world.run(&["ls", "--all"]).lines().len(), 2_501, "every queue");
    assert_eq!(world.run(&["ls", "q", "--state", "ready"]).lines().len(), 0);
    // Without a queue, one limit is for all queues together, and one line at the end says that there are more.
    for (words, keys, more) in [
        (&["ls", "--limit", "1200"][..], 1_200, true),
        (&["ls", "--limit", "1"], 1, true),
        (&["ls", "--limit", "2500"], 2_500, true),
        (&["ls", "--limit", "2501"], 2_501, false),
        (&["ls", "--limit", "1", "--state", "scheduled"], 1, true),
        (&["ls", "--limit", "1", "--state", "ready"], 1, false),
    ] {
        for format in ["json", "table"] {
            // The queue `other` comes first, and has one task.
            let ran = world.run(&[words, &["-o", format]].concat());
            let rows = ran.lines().len() - usize::from(format == "table");
            let told = ran.err.trim_end();
            let expected = if more { "--limit N shows N, --all shows all" } else { "" };
            assert_eq!((rows, told.lines().count()), (keys, usize::from(more)), "{words:?} {format}: {told}");
            assert!(told.ends_with(expected), "{words:?}: {told}");
        }
    }
    let queues = world.run(&["queues", "-o", "table"]);
    assert_eq!(queues.lines().len(), 3, "a header and two queues: {}", queues.out);
}

#[test]
fn a_server_is_measured_and_left_as_it_was() {
    let world = World::new();
    let measured = world.run(&["bench", "--tasks", "2500", "--clients", "2", "--late-tasks", "0"]);
    assert_eq!(measured.code, 0, "{}", measured.err);
    let figures: Vec<serde_json::Value> =
        measured.lines().iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let what: Vec<_> = figures.iter().map(|figure| figure["what"].as_str().expect("a name")).collect();
    assert_eq!(what, ["put", "lease and ack"]);
    assert!(figures.iter().all(|figure| figure["value"].as_f64().expect("a number") > 0.0), "{figures:?}");
    assert_eq!(world.run(&["ls", "--all"]).lines().len(), 0, "its tasks are gone");
    world.run(&["put", "tickwheel-bench", "k"]);
    let refused = world.run(&["bench"]);
    assert_eq!(
        (refused.code, refused.err.contains("has 1 task; name an empty one")),
        (1, true),
        "{}",
        refused.err
    );
}

#[test]
fn jobs_are_shown_and_stopped() {
    let world = World::new();
    assert!(world.run(&["jobs"]).err.contains("there are no jobs"));
    let line = tickwheel_api::BatchLine::parse(br#"{"op":"put","key":"x","delay":"1h"}"#).expect("a line");
    let lines: Vec<_> = (0..10_001)
        .map(|number| tickwheel_api::BatchLine { key: format!("k{number}"), ..line.clone() })
        .collect();
    Client::new(&world.server.url).and_then(|client| client.batch("q", &lines)).expect("10,001 puts");
    let cancelled = world.run(&["cancel", "q", "--all"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.err);
    let jobs = world.run(&["jobs"]);
    let job: serde_json::Value = serde_json::from_str(&jobs.out).expect("one line of JSON");
    assert_eq!((&job["state"], &job["cancelled"]), (&"done".into(), &10_001.into()));
    let id = job["id"].to_string();
    assert_eq!(world.run(&["jobs", "show", &id]).out, jobs.out);
    assert_eq!(world.run(&["jobs", "stop", &id]).out, jobs.out, "it was over");
    let table = world.run(&["jobs", "-o", "table"]).out;
    assert!(table.contains("LOOKED AT") && table.contains("10001"), "{table}");
    let none = world.run(&["jobs", "show", "7"]);
    assert_eq!((none.code, none.err.contains("no job `7`")), (1, true), "{}", none.err);
}

/// `tickwheel ls | head -1`: the reader leaves, and no error is printed.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let world = World::new();
    let payload = format!("\"{}\"", "x".repeat(100_000));
    for number in 0..20 {
        assert_eq!(
            world.run(&["put", "q", &format!("k{number}"), "--in", "1h", "--payload", &payload]).code,
            0
        );
    }
    let mut command = tickwheel(&["ls", "q", "--server", &world.server.url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run tickwheel");
    let mut first = [0; 10];
    child.stdout.take().expect("piped").read_exact(&mut first).expect("read ten bytes and leave");
    let output = child.wait_with_output().expect("run tickwheel");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stderr, b"", "quietly");
}

#[test]
fn a_dead_task_is_listed_and_redriven() {
    let world = World::new();
    let kill = |key: &str| {
        assert_eq!(world.run(&["put", "close", key, "--max-attempts", "1"]).code, 0);
        let leased = world.run(&["lease", "close", "-o", "json"]);
        let token = member(&leased.out, "token").to_owned();
        assert_eq!(world.run(&["nack", "close", &token, "--reason", "no money"]).code, 0);
    };
    kill("a");
    kill("b");
    let listed = world.run(&["ls", "close", "--state", "dead", "-o", "json"]);
    assert!(listed.out.contains("no money") && listed.out.contains("max_attempts"), "{}", listed.out);
    let ran = world.run(&["redrive", "close", "a", "nobody"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("redriven") && ran.out.contains("not_found"), "{}", ran.out);
    let ran = world.run(&["redrive", "close", "--all"]);
    assert_eq!((ran.code, ran.err.trim()), (0, "1 redriven"));
    let filter = ["--state", "ready"];
    assert_eq!(world.run(&[&["cancel", "close"], &filter[..]].concat()).code, 0);
    kill("c");
    assert_eq!(world.run(&["put", "close", "c", "--in", "1h"]).code, 0);
    let ran = world.run(&["redrive", "close", "--all"]);
    assert!(
        ran.code == 1
            && ran.err.starts_with("0 redriven\nstill dead, because later tasks took their keys: 1;")
    );
    for dry_run in [&["--dry-run"][..], &[]] {
        let cancelled = world.run(&[&["cancel", "close", "--state", "dead", "-o", "json"], dry_run].concat());
        let done = if dry_run.is_empty() { 1 } else { 0 };
        let expected = format!(r#""matched":1,"cancelled":{done}}}"#);
        assert!(cancelled.code == 0 && cancelled.out.trim().ends_with(&expected), "{}", cancelled.out);
    }
    assert_eq!(world.run(&["put", "close", "a", "--in", "0s"]).code, 0);
    assert_eq!(world.run(&["put", "close", "b", "--in", "0s"]).code, 0);
    let listed = world.run(&["ls", "close", "--state", "ready", "-o", "json"]);
    assert_eq!(listed.out.lines().count(), 2, "{}", listed.out);
    for words in [["redrive", "close"], ["cancel", "close"]] {
        let which = world.run(&words);
        assert!(
            which.code == 2 && which.err.contains("--all for every"),
            "it has to be said which: {}",
            which.err
        );
    }
}

#[test]
fn dead_tasks_are_grouped_and_redriven_by_their_cause() {
    let world = World::new();
    for (key, reason) in [("a", "order 503 of 10.0.0.1"), ("b", "order 500 of 10.0.0.2"), ("c", "no money")] {
        assert_eq!(world.run(&["put", "close", key, "--max-attempts", "1", "--group", "g"]).code, 0);
        let leased = world.run(&["lease", "close", "-o", "json"]);
        let token = member(&leased.out, "token").to_owned();
        assert_eq!(world.run(&["nack", "close", &token, "--reason", reason]).code, 0);
    }
    let groups = world.run(&["dead", "close", "--groups", "-o", "json"]);
    let group = groups.out.lines().find(|line| line.contains("order # of #")).expect("a group");
    let id = member(group, "id");
    assert!(group.contains(r#""count":2"#) && groups.err.is_empty(), "{group} {}", groups.err);
    let table = world.run(&["dead", "close", "--groups", "-o", "table"]);
    assert!(table.out.starts_with("GROUP") && table.out.contains(id), "{}", table.out);
    let listed = world.run(&["dead", "close", "--group-id", id, "-o", "table"]);
    assert!(listed.out.contains("order 503") && !listed.out.contains("no money"), "{}", listed.out);
    let by_text = world.run(&["dead", "close", "--failure", "money", "-o", "json"]);
    assert_eq!((by_text.out.lines().count(), member(&by_text.out, "key")), (1, "c"));
    for (words, matched, done) in [
        (&["redrive", "close", "--group-id", id, "--dry-run"][..], 2, 0),
        (&["redrive", "close", "--group-id", id, "--key-contains", "a"], 1, 1),
        (&["redrive", "close", "--failure", "order", "--reason", "max_attempts", "--group", "g"], 1, 1),
        (&["redrive", "close", "--failure", "order"], 0, 0),
    ] {
        let ran = world.run(&[words, &["-o", "json"]].concat());
        let expected = format!(r#"{{"queue":"close","matched":{matched},"redriven":{done}}}"#);
        assert_eq!((ran.code, ran.out.trim()), (0, expected.as_str()), "{words:?}: {}", ran.err);
    }
    assert_eq!(world.run(&["put", "close", "c", "--in", "1h"]).code, 0);
    let old = world.run(&["redrive", "close", "--failure", "money", "-o", "json"]);
    assert!(old.code == 0 && old.out.contains(r#""matched":0"#), "a later task took the key: {}", old.out);
    let cancelled = world.run(&["cancel", "close", "--state", "dead", "--failure", "money", "-o", "json"]);
    assert!(cancelled.out.trim().ends_with(r#""matched":1,"cancelled":1}"#), "{}", cancelled.out);
    let refused = world.run(&["cancel", "close", "--tag", "t", "--failure", "money"]);
    assert!(refused.code == 2 && refused.err.contains("--state dead"), "{}", refused.err);
    for words in [
        &["redrive", "close", "a", "--failure", "x"][..],
        &["redrive", "close", "--all", "--dry-run"],
        &["dead", "close", "--groups", "--failure", "x"],
        &["cancel", "close", "a", "--group", "g"],
    ] {
        let ran = world.run(words);
        assert!(ran.code == 2 && ran.err.contains("cannot be used with"), "{words:?}: {}", ran.err);
    }
}

#[test]
fn tasks_are_found_by_key_and_by_a_part_of_it() {
    let world = World::new();
    for (queue, key) in [("close", "order:1"), ("remind", "order:1"), ("close", "cart:1")] {
        assert_eq!(world.run(&["put", queue, key, "--in", "1h", "--group", key]).code, 0);
    }
    let found = world.run(&["find", "order:1", "-o", "json"]);
    let queues: Vec<&str> = found.out.lines().map(|line| member(line, "queue")).collect();
    assert_eq!((found.code, queues), (0, vec!["close", "remind"]));
    let none = world.run(&["find", "Order:1"]);
    assert!(none.code == 1 && none.err.contains("case-sensitive"), "{}", none.err);
    for filter in [["--key-contains", "order"], ["--group", "order:1"]] {
        let listed = world.run(&[&["ls", "close", "-o", "json"], &filter[..]].concat());
        assert_eq!(
            (listed.out.lines().count(), member(&listed.out, "key")),
            (1, "order:1"),
            "{}",
            listed.err
        );
    }
    let moved = world.run(&["move", "close", "--key-contains", "cart", "--by", "1h", "-o", "json"]);
    assert!(moved.out.contains(r#""moved":1"#), "{} {}", moved.out, moved.err);
}

#[test]
fn a_server_drains_and_takes_tasks_again() {
    let world = World::new();
    for _ in 0..2 {
        let drained = world.run(&["drain"]);
        assert_eq!((drained.code, drained.out.trim()), (0, r#"{"draining":true}"#), "{}", drained.err);
    }
    let refused = world.run(&["put", "q", "k", "--in", "0s", "--retries", "0"]);
    assert!(refused.code == 1 && refused.err.contains("no new tasks"), "{}", refused.err);
    let resumed = world.run(&["resume", "-o", "table"]);
    assert!(resumed.code == 0 && resumed.out.contains("takes new tasks"), "{}", resumed.out);
    assert_eq!(world.run(&["put", "q", "k", "--in", "0s"]).code, 0);
}

#[test]
fn a_schedule_from_put_to_delete() {
    let world = World::new();
    let put = world.run(&["schedules", "put", "q", "s", "--every", "1h", "--payload", "[1]", "--tag", "t"]);
    assert_eq!((put.code, member(&put.out, "name")), (0, "s"), "{}", put.err);
    let table = world.run(&["schedules", "ls", "q", "-o", "table"]);
    assert!(table.out.contains("every 1h") && table.out.lines().count() == 2, "{}", table.out);
    assert_eq!(world.run(&["schedules", "put", "other", "s", "--every", "2h"]).code, 0);
    let all = world.run(&["schedules", "ls", "-o", "table"]);
    assert!(all.out.contains("other") && all.out.lines().count() == 3, "{}", all.out);
    assert_eq!(world.run(&["schedules", "put", "last", "s", "--every", "30m"]).code, 0);
    let order = |words: &[&str]| -> Vec<String> {
        let listed = world.run(&[&["schedules", "ls"], words].concat());
        listed.lines().iter().map(|line| member(line, "queue").to_owned()).collect()
    };
    assert_eq!(order(&[]), ["last", "other", "q"]);
    assert_eq!(order(&["--sort", "next"]), ["last", "q", "other"]);
    assert_eq!(order(&["--sort", "next", "--prefix", "o"]), ["other"]);
    let none = world.run(&["schedules", "ls", "--prefix", "none"]);
    assert!(none.code == 0 && none.err.contains("no queue whose name begins with none"), "{}", none.err);
    let refused = world.run(&["schedules", "ls", "q", "--sort", "next"]);
    assert!(refused.code == 2 && refused.err.contains("cannot be used with"), "{}", refused.err);
    for queue in ["other", "last"] {
        assert_eq!(world.run(&["schedules", "delete", queue, "s"]).code, 0);
    }
    let preview = world.run(&["schedules", "preview", "q", "s", "--count", "3"]);
    assert_eq!(preview.lines().len(), 3);
    world.advance(3_600_000);
    let leased = world.run(&["lease", "q"]);
    assert!(
        member(&leased.out, "key").starts_with("s@") && leased.out.contains("\"payload\":[1]"),
        "{}",
        leased.out
    );
    let shown = world.run(&["schedules", "show", "q", "s"]);
    assert!(shown.out.contains("\"made\":1"), "{}", shown.out);
    assert_eq!(world.run(&["schedules", "delete", "q", "s"]).code, 0);
    let gone = world.run(&["schedules", "show", "q", "s"]);
    assert!(gone.code == 1 && gone.err.contains("no schedule"), "{}", gone.err);
    for (words, what) in [
        (&["--cron", "61 * * * *"][..], "minute, character 1: 61 is not from 0 to 59"),
        (&["--every", "1h", "--cron", "* * * * *"], "cannot be used with"),
        (&["--every", "1h", "--tz", "UTC"], "cannot be used with"),
        (&[], "--cron"),
    ] {
        let refused = world.run(&[&["schedules", "put", "q", "s"], words].concat());
        assert!(refused.code != 0 && refused.err.contains(what), "{words:?}: {}", refused.err);
    }
}

#[test]
fn shells_complete_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(script.code == 0 && script.out.contains("schedules"), "{shell}: {}", script.err);
    }
}

#[test]
fn a_timeline_is_put_and_comes_step_by_step() {
    let world = World::new();
    let plan = r#"[{"at":"2030-01-01T00:00:00Z","payload":9},{"at_ms":1893542400000,"payload":8}]"#;
    let put = world.run(&["put", "prices", "sku:1", "--timeline", plan]);
    assert_eq!(put.code, 0, "{}", put.err);
    let got = world.run(&["get", "prices", "sku:1"]).out;
    assert!(
        got.contains(r#""due_at":"2030-01-01T00:00:00.000Z","payload":9"#) && got.contains("2030-01-02"),
        "{got}"
    );
    let from_stdin =
        run_with(&["put", "prices", "sku:2", "--timeline", "@-", "--server", &world.server.url], plan);
    assert_eq!(from_stdin.code, 0, "{}", from_stdin.err);
    for (plan, what) in [
        ("[", "--timeline is not JSON"),
        ("[]", "has 0 instants"),
        (r#"[{"at":"noon"}]"#, "`timeline[0].at`"),
        (r#"[{"at_ms":2},{"at_ms":1}]"#, "is not after the instant before it"),
        ("@no-such-file", "failed to open no-such-file"),
    ] {
        let refused = world.run(&["put", "prices", "sku:3", "--timeline", plan]);
        assert!(refused.code == 1 && refused.err.contains(what), "{plan}: {}", refused.err);
    }
    let both = world.run(&["put", "prices", "sku:3", "--timeline", plan, "--in", "1h"]);
    assert_eq!(both.code, 2, "{}", both.err);
}

#[test]
fn a_back_off_is_said_of_a_task_or_of_a_queue() {
    let world = World::new();
    let fixed = ["--backoff", "fixed", "--backoff-base", "20m"];
    let put = world.run(&[&["put", "calls", "call:1", "--max-attempts", "3"], &fixed[..]].concat());
    assert_eq!(put.code, 0, "{}", put.err);
    let got = world.run(&["get", "calls", "call:1"]).out;
    assert!(got.contains(r#""backoff":"fixed","base":"20m","max":"20m""#), "{got}");
    let set = world.run(&[&["queues", "set", "calls"], &fixed[..]].concat());
    assert!(set.out.contains(r#""backoff":"fixed","base":"20m""#), "{} {}", set.out, set.err);
    let more = world.run(&["queues", "set", "calls", "--max-attempts", "7"]);
    assert!(
        more.out.contains(r#""max_attempts":7,"backoff":"fixed","base":"20m""#),
        "what is not named stays: {}",
        more.out
    );
    let usual = ["--retry", "none"];
    let usual = world.run(&[&["queues", "set", "calls"], &usual[..]].concat());
    assert!(usual.code == 0 && !usual.out.contains("backoff"), "{} {}", usual.out, usual.err);
    let refused = world.run(&["queues", "set", "calls", "--backoff-base", "1h", "--backoff-max", "1m"]);
    assert!(refused.code == 1 && refused.err.contains("shorter than the first wait"), "{}", refused.err);
}
