//! A directory that a released version wrote is opened for ever, and its content is found.
//!
//! `format-1/` was written by [`maker`], and `format-1.txt` says what is in it. docs/contributing/rules.md says when they may change.

mod listing;
mod maker;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tickwheel_engine::{Ended, LeaseNo, Outcome, Reply, Seq, TaskEffect, Timestamp};
use tickwheel_store::conformance::{self, Owner, sample_task};
use tickwheel_store::{DiskStore, FsDisk, HistoryLimits, InlineIo, StoreOptions};

const PRESENT: &str = "format-1";

type Store = DiskStore<FsDisk, InlineIo<FsDisk>>;

/// Ended tasks remembered for each queue.
const HISTORY: usize = 20;

/// Everything small, so that the directory has a little of everything.
fn open(dir: &Path) -> Store {
    let mut options = StoreOptions::new(*b"golden directory");
    options.log_file_bytes = 8 << 10;
    options.checkpoint_after_bytes = 12 << 10;
    options.background_step_bytes = 4 << 10;
    options.segment_bytes = 8 << 10;
    options.block_bytes = 512;
    options.history = HistoryLimits::last(HISTORY);
    DiskStore::open(FsDisk::new(dir).expect("a directory"), InlineIo::new(), options).expect("it opens")
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A copy that may be written to.
fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("shard-0000")).expect("made");
    for name in files() {
        fs::copy(golden(PRESENT).join(&name), dir.path().join(&name)).expect("copied");
    }
    dir
}

fn files() -> Vec<String> {
    let folder = fs::read_dir(golden(PRESENT).join("shard-0000")).expect("the shard");
    let names = folder.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.map(|name| format!("shard-0000/{name}")).collect();
    names.extend(["meta", "stamp"].map(str::to_owned));
    names.sort();
    names
}

#[test]
fn it_is_found_as_it_was_left() {
    let dir = copy();
    let expected = fs::read_to_string(golden(&format!("{PRESENT}.txt"))).expect("the listing");
    let mut store = open(dir.path());
    assert_eq!(listing::of(&mut store), expected);
    drop(store);
    // Nothing was written by that but what an opening makes ready.
    assert_eq!(listing::of(&mut open(dir.path())), expected);
}

/// The story: the version of today takes it over, changes each task that it finds, puts others, and is stopped and started.
#[test]
fn it_is_gone_on_with() {
    let dir = copy();
    let mut store = open(dir.path());
    let mut expected = conformance::contents(&mut store, HISTORY).expect("it reads");
    let mut seq = 0;
    for round in 0..4_u64 {
        let tasks = listing::tasks(&mut store);
        let mut owner = Owner::acquire(store);
        seq = owner.acquired.ownership.last_seq.0.max(seq);
        let with_lease: BTreeSet<u64> =
            tasks.iter().filter(|task| task.lease.is_some()).map(|task| task.id).collect();
        let leased: BTreeSet<u64> = owner.acquired.page.leased.iter().map(|task| task.id).collect();
        assert_eq!(leased, with_lease, "round {round}");
        let mut effects = Vec::new();
        for task in &tasks {
            seq += 1;
            let effect = if task.id % 4 == round {
                let (queue, key) = (task.queue.clone(), task.key.clone());
                let at = Timestamp::EPOCH;
                TaskEffect::Ended(Ended {
                    id: task.id,
                    queue,
                    key,
                    seq: Seq(seq),
                    at,
                    outcome: Outcome::Done(LeaseNo(9)),
                })
            } else {
                let mut changed = (**task).clone();
                (changed.seq, changed.attempts) = (Seq(seq), task.attempts + 1);
                TaskEffect::Stored { task: changed.into(), body_known: round % 2 == 0 }
            };
            effects.push(effect);
        }
        for id in 0..100 {
            seq += 1;
            let id = 10_000 * (round + 1) + id;
            let task = sample_task(id, seq, "new", &format!("k{id}"), maker::START_MS + id as i64);
            effects.push(TaskEffect::Stored { task: task.into(), body_known: false });
        }
        for effects in effects.chunks(8) {
            effects.iter().for_each(|effect| expected.apply(effect));
            let reply = owner.commit(effects.to_vec());
            assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
        }
        let mut before = owner.into_store();
        assert_eq!(conformance::contents(&mut before, HISTORY).as_ref(), Ok(&expected), "round {round}");
        drop(before);
        store = open(dir.path());
        assert_eq!(conformance::contents(&mut store, HISTORY).as_ref(), Ok(&expected), "round {round}");
    }
}

/// Only for things that are in the golden directory do the tests show that they can be read for ever.
#[test]
fn it_has_something_of_everything() {
    let mut found = BTreeSet::new();
    for name in files() {
        let bytes = fs::read(golden(PRESENT).join(&name)).expect("readable");
        let kind = String::from_utf8_lossy(&bytes[..8]).into_owned();
        match &*kind {
            "TWLOGFIL" => log_records(&bytes, &mut found),
            "TWSEGMNT" => {
                found.insert(format!("level {}", bytes[24]));
                let sections = bytes.windows(16).filter(|window| window.starts_with(b"TWsectio"));
                found.extend(sections.map(|tail| format!("section {}", tail[12])));
            }
            "TWCHECKP" => found.extend(listed(&bytes)),
            _ => {}
        }
        found.insert(kind);
    }
    let expected = [
        // The space for a note on a full disk.
        "\0\0\0\0\0\0\0\0",
        "TICKSTMP",
        "TICKWHEL",
        "TWCHECKP",
        "TWLOGFIL",
        "TWNEWEST",
        "TWSEGMNT",
        "level 0",
        "level 1",
        "level 2",
        "level 3",
        "level 4",
        "moved 0",
        "moved 1",
        "new file",
        "record 1",
        "record 2",
        "record 3",
        "record 4",
        "record 5",
        "recycled file",
        "section 1",
        "section 2",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let text = fs::read_to_string(golden(&format!("{PRESENT}.txt"))).expect("the listing");
    for member in [
        "acked",
        "attempts",
        "body_tag",
        "content_type",
        "dead Dead",
        "expire_at",
        "failure Failure",
        "group",
        "ids_reserved",
        "job 1700000000000",
        "rule settings/all",
        "lease ",
        "left_ms",
        "moment Moment",
        "lease_fence",
        "origin",
        "outcome cancelled",
        "outcome done",
        "outcome revoked",
        "payload",
        "priority",
        "retry Retry",
        "revoked",
        "trace",
        "ttr_ms",
    ] {
        assert!(text.contains(member), "no task has {member}");
    }
}

/// Whether the segments that a checkpoint lists, in its first block, were moved there.
fn listed(bytes: &[u8]) -> Vec<String> {
    let length = u32::from_le_bytes(bytes[64..68].try_into().expect("four bytes")) as usize;
    // Numbers of as many bytes as have the high bit, and one more.
    let numbers: Vec<&[u8]> = bytes[88..88 + length].split_inclusive(|byte| *byte < 128).collect();
    numbers.chunks(6).map(|segment| format!("moved {}", segment[3][0])).collect()
}

/// The tags of the records in the frames of a log file, and whether it was used before.
fn log_records(bytes: &[u8], found: &mut BTreeSet<String>) {
    let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    found.insert(if bytes[32] == 1 { "new file" } else { "recycled file" }.to_owned());
    let mut at = 4_096;
    while bytes
        .get(at..at + 72)
        .is_some_and(|head| head.starts_with(b"TWfr") && head[24..32] == bytes[16..24])
    {
        let end = at + 72 + length(at + 8);
        let mut record = at + 72;
        while record < end {
            found.insert(format!("record {}", bytes[record]));
            record += 5 + length(record + 1);
        }
        at = end.next_multiple_of(8);
    }
}
