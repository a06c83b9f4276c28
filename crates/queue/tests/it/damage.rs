//! A queue opens after its files were damaged while no process had it open.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tickwheel_queue::doctor::{Depth, examine_dir};
use tickwheel_queue::{Key, OpenError, Put, Queue, QueueName};

/// A virtual clock, so that no test waits; small files, so that there are many.
fn open(directory: &Path) -> Result<Queue, OpenError> {
    let options = Queue::options().virtual_clock().log_file_bytes(64 << 10).checkpoint_after_bytes(64 << 10);
    options.open(directory)
}

/// Makes a directory with a checkpoint and a segment of tasks that are due within seconds. No queue has it open.
fn stopped(directory: &Path) {
    let queue = open(directory).expect("it opens");
    let line = QueueName::new("close").expect("a good name");
    for n in 0..600 {
        let key = Key::new(&format!("k{n}")).expect("a good key");
        let put = Put::new(&line, key).after(Duration::from_secs(1 + n / 100)).payload(vec![b'x'; 300]);
        queue.put(put).wait().expect("taken");
    }
    queue.close();
}

fn files(directory: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("shard-0000")).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind)));
    files.sort();
    files
}

#[test]
fn a_damaged_record_of_a_task_that_is_due_soon_is_a_refusal_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    stopped(directory.path());
    let segment = files(directory.path(), "segment-").pop().expect("a checkpoint has made one");
    let mut bytes = fs::read(&segment).expect("readable");
    bytes[1_000] ^= 0x41;
    fs::write(&segment, bytes).expect("writable");
    let refused = open(directory.path()).expect_err("nobody could say what is ready").to_string();
    let name = segment.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(refused.contains(&name) && refused.contains("damaged at byte"), "{refused}");
    assert!(refused.contains("doctor --deep"), "{refused}");
}

#[test]
fn a_log_file_that_was_cut_short_is_a_refusal_and_no_torn_tail() {
    let directory = tempfile::tempdir().expect("a directory");
    stopped(directory.path());
    let needed = examine_dir(directory.path(), Depth::Records).expect("it is there").needed;
    let is_needed = |log: &PathBuf| needed.iter().any(|part| log.ends_with(&part.file));
    let logs: Vec<PathBuf> = files(directory.path(), "log-").into_iter().filter(is_needed).collect();
    assert!(!logs.is_empty());
    for log in logs {
        let whole = fs::read(&log).expect("readable");
        // Half of a copy, and a copy that broke off in the first frame: frames begin at byte 4,096 and their heads have 72.
        for length in [whole.len() / 2, 4_096 + 72 + 1] {
            fs::write(&log, &whole[..length]).expect("writable");
            let refused = open(directory.path()).err().map(|error| error.to_string());
            let examined = examine_dir(directory.path(), Depth::Records).expect("it is there");
            fs::write(&log, &whole).expect("writable");
            let name = log.file_name().expect("a name").to_string_lossy().into_owned();
            let refused = refused.unwrap_or_else(|| panic!("{name} has {length} bytes"));
            assert!(refused.contains(&name) && refused.contains("the file ends here"), "{refused}");
            assert!(!examined.problems.is_empty(), "{name}: the doctor finds it, too");
        }
    }
    open(directory.path()).expect("with all of them it is whole again").close();
}
