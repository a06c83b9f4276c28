//! A disk that is really full. It is a small file system of its own.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tickwheel_api::ImportQuery;
use tickwheel_client::blocking::Client;

use crate::faults::caller::{Caller, Silence};
use crate::faults::history::{Answer, Call, Key, wall_ms};
use crate::faults::mount::Mount;
use crate::faults::needs::{Need, has, say};
use crate::faults::report::{ready, wait_for};
use crate::faults::server::Starting;
use crate::faults::stage::{HOUR_MS, Stage, key};

const MIB: usize = 1 << 20;
/// The disk holds some log files, their reserve, and the tasks of the test.
const DISK: &str = "size=192m";
/// The size of another program's file on the disk (bytes).
const BALLAST: usize = 64 * MIB;

/// Growth is refused, all other calls work, nothing is lost, and the server notices by itself when there is space
/// again.
#[test]
fn a_full_disk_refuses_growth_and_nothing_else() {
    if !has("a full disk", &[Need::Program("mount"), Need::Mounting]) {
        return;
    }
    let mut stage = Stage::new();
    let _disk = Mount::at(&stage.home.data, &["-t", "tmpfs", "-o", DISK, "tmpfs"]);
    let server = stage.home.start();
    let first = Ballast::of(&stage.home.data, "ballast-1", BALLAST);
    let caller = Caller::new(&server.url, &stage.history);
    let (due, far): (Vec<Key>, Vec<Key>) =
        (0..40).map(|number| (key(&format!("due{number}")), key(&format!("far{number}")))).unzip();
    for one in &far {
        caller.put(one, wall_ms() + HOUR_MS, 1).expect("there is room");
    }
    let due_ms = wall_ms() + 2_000;
    for one in &due {
        caller.put(one, due_ms, 1).expect("there is room");
    }
    let mut batches = fill(&caller, 0);

    // Now there is no space left, not even the server's reserve. A checkpoint under way may still free log files.
    // Their space is prepared for the next log files or is free, so it is filled, too.
    let mut second = Ballast::of(&stage.home.data, "ballast-2", usize::MAX);
    let mut rounds = 1;
    wait_for("growth to be refused for good", || {
        let more = fill(&caller, batches);
        rounds += 1;
        batches += more;
        let taken = second.grow(usize::MAX);
        (more == 0 && taken == 0).then_some(())
    });
    let mut leased = Vec::new();
    wait_for("all that is due", || {
        leased.extend(caller.lease("0", 100, 1_000).expect("due tasks go out"));
        (leased.len() == due.len()).then_some(())
    });
    let acked = caller.ack("0", &leased).expect("acks are taken");
    assert!(acked.iter().all(|answer| *answer == Answer::Acked), "{acked:?}");
    for one in &far[..20] {
        assert!(matches!(caller.cancel(one), Ok(Answer::Cancelled)), "a cancel needs no room");
    }
    assert!(matches!(caller.get(&far[20]), Ok(Answer::Live { .. })));
    // Acks and cancels let a checkpoint free files, so the new space is filled again.
    let said = wait_for("the server to say that it is short of room", || {
        rounds += 1;
        batches += fill(&caller, batches);
        second.grow(usize::MAX);
        let (status, said) = ready(&server.url);
        (status == 200 && said["status"] == "degraded").then_some(said)
    });
    assert_eq!((&said["ready"], &said["read_only"]), (&true.into(), &serde_json::Value::Null), "{said}");
    assert!(said["why"].as_str().is_some_and(|why| why.contains("little space for new tasks")), "{said}");

    // Space comes back, and the server notices without a put. Then the first put is accepted.
    first.remove();
    second.remove();
    let said = wait_for("the server to notice the space", || {
        let (status, said) = ready(&server.url);
        (status == 200 && said["status"] == "ok").then_some(said)
    });
    assert_eq!(said["reasons"], serde_json::json!([]), "{said}");
    let put = caller.put(&key("again"), wall_ms() + HOUR_MS, 1);
    assert!(matches!(put, Ok(Answer::Created { .. })), "the first put with space: {put:?}");
    // A checkpoint that frees log files makes space between two rounds of filling. Each such moment is logged once,
    // too.
    // The log is written behind the answers of the server.
    let full = wait_for("each full disk to have ended with a line", || {
        let (full, again) = (stage.home.lines("disk_full").len(), stage.home.lines("disk_room_again").len());
        (full == again).then_some(full)
    });
    assert!((1..=rounds).contains(&full), "{full} lines of a full disk in {rounds} rounds");

    // The disk is filled once more, and the server is killed. It starts without space if a log file is ready for it; a note of 64 bytes is
    // no reason to refuse. With space it has everything.
    let more = fill(&caller, batches);
    let mut third = Ballast::of(&stage.home.data, "ballast-3", usize::MAX);
    for one in &far[20..30] {
        assert!(matches!(caller.cancel(one), Ok(Answer::Cancelled)), "a cancel needs no room");
    }
    server.kill();
    let mut starts = 0;
    for _ in 0..3 {
        match Starting::of(&mut stage.home.command(&[])).ready() {
            Ok(server) => {
                starts += 1;
                third.grow(usize::MAX);
                server.kill();
            }
            Err(_) => {
                let words = stage.home.last_words();
                assert!(words.contains("/log-") && !words.contains("newest-log"), "{words}");
            }
        }
    }
    third.remove();
    stage.restart_and_judge("a full disk");
    say(&format!(
        "full: 507 after {batches} and {more} batches; {starts} of 3 starts on a disk without a free byte"
    ));
}

/// An import stops before the line that does not fit. The lines before it are stored and survive a kill. When there
/// is space, the import resumes at that line.
#[test]
fn an_import_that_finds_the_disk_full_stops_before_a_line_and_goes_on_from_it() {
    if !has("a full disk in an import", &[Need::Program("mount"), Need::Mounting]) {
        return;
    }
    let stage = Stage::new();
    let _disk = Mount::at(&stage.home.data, &["-t", "tmpfs", "-o", DISK, "tmpfs"]);
    let server = stage.home.start();
    let ballast = Ballast::of(&stage.home.data, "ballast", BALLAST);
    let import = |url: &str, from: u64| {
        let query = ImportQuery { quiet: true, first_line: from, ..ImportQuery::default() };
        let client = Client::new(url).expect("a URL");
        client.import(query, lines(from, 1_000)).expect("an import is answered, whatever stops it").1
    };
    let count = |url: &str| {
        let queue = Client::new(url).expect("a URL").queue("q").expect("the queue is there");
        queue.counts.scheduled
    };
    let mut next = 2;
    let problem = loop {
        let end = import(&server.url, next);
        next = end.next_line;
        match end.problem {
            Some(problem) => break problem,
            None => assert!(next < 40_000, "growth was never refused"),
        }
    };
    assert_eq!(problem.status, 507, "{problem:?}");
    assert!(problem.detail.starts_with(&format!("line {next}: ")), "{problem:?}");
    assert_eq!(count(&server.url), next - 2, "all lines before {next} are in, and none after");
    server.kill();
    let server = stage.home.start();
    assert_eq!(count(&server.url), next - 2, "after a kill");
    ballast.remove();
    let end = wait_for("room for the rest", || {
        let end = import(&server.url, next);
        end.problem.is_none().then_some(end)
    });
    assert_eq!((end.next_line, count(&server.url)), (next + 1_000, next + 998));
    say(&format!("full: an import stopped before line {next} with 507 and went on from it"));
}

/// Lines of an export with a header in front; each has a payload of 10 KB.
fn lines(from: u64, count: u64) -> Vec<u8> {
    let mut text =
        String::from("{\"export\":{\"format\":1,\"at\":\"2030-01-01T00:00:00Z\",\"release\":\"0\"}}\n");
    let rest = format!(
        "\"due_at\":\"2090-01-01T00:00:00Z\",\"put_at\":\"2017-01-01T00:00:00Z\",\"payload\":\"{}\"}}}}\n",
        "x".repeat(10_000)
    );
    for number in from..from + count {
        text += &format!("{{\"task\":{{\"queue\":\"q\",\"key\":\"k{number}\",{rest}");
    }
    text.into_bytes()
}

/// Puts batches of a quarter of a megabyte until growth is refused. Returns their number.
fn fill(caller: &Caller<'_>, from: usize) -> usize {
    for batch in from..from + 4 * 192 {
        let put = |number| {
            (key(&format!("b{batch}:{number}")), Call::Put { due_ms: wall_ms() + HOUR_MS, number: 1 })
        };
        let lines: Vec<_> = (0..20).map(put).collect();
        match caller.batch(&lines) {
            Ok(()) => {}
            Err(Silence::Refused(507)) => return batch - from,
            Err(other) => panic!("a full disk refuses growth with 507, and this is {other:?}"),
        }
    }
    panic!("growth was never refused");
}

/// A file that takes space.
struct Ballast(PathBuf);

impl Ballast {
    /// Makes a file of this size, or as large as the disk allows.
    fn of(directory: &Path, name: &str, bytes: usize) -> Self {
        let mut ballast = Self(directory.join(name));
        ballast.grow(bytes);
        ballast
    }

    /// Grows the file by this size, or as far as the disk allows. Returns the growth (bytes).
    fn grow(&mut self, bytes: usize) -> usize {
        let mut file = File::options().create(true).append(true).open(&self.0).expect("make a file");
        // The last bytes are written one page at a time.
        let mut piece = vec![1; MIB];
        let mut taken = 0;
        while taken < bytes && !piece.is_empty() {
            let next = piece.len().min(bytes - taken);
            match file.write(&piece[..next]) {
                Ok(written) if written > 0 => taken += written,
                _ => piece.truncate(if piece.len() > 4_096 { 4_096 } else { 0 }),
            }
        }
        taken
    }

    fn remove(self) {
        fs::remove_file(self.0).expect("remove the file");
    }
}
