//! Every command of `docs/operations.md`, against a real server whose trouble is prepared where a test can prepare it.

use std::io::Write;

use crate::unit::{Unit, both, flip};

/// A block of commands on the page.
#[derive(Debug)]
struct Block {
    section: String,
    /// Its first line on the page.
    line: usize,
    /// How it ends.
    exit: i32,
    /// What it prints, among other things.
    shows: Vec<String>,
    script: String,
}

/// The blocks of the page. The comment before a block says how it ends, if not well, and what it shows:
/// `<!-- exit: 1 | shows: "a" | "b" -->`.
fn blocks() -> Vec<Block> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let text = std::fs::read_to_string(path).expect("the page");
    let (mut blocks, mut section, mut before) = (Vec::new(), "", "");
    let mut lines = text.lines().enumerate();
    while let Some((line, text)) = lines.next() {
        if let Some(title) = text.strip_prefix("## ") {
            section = title;
        }
        if text == "```sh" {
            let script: Vec<&str> =
                lines.by_ref().map(|(_, text)| text).take_while(|text| *text != "```").collect();
            let (exit, shows) = expected(before);
            blocks.push(Block {
                section: section.to_owned(),
                line: line + 2,
                exit,
                shows,
                script: script.join("\n"),
            });
        }
        before = text;
    }
    blocks
}

fn expected(comment: &str) -> (i32, Vec<String>) {
    let said = comment.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")).unwrap_or_default();
    let (exit, said) = match said.strip_prefix("exit: ") {
        Some(rest) => {
            let (exit, rest) = rest.split_once(" | ").unwrap_or((rest, ""));
            (exit.parse().expect("a number"), rest)
        }
        None => (0, said),
    };
    let shows = said
        .strip_prefix("shows: ")
        .map_or(Vec::new(), |shows| shows.split(" | ").map(str::to_owned).collect());
    (exit, shows)
}

/// What every section finds: tasks that are due and nobody takes, one that is far, and a backup.
fn prepare(unit: &Unit) {
    unit.does(
        "for n in 1 2 3; do tickwheel put mail \"hello:$n\"; done
         tickwheel put close order:1 --in 30m
         systemctl stop tickwheel
         tickwheel backup /var/lib/tickwheel /var/backups/tickwheel/backup-20260101T000000.000Z
         systemctl start tickwheel",
    );
}

/// The trouble that a section is about. `false`: this machine does not let us make it.
fn trouble(section: &str, unit: &mut Unit) -> bool {
    match section {
        "Late" => {
            unit.does("tickwheel queues pause mail; tickwheel queues set mail --max-in-flight 1 --rate 1/m");
        }
        "Refused" => {
            unit.does(
                "tickwheel queues set mail --max-backlog 1; ! tickwheel put mail hello:4; tickwheel drain",
            );
        }
        "Read-only" => {
            unit.end_writes();
            unit.does("! tickwheel put mail hello:4");
        }
        "Damaged" => {
            unit.does("systemctl stop tickwheel");
            let log = unit.data().join("shard-0000/log-00000001");
            let bytes = std::fs::read(&log).expect("a log file");
            let at = bytes.windows(7).position(|window| window == b"hello:1").expect("it was put");
            flip(&log, at);
        }
        "Dead letters" => {
            unit.does(
                "tickwheel queues set mail --max-attempts 1
                 token=$(tickwheel lease mail -o json | sed -E 's/.*\"token\":\"([^\"]+)\".*/\\1/')
                 tickwheel nack mail \"$token\" --reason 'no luck'",
            );
        }
        "Workers gone" => {
            unit.does(
                "tickwheel lease mail --for 1s
                 until curl -sS $TICKWHEEL_SERVER/metrics | grep -q 'expired_total{queue=\"mail\"} 1'; do sleep 0.05; done",
            );
        }
        "Slow commits" => return unit.with_slow_syncs(),
        "Clock doubted" => return unit.with_a_clock_that_jumps(),
        "Full" => {
            if !unit.on_a_small_disk() {
                return false;
            }
            unit.does(
                "tickwheel put mail hello:1
                 dd if=/dev/zero of=/var/lib/tickwheel/ballast bs=64k 2>/dev/null || true
                 n=0
                 while tickwheel put mail hello:2; do n=$((n + 1)); [ $n -lt 500 ]; done",
            );
        }
        _ => {}
    }
    true
}

#[test]
fn every_command_of_the_page_does_what_the_page_says() {
    let blocks = blocks();
    assert!(blocks.len() >= 20, "{} blocks", blocks.len());
    for of_section in blocks.chunk_by(|a, b| a.section == b.section) {
        let mut unit = Unit::started();
        prepare(&unit);
        if !trouble(&of_section[0].section, &mut unit) {
            let skipped =
                format!("SKIPPED: section {}, for its trouble cannot be made here", of_section[0].section);
            // Not by `eprintln!`, which is not shown for a test that passes.
            writeln!(std::io::stderr(), "\n!!!! {skipped}\n").expect("write to stderr");
            continue;
        }
        for Block { section, line, exit, shows, script } in of_section {
            let output = unit.run(script);
            let text = both(&output);
            let place = format!("{section}, line {line} of the page:\n{script}\n\n{text}");
            assert_eq!(output.status.code(), Some(*exit), "{place}");
            for part in shows {
                assert!(text.contains(part), "`{part}` is not shown. {place}");
            }
        }
    }
}

/// A block that promises nothing could print anything.
#[test]
fn the_blocks_say_what_they_show() {
    for Block { section, shows, script, .. } in blocks() {
        let only_sets = script.lines().all(|line| line.starts_with("export ") || line.starts_with('#'));
        assert!(only_sets || !shows.is_empty(), "{section}:\n{script}");
    }
    let (exit, shows) = expected("<!-- exit: 1 | shows: \"a\":1 | b -->");
    assert_eq!((exit, shows), (1, vec!["\"a\":1".to_owned(), "b".to_owned()]));
}
