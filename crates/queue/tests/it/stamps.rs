//! The stamps of a data directory: the folder of a shard that was replaced by a copy of another moment is noticed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tickwheel_queue::backup::{self, BackupWatch};
use tickwheel_queue::doctor::{Depth, examine_dir};
use tickwheel_queue::{BackupError, Key, ListQueues, OpenError, Put, Queue, QueueName, StoreError};

const SHARDS: [u32; 2] = [1, 4];

fn open(shards: u32, directory: &Path) -> Result<Queue, OpenError> {
    Queue::options().shards(shards).log_file_bytes(64 << 10).open(directory)
}

fn opened(shards: u32, directory: &Path) -> Queue {
    open(shards, directory).expect("it opens")
}

/// The folder that is replaced: that of the only shard, or of one of four.
fn folder(shards: u32) -> &'static str {
    if shards == 1 { "shard-0000" } else { "0002" }
}

/// The stamp in that folder.
fn stamp(shards: u32) -> &'static str {
    if shards == 1 { "shard-0000/stamp" } else { "0002/shard-0000/stamp" }
}

/// Puts a task with this key into each of 16 queues, so that each of four shards gets one.
fn put_all(queue: &Queue, key: &str) {
    for n in 0..16 {
        let line = QueueName::new(&format!("q{n}")).expect("a name");
        let put = Put::new(&line, Key::new(key).expect("a key")).after(Duration::from_secs(3_600));
        queue.put(put).wait().expect("put");
    }
}

/// Opens the directory, puts a task into each queue, and closes it.
fn run(shards: u32, directory: &Path, key: &str) {
    put_all(&opened(shards, directory), key);
}

fn tasks(shards: u32, directory: &Path) -> u64 {
    let queue = opened(shards, directory);
    let page = queue.queues(ListQueues::default()).wait().expect("a page");
    page.queues.iter().map(|counts| counts.live()).sum()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copied");
        }
    }
}

/// Puts a copy in the place of a folder.
fn replace(folder: &Path, by: &Path) {
    fs::remove_dir_all(folder).expect("removed");
    copy(by, folder);
}

/// Returns the bytes of all files of a directory, except for those that are locked.
fn bytes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(bytes(&path));
        } else if !path.ends_with("lock") {
            let content = fs::read(&path).expect("read");
            files.insert(path, content);
        }
    }
    files
}

/// Checks that a start refuses the directory, names the folder and changes nothing, and that `doctor` says the same and changes nothing.
fn refuses(shards: u32, directory: &Path, folder: &str, told: &str) {
    let before = bytes(directory);
    let refused = open(shards, directory).expect_err("it is of another moment");
    let text = refused.to_string();
    assert!(text.contains(&format!("{folder}: ")) && text.contains(told), "{text}");
    assert!(text.contains("rm DIR/stamp"), "{text}");
    let found = examine_dir(directory, Depth::Records).expect("it is there");
    let [problem] = &found.problems[..] else { panic!("one problem: {:?}", found.problems) };
    assert!(problem.file == *folder && problem.what.contains(told) && !problem.is_damage(), "{problem}");
    assert_eq!(bytes(directory), before, "nothing was changed");
}

#[test]
fn a_folder_that_an_older_copy_of_itself_replaced_is_refused() {
    for shards in SHARDS {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        let (data, kept) = (at("data"), at("kept"));
        run(shards, &data, "a");
        let own = data.join(folder(shards));
        copy(&own, &at("stopped-1"));
        let queue = opened(shards, &data);
        copy(&own, &at("running-2"));
        put_all(&queue, "b");
        drop(queue);
        copy(&own, &at("stopped-2"));
        // The close has renewed the stamps, so a copy of the running queue is refused before the next start, too.
        replace(&own, &at("running-2"));
        refuses(shards, &data, folder(shards), "the folder has the stamp ");
        replace(&own, &at("stopped-2"));
        run(shards, &data, "c");
        copy(&own, &kept);
        for older in ["stopped-2", "running-2", "stopped-1"] {
            replace(&own, &at(older));
            refuses(shards, &data, folder(shards), "the folder has the stamp ");
        }
        replace(&own, &kept);
        assert_eq!(tasks(shards, &data), 48, "the folder that was here is taken");
        // By now it is itself of another moment.
        replace(&own, &kept);
        refuses(shards, &data, folder(shards), "another moment");
        let report = backup::salvage(&data, &at("saved"), &mut |_| {}).expect("it can be read");
        let note = format!("{}: the folder has the stamp ", stamp(shards).trim_end_matches("/stamp"));
        let is_told =
            |text: &String| text.starts_with(&note) || text.starts_with(&format!("{}: ", folder(shards)));
        assert!(report.notes.iter().any(is_told), "{:?}", report.notes);
        // The owner knows better, and does what the error says.
        fs::remove_file(data.join("stamp")).expect("removed");
        assert_eq!(tasks(shards, &data), 48);
        assert_eq!(tasks(shards, &data), 48, "it has new stamps");
    }
}

/// A directory that is copied while nothing is under way is as a crash leaves it.
#[test]
fn after_a_crash_a_directory_opens_and_a_folder_of_before_is_refused() {
    for shards in SHARDS {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        run(shards, &at("data"), "a");
        let older = at("older");
        copy(&at("data").join(folder(shards)), &older);
        let queue = opened(shards, &at("data"));
        put_all(&queue, "b");
        copy(&at("data"), &at("crashed"));
        copy(&at("data"), &at("mixed"));
        drop(queue);
        assert_eq!(tasks(shards, &at("crashed")), 32);
        replace(&at("mixed").join(folder(shards)), &older);
        refuses(shards, &at("mixed"), folder(shards), "the folder has the stamp ");
        // The folder of the crashed process is not that of the next start.
        replace(&at("crashed").join(folder(shards)), &at("data").join(folder(shards)));
        refuses(shards, &at("crashed"), folder(shards), "the folder has the stamp ");
    }
}

#[test]
fn a_missing_stamp_is_told_and_a_directory_of_before_gets_stamps() {
    for shards in SHARDS {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        run(shards, &data, "a");
        let stamps: Vec<PathBuf> = bytes(&data).into_keys().filter(|path| path.ends_with("stamp")).collect();
        assert_eq!(stamps.len(), shards as usize + 1, "the root has one, and each shard");
        fs::remove_file(data.join(stamp(shards))).expect("removed");
        refuses(shards, &data, folder(shards), "the folder has no stamp");
        for stamp in &stamps {
            let _gone = fs::remove_file(stamp);
        }
        // A file that a crash left of a write is removed.
        for stamp in &stamps {
            fs::write(stamp.with_extension("tmp"), b"half").expect("written");
        }
        let found = examine_dir(&data, Depth::Records).expect("it is there");
        assert_eq!(
            (found.is_in_order(), found.not_needed.len(), found.not_ours),
            (true, stamps.len(), vec![])
        );
        assert_eq!(tasks(shards, &data), 16);
        let files = bytes(&data);
        assert!(stamps.iter().all(|stamp| files.contains_key(stamp)));
        assert!(!files.keys().any(|path| path.ends_with("stamp.tmp")));
        let found = examine_dir(&data, Depth::Records).expect("it is there");
        assert!(found.is_in_order() && found.not_ours.is_empty() && found.not_needed.is_empty(), "{found:?}");
        let older = fs::read(data.join(stamp(shards))).expect("read");
        run(shards, &data, "b");
        fs::write(data.join(stamp(shards)), older).expect("written");
        refuses(shards, &data, folder(shards), "the folder has the stamp ");
    }
}

#[test]
fn backups_open_and_their_folders_are_not_mixed() {
    for shards in SHARDS {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        let queue = opened(shards, &at("data"));
        put_all(&queue, "a");
        queue.backup(at("quick")).expect("copied");
        queue.backup_gently(at("gentle"), &BackupWatch::new()).expect("copied");
        copy(&at("data"), &at("crashed"));
        drop(queue);
        backup::backup(&at("data"), &at("cold")).expect("copied");
        // The folder of a backup in the place of one of the directory that it was made of, and of one of another backup.
        for (name, from) in [("crashed", "quick"), ("gentle", "quick"), ("quick", "cold")] {
            let mixed = at(&format!("{name}-{from}"));
            copy(&at(name), &mixed);
            replace(&mixed.join(folder(shards)), &at(from).join(folder(shards)));
            refuses(shards, &mixed, folder(shards), "the folder has the stamp ");
            let refused = backup::restore(&mixed, &at("none"));
            assert!(matches!(refused, Err(BackupError::Damaged { .. } | BackupError::Differs { .. })));
            assert!(!at("none").exists());
        }
        for name in ["quick", "gentle", "cold"] {
            let restored = at(&format!("{name}-restored"));
            backup::restore(&at(name), &restored).expect("restored");
            for directory in [&restored, &at(name)] {
                assert_eq!(tasks(shards, directory), 16, "{}", directory.display());
                assert_eq!(tasks(shards, directory), 16, "{}", directory.display());
            }
        }
    }
}

#[test]
fn a_root_without_its_file_shards_is_told_where_to_get_it() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    run(4, &at("data"), "a");
    backup::backup(&at("data"), &at("backup")).expect("copied");
    fs::remove_file(at("data").join("shards")).expect("removed");
    let before = bytes(&at("data"));
    for options in [Queue::options(), Queue::options().shards(4)] {
        let refused = options.open(at("data")).expect_err("it has no number of shards");
        assert!(matches!(&refused, OpenError::Store(StoreError::Corrupt { .. })), "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains("shards is damaged at byte 0: it is missing, and there are folders"), "{text}");
        assert!(text.contains("`cp BACKUP/shards DIR/`"), "{text}");
    }
    let found = examine_dir(at("data"), Depth::Opening).expect("it is there");
    assert!(found.problems.iter().any(|problem| problem.to_do.contains("`cp BACKUP/shards DIR/`")));
    backup::backup(&at("data"), &at("other")).expect_err("it has no number of shards");
    assert_eq!(bytes(&at("data")), before, "nothing was changed");
    fs::copy(at("backup").join("shards"), at("data").join("shards")).expect("copied");
    assert_eq!(tasks(4, &at("data")), 16);
}
