//! A memory limit for the server, by a control group of its own.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tickwheel_api::{BatchLine, BatchOp, Due, PayloadBody, PutBody, PutMode};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;
use tickwheel_testing::is_long;

use crate::faults::history::wall_ms;
use crate::faults::needs::{Need, has, say};
use crate::faults::server::{Home, Starting};

const MIB: u64 = 1 << 20;
const PAYLOAD_BYTES: usize = 200;
const BATCH: u64 = 500;

/// Far tasks under a memory limit. The server takes them all, and the next server finds them all under the same limit.
///
/// With `TICKWHEEL_LONG=1` there are a million tasks under 256 MiB. They would not fit with each payload and key in
/// memory.
#[test]
fn far_tasks_fit_under_a_ceiling() {
    if !has("a ceiling of memory", &[Need::Groups(Group::parent())]) {
        return;
    }
    let (tasks, limit) = if is_long() { (1_000_000, 256 * MIB) } else { (60_000, 128 * MIB) };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let group = Group::new("tickwheel-faults", limit);
    let server = home.start_as(&mut home.command(&group.wrapper()));
    let begun = Instant::now();
    if let Err(error) = fill(&server.url, 0, tasks) {
        panic!("{error}; the server ended with {}\n{}", server.ended(), home.last_words());
    }
    let (filled, used) = (begun.elapsed(), resident_kib(server.pid().as_raw_nonzero().get()));
    server.kill();

    let begun = Instant::now();
    let server = home.start_as(&mut home.command(&group.wrapper()));
    let recovered = begun.elapsed();
    let client = Client::new(&server.url).expect("the server's own URL");
    let queues = client.queues().expect("it answers");
    assert_eq!(queues.iter().map(|queue| queue.scheduled).sum::<u64>(), tasks, "LOST: {queues:?}");
    for number in (0..tasks).step_by(997) {
        let task =
            client.get("0", &format!("k{number}")).unwrap_or_else(|error| panic!("LOST: k{number}: {error}"));
        assert_eq!(task.payload.map(|payload| payload.bytes), Some(payload(number)));
    }
    say(&format!(
        "memory: {tasks} tasks of {PAYLOAD_BYTES} B under {} MiB, taken in {filled:?} ({used} KiB resident), there again after {recovered:?}",
        limit / MIB
    ));
}

/// The limit works. A server that does not fit under it is killed, and everything that it acknowledged is there.
#[test]
fn a_server_over_its_ceiling_is_killed_and_loses_nothing() {
    if !has("a ceiling of memory", &[Need::Groups(Group::parent())]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let group = Group::new("tickwheel-faults-low", 6 * MIB);
    let mut acknowledged = 0;
    let Ok(server) = Starting::of(&mut home.command(&group.wrapper())).ready() else {
        return;
    };
    // Payloads of near tasks are in memory, so the memory runs out and the loop ends.
    let ended = loop {
        match fill(&server.url, acknowledged, acknowledged + BATCH) {
            Ok(()) => acknowledged += BATCH,
            Err(_) => break server.ended(),
        }
        assert!(acknowledged < 1_000_000, "the ceiling holds nothing");
    };
    assert_eq!(ended.signal(), Some(9));
    let server = home.start();
    let client = Client::new(&server.url).expect("the server's own URL");
    let scheduled: u64 = client.queues().expect("it answers").iter().map(|queue| queue.scheduled).sum();
    assert!(
        (acknowledged..=acknowledged + BATCH).contains(&scheduled),
        "LOST: {scheduled} of {acknowledged}"
    );
    say(&format!("memory: killed over 6 MiB after {acknowledged} tasks, and they are there"));
}

/// Puts tasks due in one to two days.
fn fill(url: &str, from: u64, to: u64) -> Result<(), ClientError> {
    let client = Client::new(url).expect("the server's own URL");
    let due_ms = wall_ms() + 86_400_000;
    for first in (from..to).step_by(usize::try_from(BATCH).expect("small")) {
        let line = |number: u64| BatchLine {
            key: format!("k{number}"),
            if_match: None,
            revoke: false,
            op: BatchOp::Put {
                body: PutBody {
                    due: Due::At(due_ms + i64::try_from(number * 7_919 % 86_400_000).expect("small")),
                    payload: PayloadBody::json(payload(number)),
                    ..PutBody::default()
                },
                mode: PutMode::Create,
            },
        };
        let lines: Vec<BatchLine> = (first..to.min(first + BATCH)).map(line).collect();
        let results = client.batch("0", &lines)?;
        assert!(results.iter().all(|result| result.status == 201), "{:?}", results.first());
    }
    Ok(())
}

fn payload(number: u64) -> Vec<u8> {
    let text = format!("\"{number:0>width$}\"", width = PAYLOAD_BYTES - 2);
    text.into_bytes()
}

fn resident_kib(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("read its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
    line.trim().trim_end_matches(" kB").to_owned()
}

/// A control group with a memory limit. Dropping it removes the group.
struct Group {
    directory: PathBuf,
}

impl Group {
    const V1: &str = "/sys/fs/cgroup/memory";
    const V2: &str = "/sys/fs/cgroup";

    /// The parent group, in either version of control groups.
    fn parent() -> &'static str {
        if Path::new(Self::V1).join("memory.limit_in_bytes").exists() { Self::V1 } else { Self::V2 }
    }

    fn new(name: &str, limit_bytes: u64) -> Self {
        let parent = Path::new(Self::parent());
        let limit = if Self::parent() == Self::V1 { "memory.limit_in_bytes" } else { "memory.max" };
        // The controller may be on already. If the test may not switch it on, writing the limit fails below.
        let _on = fs::write(parent.join("cgroup.subtree_control"), "+memory");
        let directory = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&directory).expect("make a control group");
        let group = Self { directory };
        fs::write(group.directory.join(limit), limit_bytes.to_string()).expect("set the ceiling");
        // Without swap this file does not exist.
        let _no_swap = fs::write(group.directory.join("memory.swap.max"), "0");
        group
    }

    /// The words in front of a command line that runs it in the group.
    fn wrapper(&self) -> [&str; 4] {
        let directory = self.directory.to_str().expect("UTF-8");
        ["sh", "-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"", directory]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may still be ending.
        let begun = Instant::now();
        while fs::remove_dir(&self.directory).is_err() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
