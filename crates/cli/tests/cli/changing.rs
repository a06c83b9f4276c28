//! The commands that change a task that is there: `patch`, `move` and `run`, beside a `put` of its key.

use serde_json::{Value, json};

use crate::client::{World, member};

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

/// A put of a live key once claimed to move the task, and took its payload, tags and priority away.
#[test]
fn a_put_of_a_live_key_says_that_it_replaces() {
    let world = World::new();
    full_task(&world);
    let put = world.run(&["put", "close", "order:1", "--in", "1h"]);
    assert_eq!((put.code, member(&put.out, "result")), (0, "replaced"));
    let now = task(&world);
    assert_eq!((&now["payload"], &now["tags"], &now["priority"]), (&json!(null), &json!([]), &json!(1024)));
    let help = world.run(&["put", "--help"]).out;
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
