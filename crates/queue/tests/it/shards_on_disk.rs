//! A data directory of several shards.

use std::path::Path;
use std::time::Duration;

use tickwheel_queue::backup::{self, BackupWatch, Manifest, check_shards, identity};
use tickwheel_queue::{
    Ack, BackupError, Key, Lease, ListQueues, OpenError, Options, Put, Queue, QueueName, StoreError,
    TokenAnswer,
};
use tickwheel_store::doctor::{Depth, examine_dir};

fn names() -> Vec<QueueName> {
    (0..9).map(|n| QueueName::new(&format!("q{n}")).expect("a name")).collect()
}

fn key(key: &str) -> Key {
    Key::new(key).expect("a key")
}

fn opened(options: Options, directory: &Path) -> Queue {
    options.open(directory).expect("it opens")
}

fn refused(options: Options, directory: &Path) -> OpenError {
    options.open(directory).expect_err("it is refused")
}

/// Makes a directory of three shards with a task in each of nine queues.
fn made(directory: &Path) -> Vec<u64> {
    let queue = opened(Queue::options().shards(3), directory);
    let put = |name| queue.put(Put::new(name, key("k"))).wait().expect("put").task.id;
    names().iter().map(put).collect()
}

#[test]
fn a_directory_keeps_its_shards_and_their_tasks() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("data");
    let ids = made(&directory);
    let made_as = identity(&directory).expect("readable").expect("a data directory");
    // The number of shards is known from the directory.
    for round in 0..3_u64 {
        let queue = opened(Queue::options(), &directory);
        assert_eq!((queue.shards(), &*queue.opened().identity), (3, &*made_as));
        let recovery = queue.opened().recovery.clone().expect("a directory");
        assert_eq!((recovery.created, recovery.tasks), (false, 9 - 3 * round));
        let leased = queue.lease(Lease::of(names()).max(3), Duration::ZERO).wait().expect("leased");
        assert_eq!(leased.len(), 3);
        for leased in leased {
            assert!(ids.contains(&leased.id));
            let ack = Ack::new(&leased.queue, [leased.token]);
            assert_eq!(queue.ack(ack).wait().expect("acked"), [TokenAnswer::Acked]);
        }
        // A queue that was closed has left its directory, also while the value lives.
        queue.close();
        assert!(Queue::options().shards(3).open(&directory).is_ok(), "round {round}");
    }
    let queue = opened(Queue::options(), &directory);
    let page = queue.queues(ListQueues::default()).wait().expect("a page");
    assert!(page.queues.iter().all(|counts| counts.live() == 0));
}

#[test]
fn another_number_of_shards_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let many = place.path().join("many");
    made(&many);
    for (wanted, options) in [(1, Queue::options().shards(1)), (4, Queue::options().shards(4))] {
        let error = refused(options, &many);
        assert!(
            matches!(error, OpenError::Store(StoreError::OtherShards { found: 3, wanted: w }) if w == wanted),
            "{error}"
        );
        assert!(error.to_string().contains("made with 3 shards"), "{error}");
    }
    let one = place.path().join("one");
    drop(opened(Queue::options(), &one));
    let error = refused(Queue::options().shards(2), &one);
    assert!(matches!(error, OpenError::Store(StoreError::OtherShards { found: 1, wanted: 2 })), "{error}");
    drop(opened(Queue::options().shards(1), &one));
    for shards in [0, 1_025] {
        let error = refused(Queue::options().shards(shards), &place.path().join("none"));
        assert!(matches!(error, OpenError::Shards { .. }), "{error}");
        assert!(!place.path().join("none").exists());
    }
    let error = refused(Queue::options().virtual_clock(), &many);
    assert!(matches!(error, OpenError::Store(StoreError::WrongClock { .. })), "{error}");
}

#[test]
fn the_directory_of_one_shard_is_not_opened_alone() {
    let place = tempfile::tempdir().expect("a directory");
    made(place.path());
    let error = refused(Queue::options(), &place.path().join("0001"));
    assert!(error.to_string().contains("shard 1 of 3") && error.to_string().contains("`shards`"), "{error}");
    // Two directories of shards that changed their places.
    let folder = |name: &str| place.path().join(name);
    std::fs::rename(folder("0001"), folder("x")).expect("renamed");
    std::fs::rename(folder("0002"), folder("0001")).expect("renamed");
    std::fs::rename(folder("x"), folder("0002")).expect("renamed");
    let error = refused(Queue::options(), place.path());
    let said = error.to_string();
    assert!(
        said.contains("shard 1 of 3, in the folder `0001`") && said.contains("has shard 2 of 3"),
        "{said}"
    );
}

#[test]
fn a_missing_shard_is_refused_and_nothing_is_made_in_its_place() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("data");
    made(&directory);
    std::fs::rename(directory.join("0002"), place.path().join("taken")).expect("renamed");
    let said = refused(Queue::options(), &directory).to_string();
    assert!(said.contains("0002") && said.contains("shard 2 of 3"), "{said}");
    assert!(!directory.join("0002").exists());
    std::fs::rename(place.path().join("taken"), directory.join("0002")).expect("renamed");
    drop(opened(Queue::options(), &directory));
}

/// The making ends early, as in a crash: the root is there, and the directories of some shards are.
#[test]
fn a_making_that_was_interrupted_goes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("data");
    let mut options = tickwheel_store::StoreOptions::new([7; 16]);
    options.clock = tickwheel_store::ClockMode::Real;
    let root = tickwheel_store::Root::open(&directory, Some(3), &options).expect("made").expect("several");
    let (first, folder) = root.directories().next().expect("the first shard");
    options.shard = first;
    drop(tickwheel_store::DiskStore::open_dir(&folder, options, Box::new(|| {})).expect("made"));
    drop(root);
    assert!(directory.join("0000/meta").exists() && !directory.join("0001").exists());
    let error = refused(Queue::options().shards(2), &directory);
    assert!(matches!(error, OpenError::Store(StoreError::OtherShards { found: 3, wanted: 2 })), "{error}");
    assert_eq!(opened(Queue::options(), &directory).shards(), 3);
    assert!(directory.join("0002/meta").exists());
}

#[test]
fn the_rest_of_an_interrupted_write_is_removed() {
    let place = tempfile::tempdir().expect("a directory");
    made(place.path());
    for file in ["shards.tmp", "0001/meta.tmp"] {
        std::fs::write(place.path().join(file), b"half").expect("written");
    }
    let found = examine_dir(place.path(), Depth::Opening).expect("readable");
    assert_eq!(
        (found.is_in_order(), &found.not_needed[..]),
        (true, &["shards.tmp", "0001/meta.tmp"].map(String::from)[..])
    );
    drop(opened(Queue::options(), place.path()));
    assert!(!place.path().join("shards.tmp").exists() && !place.path().join("0001/meta.tmp").exists());
}

#[test]
fn a_place_of_another_program_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("0001"), b"a file").expect("written");
    let error = refused(Queue::options().shards(3), place.path());
    assert!(matches!(error, OpenError::Store(StoreError::Foreign { .. })), "{error}");
    assert!(!place.path().join("shards").exists());
}

#[test]
fn a_process_has_the_whole_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let queue = opened(Queue::options().shards(3), place.path());
    let error = refused(Queue::options(), place.path());
    assert!(matches!(error, OpenError::Store(StoreError::Locked { .. })), "{error}");
    drop(queue);
    drop(opened(Queue::options(), place.path()));
}

#[test]
fn damage_of_the_root_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    made(place.path());
    let file = place.path().join("shards");
    let bytes = std::fs::read(&file).expect("readable");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&file, damaged).expect("written");
        let said = refused(Queue::options(), place.path()).to_string();
        assert!(said.contains("shards"), "byte {at}: {said}");
    }
    std::fs::write(&file, &bytes[..40]).expect("written");
    refused(Queue::options(), place.path());
    // Without the file, the place is not taken for a new directory.
    std::fs::remove_file(&file).expect("removed");
    refused(Queue::options(), place.path());
    refused(Queue::options().shards(3), place.path());
    std::fs::write(&file, &bytes).expect("written");
    drop(opened(Queue::options(), place.path()));
}

/// Returns the queues that have a task.
fn tasks(directory: &Path) -> Vec<QueueName> {
    let queue = opened(Queue::options(), directory);
    let page = queue.queues(ListQueues::default()).wait().expect("a page");
    page.queues.iter().filter(|counts| counts.live() == 1).map(|counts| counts.queue.clone()).collect()
}

#[test]
fn a_copy_of_a_running_queue_has_all_shards() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    let queue = opened(Queue::options(), &at("data"));
    let report = queue.backup(at("quick")).expect("copied");
    assert!(report.files >= 9 && report.as_of.is_some(), "{report:?}");
    let watch = BackupWatch::new();
    let report = queue.backup_gently(at("gentle"), &watch).expect("copied");
    assert_eq!((report.tasks, report.dead, report.queues), (Some(9), Some(0), Some(9)));
    let progress = watch.progress();
    // The files `shards` and `stamp` and the manifests of the three shards are files of the backup, too.
    assert_eq!((progress.copied, progress.files + 5), (progress.bytes, report.files));
    assert!(matches!(queue.backup(at("quick")), Err(BackupError::NotEmpty { .. })));
    let stopped = BackupWatch::new();
    stopped.stop();
    assert!(matches!(queue.backup_gently(at("stopped"), &stopped), Err(BackupError::Stopped)));
    assert!(!at("stopped").exists() && !at("stopped.unfinished").exists());
    drop(queue);
    let manifest = check_shards(&at("gentle"), true).expect("in order").expect("a manifest");
    assert_eq!(manifest.directory(), identity(&at("data")).expect("readable").as_deref());
    assert_eq!((manifest.report().tasks, manifest.as_of()), (Some(9), report.as_of));
    let restored = backup::restore(&at("gentle"), &at("restored")).expect("restored");
    assert_eq!((restored.tasks, restored.as_of), (Some(9), report.as_of));
    for directory in ["quick", "gentle", "restored"] {
        assert_eq!(identity(&at(directory)).expect("readable"), identity(&at("data")).expect("readable"));
        assert_eq!(tasks(&at(directory)), names(), "{directory}");
        assert!(!at(directory).join("0001").join(Manifest::FILE).exists(), "it is no backup any more");
    }
}

#[test]
fn a_copy_of_a_stopped_directory_has_all_shards() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    let queue = opened(Queue::options(), &at("data"));
    assert!(matches!(backup::backup(&at("data"), &at("copy")), Err(BackupError::InUse { .. })));
    drop(queue);
    let report = backup::backup(&at("data"), &at("copy")).expect("copied");
    assert_eq!((report.tasks, report.queues), (Some(9), Some(9)));
    assert_eq!(check_shards(&at("data"), true).expect("no backup"), None);
    assert_eq!(tasks(&at("data")), names());
    backup::restore(&at("copy"), &at("restored")).expect("restored");
    assert_eq!(tasks(&at("restored")), names());
    // A copy of a copy that lost a shard on its way.
    std::fs::rename(at("copy/0001"), at("taken")).expect("renamed");
    backup::restore(&at("copy"), &at("other")).expect_err("a shard is missing");
    assert!(!at("other").exists() && !at("other.unfinished").exists());
    check_shards(&at("copy"), false).expect_err("a shard is missing");
    std::fs::rename(at("taken"), at("copy/0001")).expect("renamed");
    // A shard of another backup in the place of this one's.
    made(&at("second"));
    backup::backup(&at("second"), &at("second-copy")).expect("copied");
    std::fs::rename(at("copy/0001"), at("taken")).expect("renamed");
    std::fs::rename(at("second-copy/0001"), at("copy/0001")).expect("renamed");
    let error = backup::restore(&at("copy"), &at("other")).expect_err("a foreign shard");
    assert!(matches!(error, BackupError::Differs { .. }), "{error}");
    std::fs::rename(at("copy/0001"), at("second-copy/0001")).expect("renamed");
    std::fs::rename(at("taken"), at("copy/0001")).expect("renamed");
    std::fs::write(at("copy/notes"), b"x").expect("written");
    let error = backup::restore(&at("copy"), &at("other")).expect_err("a foreign file");
    assert!(matches!(error, BackupError::Foreign { .. }), "{error}");
    std::fs::remove_file(at("copy/notes")).expect("removed");
    std::fs::write(at("copy/unfinished"), b"x").expect("written");
    let error = backup::restore(&at("copy"), &at("other")).expect_err("an unfinished copy");
    assert!(matches!(error, BackupError::Unfinished { .. }), "{error}");
    let error = refused(Queue::options(), &at("copy"));
    assert!(matches!(error, OpenError::Store(StoreError::Unfinished)), "{error}");
}
