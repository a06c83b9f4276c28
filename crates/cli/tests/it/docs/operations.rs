//! Every command of `docs/how-to/operations.md` runs against a real server that has the trouble of its section, if a test can
//! make this trouble.

use crate::docs::page::{self, Page, Typed};
use crate::docs::root;
use crate::docs::unit::{Lack, Unit, both, flip};
use crate::docs::visit::missing_program;

pub(crate) const PATH: &str = "docs/how-to/operations.md";

fn page() -> Page {
    page::read(&root(), PATH).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The blocks of the page.
fn blocks(page: &Page) -> Vec<&Typed> {
    page.typed().collect()
}

/// The title of the section in which a block is.
fn section<'a>(page: &'a Page, block: &Typed) -> &'a str {
    page.lines[..block.line].iter().rev().find_map(|line| line.strip_prefix("## ")).unwrap_or_default()
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

/// Makes the trouble of a section.
fn trouble(section: &str, unit: &mut Unit) -> Result<(), Lack> {
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
        "Targets" => {
            // No program listens on the port.
            unit.does(
                "systemctl stop tickwheel
                 TICKWHEEL_PUSH_ALLOW=127.0.0.1:9 systemctl start tickwheel
                 tickwheel target set mail --url http://127.0.0.1:9/
                 until grep event=.target_changed. log | grep state=.open.; do sleep 0.05; done",
            );
        }
        "Slow commits" => return unit.with_slow_syncs(),
        "Clock doubted" => return unit.with_a_clock_that_jumps(),
        "Full" => {
            unit.on_a_small_disk()?;
            unit.does(
                "tickwheel put mail hello:1
                 dd if=/dev/zero of=/var/lib/tickwheel/ballast bs=64k 2>/dev/null || true
                 n=0
                 while tickwheel put mail hello:2; do n=$((n + 1)); [ $n -lt 500 ]; done",
            );
        }
        _ => {}
    }
    Ok(())
}

#[test]
fn every_command_of_the_page_does_what_the_page_says() {
    if !Unit::is_possible() {
        return;
    }
    let page = page();
    if let Some(program) = missing_program(&page) {
        tickwheel_testing::missing(program, "the page cannot run without it");
        return;
    }
    let blocks = blocks(&page);
    assert!(blocks.len() >= 20, "{} blocks", blocks.len());
    for of_section in blocks.chunk_by(|a, b| section(&page, a) == section(&page, b)) {
        // One path goes through the section, and one more for each block that is an alternative to another.
        ways(of_section).iter().for_each(|way| go(section(&page, way[0]), way));
    }
}

/// The sequences of blocks, one for each choice of a reader of the section.
fn ways<'a>(of_section: &[&'a Typed]) -> Vec<Vec<&'a Typed>> {
    let mut ways: Vec<Vec<&Typed>> = vec![Vec::new()];
    for block in of_section {
        if block.marks.instead {
            let mut other = ways[0].clone();
            other.pop();
            ways.push(other);
        }
        let at = if block.marks.instead { ways.len() - 1 } else { 0 };
        ways[at].push(block);
    }
    ways
}

/// Runs these blocks of one section, on a unit with its trouble.
fn go(section: &str, way: &[&Typed]) {
    let mut unit = Unit::started();
    prepare(&unit);
    match trouble(section, &mut unit) {
        Ok(()) => {}
        Err(Lack::Program(program)) => {
            return tickwheel_testing::missing_for(section, program, "the trouble cannot be made without it");
        }
        Err(Lack::Right(right)) => return tickwheel_testing::forbidden(&format!("{right}, for {section}")),
    }
    for Typed { line, text: script, marks, .. } in way {
        let output = unit.run(script);
        let text = both(&output);
        let place = format!("{section}, line {line} of the page:\n{script}\n\n{text}");
        assert_eq!(output.status.code(), Some(marks.exit), "{place}");
        for part in &marks.shows {
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
    // Commands of other programs, whose output depends on the computer.
    const OTHERS: [&str; 5] = [
        "timedatectl timesync-status",
        "chronyc tracking",
        "kill -9",
        "rm DIR/stamp",
        "cp BACKUP/shards DIR/",
    ];
    // Beginnings of texts that this program prints.
    const PRINTED: [&str; 3] = ["line ", "shard 1 of 3: ", "the folder has the stamp "];
    if !Unit::is_possible() {
        return;
    }
    let (page, unit) = (page().lines.join("\n"), Unit::started());
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
            let printed = PRINTED.iter().any(|beginning| piece.starts_with(beginning));
            assert!(OTHERS.contains(&piece) || printed, "`{piece}` is no known command");
        }
    }
    assert!(typed >= 3 && options >= 4, "{typed} commands, {options} options");
}

/// Without an expected output, the output of a block would not be checked.
#[test]
fn the_blocks_say_what_they_show() {
    let page = page();
    for block in blocks(&page) {
        let only_sets = block.text.lines().all(|line| line.starts_with("export ") || line.starts_with('#'));
        assert!(only_sets || !block.marks.shows.is_empty(), "{PATH}:{}:\n{}", block.line, block.text);
    }
}
