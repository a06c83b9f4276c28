//! The salvage and the examination of a data directory of several shards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tickwheel_queue::backup::{self, SalvageError, SalvageReport, Unit, identity, salvage};
use tickwheel_queue::doctor::{Depth, Examination, examine_dir};
use tickwheel_queue::{Ack, Get, Key, Lease, Options, Put, Queue, QueueName, Router, TokenAnswer};

fn names() -> Vec<QueueName> {
    (0..9).map(|n| QueueName::new(&format!("q{n}")).expect("a name")).collect()
}

fn key(key: &str) -> Key {
    Key::new(key).expect("a key")
}

fn opened(directory: &Path) -> Queue {
    Queue::options().open(directory).expect("it opens")
}

/// Makes a directory of three shards with a task in each of nine queues. Returns the ids.
fn made_by(options: Options, directory: &Path) -> Vec<u64> {
    let queue = options.open(directory).expect("it opens");
    let put = |name| queue.put(Put::new(name, key("k"))).wait().expect("put").task.id;
    names().iter().map(put).collect()
}

fn made(directory: &Path) -> Vec<u64> {
    made_by(Queue::options().shards(3), directory)
}

/// Returns the queues of the shard with this number.
fn queues_of(number: u32) -> Vec<QueueName> {
    let router = Router::new(3).expect("three");
    names().into_iter().filter(|name| router.of_queue(name).number() == number).collect()
}

/// Returns the queues that have their task.
fn tasks(directory: &Path) -> Vec<QueueName> {
    let queue = opened(directory);
    let has = |name: &&QueueName| queue.get(Get::new(name, key("k"))).wait().is_ok();
    names().iter().filter(has).cloned().collect()
}

fn saved(from: &Path, to: &Path) -> SalvageReport {
    salvage(from, to, &mut |_| {}).expect("salvaged")
}

fn examined(path: &Path) -> Examination {
    examine_dir(path, Depth::Records).expect("it is there")
}

/// Returns each file below the directory, with its bytes and the time of its change.
fn files(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a folder").map(|entry| entry.expect("an entry")) {
        if entry.path().is_dir() {
            files.extend(self::files(&entry.path()));
        } else {
            let at = entry.metadata().expect("there").modified().expect("a time");
            files.insert(entry.path(), (fs::read(entry.path()).expect("readable"), at));
        }
    }
    files
}

/// Flips a byte in the middle of each frame that the first log file of a member has used.
fn damage_log(member: &Path) {
    let log = member.join("shard-0000/log-00000001");
    let used = examined(member).logs[0].used_bytes;
    let mut bytes = fs::read(&log).expect("readable");
    let at = usize::try_from(used).expect("short") - 20;
    bytes[at] ^= 0x55;
    fs::write(&log, bytes).expect("written");
}

#[test]
fn a_whole_root_is_salvaged_as_it_is() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    let before = files(&at("data"));
    let mut refused = 0;
    let report = salvage(&at("data"), &at("out"), &mut |_| {
        let told = Queue::open(at("data")).expect_err("it is being salvaged").to_string();
        assert!(!told.contains("0000"), "the root itself is locked: {told}");
        refused += 1;
    })
    .expect("salvaged");
    assert!(report.is_whole() && report.notes.is_empty(), "{report:?}");
    assert_eq!((report.shards, report.tasks().live, report.written.queues.len()), (3, 9, 9));
    assert!(refused > 0, "it was opened meanwhile");
    assert_eq!(files(&at("data")), before, "the old directory is as it was");
    assert_eq!(identity(&at("out")).expect("readable"), identity(&at("data")).expect("readable"));
    assert!(examined(&at("out")).is_in_order(), "{:?}", examined(&at("out")).problems);
    assert_eq!(tasks(&at("out")), names());
    let queue = opened(&at("data"));
    let error = salvage(&at("data"), &at("other"), &mut |_| {}).expect_err("it is in use");
    assert!(matches!(error, SalvageError::InUse { .. }), "{error}");
    drop(queue);
    fs::write(at("data/unfinished"), b"x").expect("written");
    let told = salvage(&at("data"), &at("other"), &mut |_| {}).expect_err("unfinished").to_string();
    assert!(told.contains("did not finish"), "{told}");
    assert!(!at("other").exists() && !at("other.unfinished").exists());
}

#[test]
fn losses_name_the_folder_of_the_member() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    damage_log(&at("data/0001"));
    let report = saved(&at("data"), &at("out"));
    assert!(!report.is_whole());
    for loss in &report.losses {
        assert!(loss.file.starts_with("0001/shard-0000"), "{loss:?}");
    }
    let there = tasks(&at("out"));
    for name in queues_of(0).into_iter().chain(queues_of(2)) {
        assert!(there.contains(&name), "{name:?}");
    }
}

/// The story of the lost disk: a member is gone, and an empty one takes its place. Its numbers begin far above all known ones.
#[test]
fn a_missing_member_is_a_loss_and_gives_out_no_known_number() {
    for harm in ["missing", "no meta", "no folder of the data", "meta of another"] {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        let ids = made(&at("data"));
        made(&at("second"));
        let token = {
            let queue = opened(&at("data"));
            let lease = Lease::of(queues_of(1)).max(1);
            queue.lease(lease, Duration::ZERO).wait().expect("leased").remove(0)
        };
        match harm {
            "missing" => fs::remove_dir_all(at("data/0001")).expect("removed"),
            "no meta" => fs::remove_file(at("data/0001/meta")).expect("removed"),
            "no folder of the data" => fs::remove_dir_all(at("data/0001/shard-0000")).expect("removed"),
            _ => drop(fs::copy(at("second/0001/meta"), at("data/0001/meta")).expect("copied")),
        }
        let report = saved(&at("data"), &at("out"));
        assert_eq!((report.losses.len(), report.shards), (1, 3), "{harm}: {:?}", report.losses);
        let loss = &report.losses[0];
        assert_eq!((&*loss.file, loss.unit, loss.tasks_max), ("0001", Unit::Shard, None), "{harm}");
        assert!(loss.what.contains("all of shard 1 of 3 is lost"), "{harm}: {}", loss.what);
        assert!(examined(&at("out")).is_in_order(), "{harm}: {:?}", examined(&at("out")).problems);
        let mut left = queues_of(0);
        left.extend(queues_of(2));
        left.sort();
        assert_eq!(tasks(&at("out")), left, "{harm}");
        let queue = opened(&at("out"));
        let name = &queues_of(1)[0];
        let put = queue.put(Put::new(name, key("k"))).wait().expect("put").task;
        assert_eq!((put.id % 3, put.id > ids.iter().max().expect("some") + (3 << 32)), (1, true), "{harm}");
        assert!(put.version.0 > 1 << 32, "{harm}: change {}", put.version);
        let leased = queue.lease(Lease::of([name.clone()]).max(1), Duration::ZERO).wait().expect("leased");
        assert_ne!(leased[0].token, token.token);
        let acked = queue.ack(Ack::new(name, [token.token])).wait().expect("answered");
        assert_ne!(acked, [TokenAnswer::Acked], "{harm}");
        let other = &queues_of(0)[0];
        let put = queue.put(Put::new(other, key("new"))).wait().expect("put").task;
        assert!(put.id < 1 << 32, "{harm}: a shard without a loss goes on: {}", put.id);
    }
}

#[test]
fn without_the_file_shards_their_number_is_known_from_the_members() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    let file = at("data/shards");
    let whole = fs::read(&file).expect("readable");
    let mut one = whole.clone();
    one[40] ^= 0x10;
    let mut two = one.clone();
    two[20] ^= 0x33;
    for (name, bytes, note, is_same) in [
        ("one", Some(&one), None, true),
        ("two", Some(&two), Some("its checksum does not match; the number of shards (3) is taken"), false),
        ("gone", None, Some("it is missing"), false),
    ] {
        match bytes {
            Some(bytes) => fs::write(&file, bytes).expect("written"),
            None => fs::remove_file(&file).expect("removed"),
        }
        let found = examined(&at("data"));
        let problem = &found.problems[0];
        assert_eq!((&*problem.file, found.problems.len(), found.shards), ("shards", 1, Some(3)), "{name}");
        // A file that is missing has an advice of its own.
        assert_eq!(problem.is_damage(), name != "gone", "{name}: {problem}");
        assert_eq!(found.tasks, Some(9), "{name}");
        let report = saved(&at("data"), &at(name));
        assert!(report.is_whole(), "{name}: {:?}", report.losses);
        match note {
            Some(note) => assert!(report.notes[0].contains(note), "{name}: {:?}", report.notes),
            None => assert_eq!(report.read.mended, [("shards".to_owned(), 40)], "{name}"),
        }
        fs::write(&file, &whole).expect("written");
        let same = identity(&at(name)).expect("readable") == identity(&at("data")).expect("readable");
        assert_eq!(same, is_same, "{name}");
        assert_eq!(tasks(&at(name)), names(), "{name}");
    }
    // One member is left, and the file is gone.
    fs::remove_file(&file).expect("removed");
    fs::remove_dir_all(at("data/0000")).expect("removed");
    fs::remove_dir_all(at("data/0001")).expect("removed");
    let report = saved(&at("data"), &at("third"));
    assert_eq!(report.losses.iter().map(|loss| &*loss.file).collect::<Vec<_>>(), ["0000", "0001"]);
    assert_eq!(tasks(&at("third")), queues_of(2));
    // No member is left.
    fs::write(&file, &whole).expect("written");
    fs::remove_dir_all(at("data/0002")).expect("removed");
    salvage(&at("data"), &at("none"), &mut |_| {}).expect_err("there is nothing to save");
    assert!(!at("none").exists());
}

#[test]
fn a_member_in_the_wrong_folder_goes_to_its_own() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    fs::rename(at("data/0001"), at("x")).expect("renamed");
    fs::rename(at("data/0002"), at("data/0001")).expect("renamed");
    fs::rename(at("x"), at("data/0002")).expect("renamed");
    let found = examined(&at("data"));
    let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("0001: it has shard 2 of 3") && told[0].contains("`mv`"), "{told:?}");
    let report = saved(&at("data"), &at("out"));
    assert!(report.is_whole() && report.notes[0].contains("the folder 0002 has shard 1 of 3"), "{report:?}");
    assert_eq!(tasks(&at("out")), names());
}

#[test]
fn one_member_alone_is_examined_and_salvaged_as_one() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    let found = examined(&at("data/0001"));
    assert!(found.is_in_order() && found.members.is_empty());
    assert_eq!(found.shard.map(|shard| (shard.number(), shard.count())), Some((1, 3)));
    let report = saved(&at("data/0001"), &at("out"));
    assert!(report.is_whole() && report.notes[0].contains("place of the folder 0001"), "{report:?}");
    fs::remove_dir_all(at("data/0001")).expect("removed");
    fs::rename(at("out"), at("data/0001")).expect("renamed");
    assert_eq!(tasks(&at("data")), names());
}

#[test]
fn the_examination_of_a_root_counts_all_members() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    made(&at("data"));
    let found = examined(&at("data"));
    assert!(found.is_in_order(), "{:?}", found.problems);
    assert_eq!((found.shards, found.shard, found.members.len()), (Some(3), None, 3));
    assert_eq!((found.tasks, found.dead, found.queues.len()), (Some(9), Some(0), 9));
    let of_members =
        |count: fn(&Examination) -> u64| found.members.iter().map(|m| count(&m.found)).sum::<u64>();
    assert_eq!(of_members(|found| found.tasks.expect("counted")), 9);
    // The root has two files of its own: `shards` and `stamp`.
    assert_eq!(of_members(|found| found.bytes) + 2 * 64, found.bytes);
    assert!(found.logs.iter().any(|log| log.file == "0002/shard-0000/log-00000001"), "{:?}", found.logs);
    for needed in &found.needed {
        assert!(at("data").join(&needed.file).is_file(), "{needed:?}");
    }
    assert!(!found.in_use);
    let queue = opened(&at("data"));
    let found = examined(&at("data"));
    assert!(found.in_use && found.is_in_order(), "{:?}", found.problems);
    drop(queue);
}

#[test]
fn what_is_wrong_with_members_is_told_with_a_way_out() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    let copied = |from: &str, to: &str| {
        let report = backup::backup(&at(from), &at("copy"));
        report.expect("copied");
        fs::rename(at("copy"), at(to)).expect("renamed");
    };
    made(&at("whole"));
    made_by(Queue::options().shards(4), &at("four"));
    made_by(Queue::options().shards(3).virtual_clock(), &at("virtual"));
    type Case<'c> = (&'c str, &'c dyn Fn(), &'c [&'c str]);
    let cases: [Case<'_>; 7] = [
        (
            "missing",
            &|| fs::remove_dir_all(at("data/0002")).expect("removed"),
            &["0002: the directory of shard 2 of 3 is missing"],
        ),
        (
            "empty",
            &|| {
                fs::remove_dir_all(at("data/0002")).expect("removed");
                fs::create_dir(at("data/0002")).expect("made");
            },
            &["0002: the directory of shard 2 of 3 has no `meta`"],
        ),
        (
            "twice",
            &|| {
                fs::remove_dir_all(at("data/0002")).expect("removed");
                copied("data/0001", "data/0002");
            },
            &["0002: it has shard 1 of 3, as the folder 0001 has; shard 2 of 3 is missing"],
        ),
        (
            "another number",
            &|| {
                fs::remove_dir_all(at("data/0002")).expect("removed");
                copied("four/0002", "data/0002");
            },
            &["0002: it has shard 2 of 4, which is of another data directory"],
        ),
        (
            "another clock",
            &|| {
                fs::remove_dir_all(at("data/0002")).expect("removed");
                copied("virtual/0002", "data/0002");
            },
            &["0002: it lives by the virtual clock"],
        ),
        (
            "left over",
            &|| copied("data/0001", "data/0007"),
            &["0007: it is no folder of this data directory"],
        ),
        ("damaged", &|| damage_log(&at("data/0001")), &[]),
    ];
    for (case, harm, expected) in cases {
        backup::restore(&at("whole"), &at("data")).expect("restored");
        harm();
        let found = examined(&at("data"));
        let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), expected.len(), "{case}: {told:?} {:?}", found.torn);
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected) && told.contains("; "), "{case}: {told}");
        }
        if case == "damaged" {
            let torn = found.torn.expect("the last frame is damaged");
            assert!(torn.file.starts_with("0001/shard-0000/log-"), "{torn:?}");
        }
        fs::remove_dir_all(at("data")).expect("removed");
    }
}

/// The directories of some shards are not made yet. The next opening makes them, so this is no problem.
#[test]
fn a_root_that_is_being_made_is_in_order() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("data");
    let options = tickwheel_store::StoreOptions::new([7; 16]);
    drop(tickwheel_store::Root::open(&directory, Some(3), &options).expect("made").expect("several"));
    fs::create_dir(directory.join("0000")).expect("made");
    let found = examined(&directory);
    assert!(found.is_in_order(), "{:?}", found.problems);
}
