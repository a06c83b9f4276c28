//! The commands that change an existing task: `patch`, `move` and `run`, compared with a `put` of its key.

use serde_json::{Value, json};

use crate::cli::client::{World, member};

fn full_task(world: &World) {
    let words = [
        &["put", "close", "order:1", "--in", "30m", "--payload", "{\"order\":1}"][..],
        &["--tag", "vip", "--priority", "7", "--group", "g", "--max-attempts", "3", "--expire-after", "9h"],
    ];
    assert_eq!(world.run(&words.concat()).code, 0);
}

fn task(world: &World) -> Value {
    let got = world.run(&["get", "close", "order:1"]);
    serde_json::from_str(&got.out).unwrap_or_else(|error| panic!("{error}: {} {}", got.out, got.err))
}

/// Regression: the help said that a put of a live key moves the task, but it also dropped its payload, tags and
/// priority.
#[test]
fn a_put_of_a_live_key_says_that_it_replaces() {
    let world = World::new();
    full_task(&world);
    let put = world.run(&["put", "close", "order:1", "--in", "1h"]);
    assert_eq!((put.code, member(&put.out, "result")), (0, "replaced"));
    let now = task(&world);
    assert_eq!((&now["payload"], &now["tags"], &now["priority"]), (&json!(null), &json!([]), &json!(1024)));
    let help = world.run(&["put", "--help"]).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("replaces that task as a whole") && help.contains("patch"), "{help}");
    assert!(!help.contains("moves that task"), "{help}");
}

#[test]
fn a_move_and_a_run_change_the_time_alone() {
    let world = World::new();
    full_task(&world);
    let before = task(&world);
    let moved = world.run(&["move", "close", "order:1", "--in", "45m"]);
    assert_eq!((moved.code, member(&moved.out, "state")), (0, "scheduled"), "{}", moved.err);
    let at = world.run(&["move", "close", "order:1", "--at", "2100-01-01T00:00:00Z", "-o", "table"]);
    assert_eq!(at.code, 1, "beyond its expiry: {}", at.err);
    let after = task(&world);
    for member in ["payload", "tags", "priority", "group", "retry", "id", "expire_at"] {
        assert_eq!(before[member], after[member], "{member}");
    }
    assert_ne!(before["due_at"], after["due_at"]);
    let run = world.run(&["run", "close", "order:1", "-o", "table"]);
    assert!(run.code == 0 && run.out.contains("ready"), "{} {}", run.out, run.err);
    let leased = world.run(&["lease", "close"]);
    assert!(leased.out.contains(r#""payload":{"order":1}"#), "{}", leased.out);
}

#[test]
fn a_patch_changes_what_is_named() {
    let world = World::new();
    full_task(&world);
    let patch = |words: &[&str]| {
        let ran = world.run(&[&["patch", "close", "order:1"], words].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        task(&world)
    };
    let now = patch(&["--payload", "[2]"]);
    assert_eq!((&now["payload"], &now["tags"], &now["priority"]), (&json!([2]), &json!(["vip"]), &json!(7)));
    let now = patch(&["--tag", "eu", "--tag", "daily", "--priority", "9"]);
    assert_eq!(
        (&now["tags"], &now["priority"], &now["group"]),
        (&json!(["eu", "daily"]), &json!(9), &json!("g"))
    );
    let now = patch(&["--no-tags", "--no-group", "--no-retry", "--expire-after", "none"]);
    assert_eq!((&now["tags"], &now["group"], &now["retry"]), (&json!([]), &json!(null), &json!(null)));
    assert_eq!((&now["expire_at"], &now["payload"]), (&json!(null), &json!([2])));
    let now = patch(&["--level", "3", "--max-attempts", "5", "--group", "h"]);
    assert_eq!((&now["retry"]["max_attempts"], &now["group"]), (&json!(5), &json!("h")));
    let plan = r#"[{"at":"2030-01-01T00:00:00Z","payload":9},{"at":"2030-02-01T00:00:00Z","payload":8}]"#;
    assert_eq!(patch(&["--timeline", plan])["payload"], json!(9));
    let moved = world.run(&["move", "close", "order:1", "--in", "1h"]);
    assert!(moved.code == 1 && moved.err.contains("tickwheel patch --timeline"), "{}", moved.err);
}

/// The next worker has the task, and the one that had it is told so.
#[test]
fn a_release_takes_a_task_from_its_worker() {
    let world = World::new();
    full_task(&world);
    let refused = world.run(&["release", "close", "order:1"]);
    assert!(refused.code == 1 && refused.err.contains("no worker has the task"), "{}", refused.err);
    assert_eq!(world.run(&["run", "close", "order:1"]).code, 0);
    let leased = world.run(&["lease", "close"]);
    let until = member(&leased.out, "lease_until");
    let shown = world.run(&["get", "close", "order:1", "-o", "table"]);
    assert!(shown.out.contains(&format!("leased until {until}")), "{}", shown.out);
    assert_eq!(member(&world.run(&["ls", "close"]).out, "lease_until"), until);
    let refused = world.run(&["release", "close", "order:1", "--if-match", "999"]);
    assert!(refused.code == 1 && refused.err.contains("version 999"), "{}", refused.err);
    let released = world.run(&["release", "close", "order:1"]);
    assert_eq!((released.code, member(&released.out, "state")), (0, "ready"), "{}", released.err);
    let told = world.run(&["ack", "close", member(&leased.out, "token")]);
    assert_eq!(member(&told.out, "result"), "revoked");
    assert!(world.run(&["lease", "close"]).out.contains(r#""attempt":2"#));
}

#[test]
fn a_task_tells_its_story_and_why_it_does_not_run() {
    let world = World::new();
    full_task(&world);
    let why = world.run(&["why", "close", "order:1"]);
    assert!(
        why.code == 0 && why.out.starts_with("The task is due at ") && why.out.ends_with(", in 30m.\n"),
        "{}",
        why.out
    );
    world.advance(1_800_000);
    assert!(world.run(&["why", "close", "order:1"]).out.contains("no worker asks"));
    let leased = world.run(&["lease", "close", "--worker", "mailer-1"]);
    let back = world.run(&["nack", "close", member(&leased.out, "token"), "--reason", "no paper"]);
    assert_eq!(back.code, 0, "{}", back.err);
    let story = world.run(&["story", "close", "order:1", "-o", "table"]);
    assert!(
        story.code == 0 && story.out.contains("nacked") && story.out.contains("no paper"),
        "{}",
        story.out
    );
    assert!(
        story.out.contains("next: expires") && story.err.contains("due again at"),
        "{} {}",
        story.out,
        story.err
    );
    let json: Value = serde_json::from_str(&world.run(&["story", "close", "order:1"]).out).expect("JSON");
    assert_eq!((&json["events"][0]["what"], &json["complete"]), (&json!("put"), &json!(true)));
    let none = world.run(&["why", "close", "order:2"]);
    assert!(none.code == 1 && none.err.contains("no live task"), "{}", none.err);
}

#[test]
fn leases_are_listed_with_their_workers() {
    let world = World::new();
    let none = world.run(&["leases"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    for key in ["a", "b", "c"] {
        assert_eq!(world.run(&["put", "close", key]).code, 0);
    }
    let named = world.run(&["lease", "close", "--worker", "mailer-1"]);
    world.run(&["lease", "close", "--max", "2"]);
    let all = world.run(&["leases"]);
    assert_eq!((all.code, all.lines().len()), (0, 3), "{}", all.err);
    assert_eq!((member(all.lines()[0], "worker"), member(all.lines()[0], "key")), ("mailer-1", "a"));
    assert_eq!(member(all.lines()[0], "until"), member(&named.out, "lease_until"));
    let table = world.run(&["leases", "close", "--worker", "mailer-1", "-o", "table"]);
    assert!(table.out.contains("WORKER") && table.out.lines().count() == 2, "{}", table.out);
    let some = world.run(&["leases", "--limit", "1"]);
    assert!(some.lines().len() == 1 && some.err.contains("--all shows all"), "{} {}", some.out, some.err);
    assert_eq!(world.run(&["leases", "--all"]).lines().len(), 3);
    assert_eq!(world.run(&["put", "mail", "waits"]).code, 0);
    let none = world.run(&["leases", "mail", "-o", "table"]);
    assert!(none.out.is_empty() && none.err.contains("no leases"), "{}", none.err);
    let bad = world.run(&["lease", "close", "--worker", ""]);
    assert!(bad.code == 2 && bad.err.contains("1 to 128 bytes"), "{}", bad.err);
}

#[test]
fn a_change_that_cannot_be_says_why() {
    let world = World::new();
    let changes: [&[&str]; 3] = [
        &["patch", "close", "order:1", "--priority", "1"],
        &["move", "close", "order:1", "--in", "1h"],
        &["run", "close", "order:1"],
    ];
    let all = |with: &[&str], what: &str| {
        for words in changes {
            let ran = world.run(&[words, with].concat());
            assert!(ran.code == 1 && ran.out.is_empty() && ran.err.contains(what), "{words:?}: {}", ran.err);
        }
    };
    all(&[], "no live task with the key `order:1`");
    full_task(&world);
    all(&["--if-match", "999"], "version 999");
    world.run(&["run", "close", "order:1"]);
    let leased = world.run(&["lease", "close"]);
    all(&[], "take the task away from it with --revoke");
    for words in changes {
        let ran = world.run(&[words, &["--revoke"]].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
    }
    let told = world.run(&["ack", "close", member(&leased.out, "token")]);
    assert_eq!(member(&told.out, "result"), "revoked");
    assert_eq!(world.run(&["put", "close", "order:1", "--max-attempts", "1"]).code, 0);
    let leased = world.run(&["lease", "close"]);
    world.run(&["nack", "close", member(&leased.out, "token")]);
    all(&[], "tickwheel redrive");
    for (words, what) in [
        (&["patch", "close", "order:1"][..], "what is to change?"),
        (&["patch", "close", "order:1", "--tag", "a", "--no-tags"], "cannot be used with"),
        (&["patch", "close", "order:1", "--in", "1h", "--at", "2030-01-01T00:00:00Z"], "cannot be used with"),
        (&["move", "close", "order:1"], "--in"),
        (&["move", "close", "--in", "1h"], "KEY"),
    ] {
        let ran = world.run(words);
        assert!(ran.code == 2 && ran.err.contains(what), "{words:?}: {}", ran.err);
    }
}

#[test]
fn many_are_moved_and_what_is_not_is_said() {
    let world = World::new();
    for key in ["a", "b"] {
        let put = ["put", "close", key, "--at", "2100-01-01T00:00:00Z", "--tag", "vip"];
        assert_eq!(world.run(&put).code, 0);
    }
    let line =
        |ran: &crate::cli::run::Ran| -> Value { serde_json::from_str(&ran.out).expect("a line of JSON") };
    let due = |key: &str| {
        let got = world.run(&["get", "close", key]);
        member(&got.out, "due_at").to_owned()
    };
    let dry = world.run(&["move", "close", "--tag", "vip", "--by", "1h", "--dry-run"]);
    assert_eq!((dry.code, line(&dry)), (0, json!({"queue": "close", "matched": 2, "moved": 0})));
    let moved = world.run(&["move", "close", "--all", "--by", "-1h"]);
    assert_eq!((moved.code, line(&moved)), (0, json!({"queue": "close", "matched": 2, "moved": 2})));
    assert_eq!(due("a"), "2099-12-31T23:00:00.000Z");
    assert_eq!(world.run(&["move", "close", "a", "--by", "30m"]).code, 0);
    assert_eq!(
        (due("a").as_str(), due("b").as_str()),
        ("2099-12-31T23:30:00.000Z", "2099-12-31T23:00:00.000Z")
    );
    assert_eq!(world.run(&["put", "close", "held"]).code, 0);
    assert_eq!(world.run(&["lease", "close"]).lines().len(), 1);
    let moved = world.run(&["move", "close", "--all", "--in", "2h", "-o", "table"]);
    assert_eq!(moved.code, 1);
    assert!(moved.err.contains("1 were not moved: 1 are leased (--revoke"), "{}", moved.err);
    assert!(moved.out.contains("SKIPPED") && moved.out.contains("1 leased"), "{}", moved.out);
    assert_eq!(due("a"), due("b"), "one instant for all");
    for (words, what) in [
        (&["move", "close", "--by", "1h"][..], "--all for every"),
        (&["move", "close", "--all"], "--in"),
        (&["move", "close", "--all", "--by", "0s"], "moves nothing"),
        (&["move", "close", "a", "--tag", "vip", "--in", "1h"], "cannot be used with"),
    ] {
        let ran = world.run(words);
        assert!(ran.code == 2 && ran.err.contains(what), "{words:?}: {}", ran.err);
    }
}

#[test]
fn a_queue_is_purged_and_deleted() {
    let world = World::new();
    assert_eq!(world.run(&["queues", "set", "close", "--max-in-flight", "3"]).code, 0);
    full_task(&world);
    let unsure = world.run(&["purge", "close"]);
    assert!(unsure.code == 2 && unsure.err.contains("add --yes"), "{}", unsure.err);
    let kept = world.run(&["queues", "delete", "close"]);
    assert!(
        kept.code == 1
            && kept.err.contains("live tasks 1, dead tasks 0")
            && kept.err.contains("tickwheel purge"),
        "{}",
        kept.err
    );
    let dry = world.run(&["purge", "close", "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains(r#""matched":1,"purged":0"#), "{} {}", dry.out, dry.err);
    let purged = world.run(&["purge", "close", "--yes"]);
    assert!(purged.code == 0 && purged.out.contains(r#""matched":1,"purged":1"#), "{}", purged.out);
    assert!(world.run(&["queues"]).out.contains(r#""queue":"close""#), "its settings stay");
    let deleted = world.run(&["queues", "delete", "close"]);
    assert_eq!((deleted.code, member(&deleted.out, "result")), (0, "deleted"));
    assert!(!world.run(&["queues"]).out.contains(r#""queue":"close""#));
}
