//! The store misses a log file that an operator deletes, also the newest one.

use std::fs;
use std::ops::Range;
use std::path::Path;

use tickwheel_engine::{Reply, TaskEffect};
use tickwheel_store::conformance::{self, Owner, sample_task};
use tickwheel_store::doctor::{Depth, examine_dir};
use tickwheel_store::{AckLevel, DiskStore, FsDisk, InlineIo, OpenError, StoreOptions, Table};

type Store = DiskStore<FsDisk, InlineIo<FsDisk>>;

/// Small files, and checkpoints as rare as the case says.
fn options(checkpoint_after_bytes: u64) -> StoreOptions {
    let mut options = StoreOptions::new([6; 16]);
    options.log_file_bytes = 16 << 10;
    options.background_step_bytes = 16 << 10;
    options.checkpoint_after_bytes = checkpoint_after_bytes;
    options
}

fn open(path: &Path, checkpoint_after_bytes: u64) -> Result<Store, OpenError> {
    DiskStore::open(FsDisk::new(path).expect("a directory"), InlineIo::new(), options(checkpoint_after_bytes))
}

/// Commits this number of tasks one by one, and then the process is gone.
fn filled(path: &Path, tasks: u64, checkpoint_after_bytes: u64) {
    commit_each(open(path, checkpoint_after_bytes).expect("it opens"), tasks);
}

fn commit_each(store: Store, tasks: u64) {
    let mut owner = Owner::acquire(store);
    let first = owner.next_seq();
    for n in first..first + tasks {
        commit(&mut owner, n..n + 1);
    }
}

/// One commit of these tasks.
fn commit(owner: &mut Owner<Store>, tasks: Range<u64>) {
    let stored = |n| {
        let task = sample_task(n, n, "q", &format!("k{n}"), 5);
        TaskEffect::Stored { task: task.into(), body_known: false }
    };
    let reply = owner.commit(tasks.map(stored).collect());
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().expect("a directory");
    fs::create_dir(to.path().join("shard-0000")).expect("made");
    for name in names(from) {
        fs::copy(from.join(&name), to.path().join(&name)).expect("copied");
    }
    to
}

fn names(dir: &Path) -> Vec<String> {
    let folder = fs::read_dir(dir.join("shard-0000")).expect("the shard");
    let names = folder.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.map(|name| format!("shard-0000/{name}")).collect();
    names.sort();
    names.push("meta".to_owned());
    names
}

fn logs(dir: &Path) -> Vec<String> {
    names(dir).into_iter().filter(|name| name.contains("/log-")).collect()
}

/// The contents of the note: the generation, and the number of the file.
fn noted(dir: &Path) -> (u64, u64) {
    let bytes = fs::read(dir.join("shard-0000/newest-log")).expect("the note");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    (number(16), number(24))
}

/// The story: the newest log file was deleted, no checkpoint was newer, and the server started without a word and without the tasks of
/// that file. Each number of commits leaves the next file in another state: not there, half made, ready, in use.
#[test]
fn each_log_file_that_is_deleted_is_missed_or_was_not_needed() {
    let (mut refused, mut harmless) = (0, 0);
    for tasks in (0..240).step_by(13) {
        for checkpoint_after_bytes in [20 << 10, u64::MAX] {
            let dir = tempfile::tempdir().expect("a directory");
            filled(dir.path(), tasks, checkpoint_after_bytes);
            let whole = copy(dir.path());
            let mut store = open(whole.path(), checkpoint_after_bytes).expect("it opens");
            let expected = conformance::contents(&mut store, 0).expect("it reads");
            let story = format!("{tasks} tasks, a checkpoint after {checkpoint_after_bytes}");
            let newest = format!("shard-0000/log-{:08}", noted(dir.path()).1);
            for log in logs(dir.path()) {
                let is_refused = opens_without(dir.path(), &log, checkpoint_after_bytes, &expected, &story);
                assert!(is_refused || log != newest, "{story}");
                if is_refused { refused += 1 } else { harmless += 1 }
            }
        }
    }
    assert!(refused > 50 && harmless > 0, "{refused} refused and {harmless} harmless: not much was tried");
}

/// Whether a copy without this file is refused, by the file's name. If it is not, it has all tasks.
fn opens_without(dir: &Path, log: &str, checkpoint_after_bytes: u64, expected: &Table, story: &str) -> bool {
    let without = copy(dir);
    fs::remove_file(without.path().join(log)).expect("removed");
    match open(without.path(), checkpoint_after_bytes) {
        Ok(mut store) => {
            let found = conformance::contents(&mut store, 0);
            assert_eq!(found.as_ref(), Ok(expected), "{story}, without {log}");
            false
        }
        Err(OpenError::Corrupt { file, what, .. }) => {
            let is_named = file == log && what.contains("the file is missing");
            assert!(is_named, "{story}, without {log}: {file}: {what}");
            assert!(!without.path().join(log).exists(), "{story}: {log} was made");
            true
        }
        Err(error) => panic!("{story}, without {log}: {error}"),
    }
}

/// The story: one commit was all that a log file had. The process was killed, and the next one was killed before its first frame. The note
/// named the file that the next one had made ready. Then the file with the commit was deleted, and the server started without it.
#[test]
fn the_file_before_a_new_one_without_frames_is_missed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut owner = Owner::acquire(open(dir.path(), u64::MAX).expect("it opens"));
    // Each of these is larger than a file, and gets one of its own.
    (0..3).for_each(|n| commit(&mut owner, 400 * n + 1..400 * n + 401));
    drop(owner);
    for openings in 0..3 {
        let whole = copy(dir.path());
        let mut store = open(whole.path(), u64::MAX).expect("it opens");
        let expected = conformance::contents(&mut store, 0).expect("it reads");
        let story = format!("after {openings} openings");
        let refused = logs(dir.path())
            .iter()
            .filter(|log| opens_without(dir.path(), log, u64::MAX, &expected, &story))
            .count();
        assert!(refused >= 4, "{story}: {refused} files are missed, and four have frames");
        drop(open(dir.path(), u64::MAX).expect("it opens"));
    }
}

/// A commit at these levels does not wait for a sync, so its frame does not say that the one before it was synced.
#[test]
fn a_log_file_is_missed_at_each_level() {
    for level in [AckLevel::Os, AckLevel::Memory] {
        let dir = tempfile::tempdir().expect("a directory");
        let options = StoreOptions { ack_level: level, ..options(u64::MAX) };
        let disk = FsDisk::new(dir.path()).expect("a directory");
        let mut owner = Owner::acquire(DiskStore::open(disk, InlineIo::new(), options).expect("it opens"));
        for n in 1..200 {
            commit(&mut owner, n..n + 1);
        }
        drop(owner);
        let whole = copy(dir.path());
        let mut store = open(whole.path(), u64::MAX).expect("it opens");
        let expected = conformance::contents(&mut store, 0).expect("it reads");
        for log in logs(dir.path()) {
            let refused = opens_without(dir.path(), &log, u64::MAX, &expected, &format!("at level {level}"));
            assert!(refused, "at level {level} {log} is not missed");
        }
    }
}

/// Several at once are missed too: the one that is named is the newest of them.
#[test]
fn log_files_that_are_deleted_together_are_missed() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), 200, u64::MAX);
    let all = logs(dir.path());
    assert!(all.len() > 3, "{all:?}");
    for from in 0..all.len() {
        for to in from + 1..=all.len() {
            let without = copy(dir.path());
            all[from..to].iter().for_each(|log| fs::remove_file(without.path().join(log)).expect("removed"));
            let OpenError::Corrupt { file, what, .. } =
                open(without.path(), u64::MAX).expect_err("their frames are gone")
            else {
                panic!("another reason without {from} to {to}")
            };
            assert!(what.contains("missing"), "{file}: {what}");
        }
    }
}

#[test]
fn a_file_that_was_emptied_or_replaced_is_missed() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), 120, u64::MAX);
    let all = logs(dir.path());
    for (at, log) in all.iter().enumerate() {
        let other = fs::read(dir.path().join(&all[(at + 1) % all.len()])).expect("readable");
        for content in [Vec::new(), vec![0; 16 << 10], other] {
            let damaged = copy(dir.path());
            fs::write(damaged.path().join(log), content).expect("written");
            let error = open(damaged.path(), u64::MAX).expect_err("its frames are gone").to_string();
            assert!(error.contains(log) && error.contains("generation"), "{error}");
        }
    }
}

#[test]
fn a_note_that_is_missing_or_damaged_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), 10, u64::MAX);
    let note = dir.path().join("shard-0000/newest-log");
    let whole = fs::read(&note).expect("the note");
    fs::remove_file(&note).expect("removed");
    let error = open(dir.path(), u64::MAX).expect_err("it is missing").to_string();
    assert!(error.contains("newest-log") && error.contains("it is missing"), "{error}");
    for at in [0, 9, 17, 25, 33, 63] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        fs::write(&note, damaged).expect("written");
        let error = open(dir.path(), u64::MAX).expect_err("it is damaged").to_string();
        assert!(error.contains("newest-log"), "{error}");
    }
    fs::write(&note, whole).expect("written");
    drop(open(dir.path(), u64::MAX).expect("it is whole again"));
}

/// Opening again and again makes files ready that are never used, and none of them is missed.
#[test]
fn the_note_follows_each_opening() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), 60, u64::MAX);
    let mut last = noted(dir.path()).0;
    for round in 0..5 {
        drop(open(dir.path(), u64::MAX).expect("it opens"));
        let (generation, number) = noted(dir.path());
        assert!(generation > last, "round {round}: {generation} after {last}");
        assert!(logs(dir.path()).contains(&format!("shard-0000/log-{number:08}")), "round {round}");
        last = generation;
        if round % 2 == 0 {
            filled(dir.path(), 3, u64::MAX);
            last = noted(dir.path()).0;
        }
    }
}

/// The story: an operator deleted the checkpoint. The server blamed a log file that was in order and had been used again since. If the
/// store cannot tell this case from a missing log file, it names both.
#[test]
fn a_missing_checkpoint_is_named_and_no_log_file_is_blamed_for_it() {
    let (mut certain, mut both) = (0, 0);
    for tasks in (60..600).step_by(60) {
        let dir = tempfile::tempdir().expect("a directory");
        filled(dir.path(), tasks, 20 << 10);
        let Some(checkpoint) = names(dir.path()).into_iter().find(|name| name.contains("/checkpoint-"))
        else {
            continue;
        };
        fs::remove_file(dir.path().join(checkpoint)).expect("removed");
        let (file, what) = match open(dir.path(), 20 << 10) {
            Err(OpenError::Corrupt { file, what, .. }) => (file, what),
            Err(error) => panic!("{tasks} tasks: {error}"),
            Ok(store) => {
                // No log file was used again yet, so the log has everything.
                assert_eq!(store.len() as u64, tasks);
                continue;
            }
        };
        assert!(what.contains("checkpoint"), "{tasks} tasks: {file}: {what}");
        if file == "shard-0000" {
            assert!(what.contains("its checkpoint is missing"), "{what}");
            certain += 1;
        } else {
            assert!(
                !dir.path().join(&file).exists(),
                "{tasks} tasks: {file} is there, and is blamed: {what}"
            );
            both += 1;
        }
        let problems = examine_dir(dir.path(), Depth::Records).expect("it is there").problems;
        assert!(problems[0].what.contains("checkpoint"), "{problems:#?}");
    }
    assert!(certain > 0, "{certain} certain, {both} not");
}
