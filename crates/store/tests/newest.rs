//! A log file that somebody deletes is missed, the newest one too.

use std::fs;
use std::path::Path;

use tickwheel_engine::{Reply, TaskEffect};
use tickwheel_store::conformance::{self, Owner, sample_task};
use tickwheel_store::{DiskStore, FsDisk, InlineIo, OpenError, StoreOptions};

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

/// Commits so many tasks one by one, and then the process is gone.
fn filled(path: &Path, tasks: u64, checkpoint_after_bytes: u64) {
    let mut owner = Owner::acquire(open(path, checkpoint_after_bytes).expect("it opens"));
    let first = owner.next_seq();
    for n in first..first + tasks {
        let task = sample_task(n, n, "q", &format!("k{n}"), 5);
        let reply = owner.commit(vec![TaskEffect::Stored { task: task.into(), body_known: false }]);
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }
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

/// What the note says: the generation, and the number of the file.
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
            let newest = format!("shard-0000/log-{:08}", noted(dir.path()).1);
            for log in logs(dir.path()) {
                let story =
                    format!("{tasks} tasks, a checkpoint after {checkpoint_after_bytes}, without {log}");
                let without = copy(dir.path());
                fs::remove_file(without.path().join(&log)).expect("removed");
                match open(without.path(), checkpoint_after_bytes) {
                    Ok(mut store) => {
                        assert_ne!(log, newest, "{story}");
                        assert_eq!(conformance::contents(&mut store, 0).as_ref(), Ok(&expected), "{story}");
                        harmless += 1;
                    }
                    Err(OpenError::Corrupt { file, what, .. }) => {
                        if log == newest {
                            assert!(
                                file == log && what.contains("the file is missing"),
                                "{story}: {file}: {what}"
                            );
                        }
                        assert!(!without.path().join(&log).exists(), "{story}: nothing was made");
                        refused += 1;
                    }
                    Err(error) => panic!("{story}: {error}"),
                }
            }
        }
    }
    assert!(refused > 50 && harmless > 0, "{refused} refused and {harmless} harmless: not much was tried");
}

#[test]
fn a_newest_file_that_was_emptied_or_replaced_is_missed() {
    let dir = tempfile::tempdir().expect("a directory");
    filled(dir.path(), 120, u64::MAX);
    let all = logs(dir.path());
    let newest = format!("shard-0000/log-{:08}", noted(dir.path()).1);
    let other = all.iter().find(|log| **log != newest).expect("several");
    for content in [Vec::new(), vec![0; 16 << 10], fs::read(dir.path().join(other)).expect("readable")] {
        let damaged = copy(dir.path());
        fs::write(damaged.path().join(&newest), content).expect("written");
        let error = open(damaged.path(), u64::MAX).expect_err("its frames are gone").to_string();
        assert!(error.contains(&newest) && error.contains("generation"), "{error}");
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
