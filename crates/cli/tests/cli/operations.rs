//! Every command of `docs/how-to/operations.md` runs against a real server that has the trouble of its section, if a test can
//! make this trouble.

use std::io::Write;

use crate::unit::{Unit, both, flip};

/// A block of commands on the page.
#[derive(Debug)]
struct Block {
    section: String,
    /// The number of its first line on the page.
    line: usize,
    /// This block is an alternative to the block before it, and does not follow it.
    instead: bool,
    /// The expected exit code.
    exit: i32,
    /// Texts that the output must have.
    shows: Vec<String>,
    script: String,
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/operations.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The blocks of the page. The comment before a block gives its attributes: whether it is an alternative to the block
/// before, its exit code if it is not 0, and texts of its output: `<!-- instead | exit: 1 | shows: "a" | "b" -->`.
fn blocks() -> Vec<Block> {
    let text = page();
    let (mut blocks, mut section, mut before) = (Vec::new(), "", "");
    let mut lines = text.lines().enumerate();
    while let Some((line, text)) = lines.next() {
        if let Some(title) = text.strip_prefix("## ") {
            section = title;
        }
        if text == "```sh" {
            let script: Vec<&str> =
                lines.by_ref().map(|(_, text)| text).take_while(|text| *text != "```").collect();
            let (instead, exit, shows) = expected(before);
            blocks.push(Block {
                section: section.to_owned(),
                line: line + 2,
                instead,
                exit,
                shows,
                script: script.join("\n"),
            });
        }
        before = text;
    }
    blocks
}

fn expected(comment: &str) -> (bool, i32, Vec<String>) {
    let said = comment.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")).unwrap_or_default();
    let (instead, said) = match said.strip_prefix("instead | ") {
        Some(rest) => (true, rest),
        None => (false, said),
    };
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
    (instead, exit, shows)
}

/// The state in which every section starts: due tasks that no worker takes, one far task, a whole backup, and a backup
/// that a crash left unfinished.
fn prepare(unit: &Unit) {
    unit.does(
        "for n in 1 2 3; do tickwheel put mail \"hello:$n\"; done
         tickwheel put close order:1 --in 30m
         systemctl stop tickwheel
         tickwheel backup /var/lib/tickwheel /var/backups/tickwheel/backup-20260101T000000.000Z
         systemctl start tickwheel
         mkdir /var/backups/tickwheel/backup-20990101T000000.000Z.unfinished",
    );
}

/// Makes the trouble of a section. `false`: this is not possible on this computer.
fn trouble(section: &str, unit: &mut Unit) -> bool {
    match section {
        "Down" => {
            unit.does("kill -9 $(cat pid); while systemctl is-active tickwheel; do sleep 0.02; done");
        }
        "Restarts" => {
            // The server was started twice already, before and after the backup.
            unit.does(
                "for n in 1 2 3; do
                     kill -9 $(cat pid)
                     while systemctl is-active tickwheel; do sleep 0.02; done
                     systemctl start tickwheel
                 done
                 until [ $(grep -c event=.started. log) -ge 5 ]; do sleep 0.05; done",
            );
        }
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
        // One path goes through the section, and one more for each block that is an alternative to another.
        ways(of_section).iter().for_each(|way| go(way));
    }
}

/// The sequences of blocks, one for each choice of a reader of the section.
fn ways(of_section: &[Block]) -> Vec<Vec<&Block>> {
    let mut ways: Vec<Vec<&Block>> = vec![Vec::new()];
    for block in of_section {
        if block.instead {
            let mut other = ways[0].clone();
            other.pop();
            ways.push(other);
        }
        let at = if block.instead { ways.len() - 1 } else { 0 };
        ways[at].push(block);
    }
    ways
}

/// Runs these blocks of one section, on a unit with its trouble.
fn go(way: &[&Block]) {
    let mut unit = Unit::started();
    prepare(&unit);
    if !trouble(&way[0].section, &mut unit) {
        let skipped = format!("SKIPPED: section {}, for its trouble cannot be made here", way[0].section);
        let requires_all = std::env::var_os("TICKWHEEL_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!requires_all, "{skipped}");
        // `eprintln!` is not shown for a test that passes.
        writeln!(std::io::stderr(), "\n!!!! {skipped}\n").expect("write to stderr");
        return;
    }
    for Block { section, line, exit, shows, script, .. } in way {
        let output = unit.run(script);
        let text = both(&output);
        let place = format!("{section}, line {line} of the page:\n{script}\n\n{text}");
        assert_eq!(output.status.code(), Some(*exit), "{place}");
        for part in shows {
            assert!(text.contains(part), "`{part}` is not shown. {place}");
        }
    }
}

/// Texts between two backticks outside the blocks, with a space or an option in them.
fn commands_of_the_text(page: &str) -> Vec<&str> {
    let outside_blocks = page.split("\n```").step_by(2);
    let pieces = outside_blocks.flat_map(|text| text.split('`').skip(1).step_by(2));
    pieces.filter(|piece| piece.contains(' ') || piece.starts_with("--")).collect()
}

/// Commands in the text and its tables, outside the blocks. Each `tickwheel` command runs as it is written, and this
/// program must know each option.
#[test]
fn every_command_in_the_text_and_its_tables_is_known() {
    // Commands of other programs, whose output depends on the computer, and a text that this program prints.
    const OTHERS: [&str; 3] = ["timedatectl timesync-status", "chronyc tracking", "kill -9"];
    let (page, unit) = (page(), Unit::started());
    prepare(&unit);
    let help = ["serve", "import", "cancel", "purge"]
        .map(|of| unit.does(&format!("tickwheel {of} --help")))
        .concat();
    let (mut typed, mut options) = (0, 0);
    for piece in commands_of_the_text(&page) {
        if piece.starts_with("tickwheel ") || piece.starts_with("systemctl ") {
            let command = piece.replace("QUEUE", "mail").replace("FILE", "/var/backups/tickwheel/file");
            let output = unit.run(&command);
            // A command that resumes an interrupted export finds no such export here.
            let may_fail = piece.contains("--resume") && output.status.code() != Some(2);
            assert!(output.status.success() || may_fail, "{command}\n{}", both(&output));
            typed += 1;
        } else if piece.starts_with("serve ") || piece.starts_with("--") {
            for option in piece.split(' ').filter(|word| word.starts_with("--")) {
                assert!(
                    help.split(|c: char| c.is_whitespace() || c == '=').any(|word| word == option),
                    "`{piece}`: no {option}"
                );
                options += 1;
            }
        } else {
            assert!(OTHERS.contains(&piece) || piece.starts_with("line "), "`{piece}` is no known command");
        }
    }
    assert!(typed >= 3 && options >= 4, "{typed} commands, {options} options");
}

/// Without an expected output, the output of a block would not be checked.
#[test]
fn the_blocks_say_what_they_show() {
    for Block { section, shows, script, .. } in blocks() {
        let only_sets = script.lines().all(|line| line.starts_with("export ") || line.starts_with('#'));
        assert!(only_sets || !shows.is_empty(), "{section}:\n{script}");
    }
    let (instead, exit, shows) = expected("<!-- exit: 1 | shows: \"a\":1 | b -->");
    assert_eq!((instead, exit, shows), (false, 1, vec!["\"a\":1".to_owned(), "b".to_owned()]));
    assert_eq!(expected("<!-- instead | shows: a -->"), (true, 0, vec!["a".to_owned()]));
}
