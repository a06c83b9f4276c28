//! The notices that a queue gives its operator.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tickwheel_queue::{
    Key, Notice, OpenError, Options, Put, PutError, Queue, QueueName, Seq, StoreError, Unavailable,
};

fn opened(options: Options, directory: &Path) -> (Queue, Receiver<Notice>) {
    let (tell, told) = channel();
    let queue = options.on_notice(move |notice| drop(tell.send(notice))).open(directory);
    (queue.expect("a directory opens"), told)
}

/// No disk is so slow, so no commit is told as slow.
fn quiet() -> Options {
    Queue::options().slow_commit(Duration::from_secs(3_600))
}

fn put(queue: &Queue, key: &str) -> Result<Seq, PutError> {
    let name = QueueName::new("q").expect("a name");
    let put = Put::new(&name, Key::new(key).expect("a key")).after(Duration::from_secs(3_600));
    queue.put(put).wait().map(|stored| stored.task.version)
}

/// The story: the lock file was removed under a running server, and a second one took the directory. What the first one acknowledged then
/// was lost.
#[test]
fn a_queue_whose_lock_is_taken_away_changes_nothing_any_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let (queue, told) = opened(quiet(), directory.path());
    put(&queue, "a").expect("taken");
    fs::remove_file(directory.path().join("lock")).expect("removed");
    let removed = Instant::now();
    let second = Queue::open(directory.path());
    assert!(matches!(second, Err(OpenError::Store(StoreError::Locked { .. }))), "{:?}", second.err());
    let Notice::ReadOnly { why } = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("it is told")
    else {
        panic!("another notice")
    };
    assert!(why.contains("lock: another file is in its place"), "{why}");
    let refused = put(&queue, "b");
    assert!(matches!(refused, Err(PutError::Unavailable(Unavailable::ReadOnly { .. }))), "{refused:?}");
    assert_eq!(queue.health().read_only.as_deref(), Some(&*why));
    assert!(removed.elapsed() < tickwheel_testing::HANG_TIME, "it does not wait for a put");
    queue.close();
    let third = Queue::open(directory.path()).expect("it is free now");
    assert!(put(&third, "a").is_ok(), "and goes on with what there was");
}

#[test]
fn a_slow_commit_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let (queue, told) = opened(Queue::options().slow_commit(Duration::from_nanos(1)), directory.path());
    // A commit that begins and ends in one turn of the shard takes no time by the clock of the shard, so it is not slow.
    let slow = loop {
        put(&queue, "a").expect("taken");
        match told.recv_timeout(Duration::from_millis(1)) {
            Err(RecvTimeoutError::Timeout) => {}
            slow => break slow.expect("it is told"),
        }
    };
    assert!(matches!(slow, Notice::CommitSlow { .. } | Notice::CommitWaits { .. }), "{slow:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let (queue, told) = opened(quiet(), directory.path());
    put(&queue, "a").expect("taken");
    drop(queue);
    assert_eq!(
        told.recv_timeout(Duration::ZERO),
        Err(RecvTimeoutError::Disconnected),
        "all is well, and nothing is told"
    );
}

#[test]
fn an_opening_says_what_it_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let (queue, _told) = opened(Queue::options(), directory.path());
    let made = queue.opened().recovery.clone().expect("a directory");
    assert!(made.created && made.tasks == 0, "{made:?}");
    put(&queue, "a").expect("taken");
    drop(queue);
    let (queue, _told) = opened(Queue::options(), directory.path());
    let found = queue.opened().recovery.clone().expect("a directory");
    assert!(!found.created && found.tasks == 1 && found.frames > 0, "{found:?}");
    assert_eq!(Queue::options().open_memory().expect("a queue").opened().recovery, None);
}

/// One commit has more log than four checkpoints want.
#[test]
fn a_checkpoint_that_is_late_is_told_and_its_end_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let (queue, told) = opened(quiet().checkpoint_after_bytes(4_096), directory.path());
    let name = QueueName::new("q").expect("a name");
    let large = Put::new(&name, Key::new("a").expect("a key")).payload(vec![1; 1 << 16]);
    queue.put(large.after(Duration::from_secs(3_600))).wait().expect("taken");
    let late = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("it is told");
    assert!(matches!(late, Notice::CheckpointLate { log_bytes } if log_bytes > 4 * 4_096), "{late:?}");
    assert_eq!(told.recv_timeout(tickwheel_testing::HANG_TIME), Ok(Notice::CheckpointDone));
}
