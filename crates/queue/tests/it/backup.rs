//! Copies of a directory that is in use and of one that is not, and what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tickwheel_queue::backup::{BackupPhase, BackupWatch, Manifest, backup, restore, system_now};
use tickwheel_queue::doctor::{Depth, Examination, examine_dir};
use tickwheel_queue::{
    Ack, BackupError, BackupReport, Cancel, CancelError, Extend, Get, GetError, Key, Lease, List, Put, Queue,
    QueueName, TokenAnswer,
};

fn name(name: &str) -> QueueName {
    QueueName::new(name).expect("a good name")
}

fn key(key: &str) -> Key {
    Key::new(key).expect("a good key")
}

/// A virtual clock, so that no test waits; small files, so that there are many.
fn open(directory: &Path) -> Queue {
    let options = Queue::options().virtual_clock().log_file_bytes(64 << 10).checkpoint_after_bytes(64 << 10);
    options.open(directory).expect("it opens")
}

fn put(queue: &Queue, text: &str) {
    let day = Duration::from_secs(86_400);
    let put = Put::new(&name("close"), key(text)).after(day).payload(vec![b'x'; 300]);
    queue.put(put).wait().expect("taken");
}

/// The keys of all live tasks.
fn keys(queue: &Queue) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut list = List { max: 1_000, ..List::new(&name("close")) };
    loop {
        let page = queue.list(list.clone()).wait().expect("open");
        keys.extend(page.tasks.iter().map(|task| task.key.as_str().to_owned()));
        match page.next {
            Some(next) => list.after = Some(next),
            None => return keys,
        }
    }
}

fn examined(path: &Path) -> Examination {
    examine_dir(path, Depth::Records).expect("it is there")
}

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in [path.to_owned(), path.join("shard-0000")] {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                files.insert(path.clone(), fs::read(path).expect("readable"));
            }
        }
    }
    files
}

/// Makes a directory with a checkpoint, which no queue has open.
fn stopped(path: &Path) {
    let queue = open(path);
    for n in 0..600 {
        put(&queue, &format!("k{n}"));
    }
    queue.close();
}

/// Ends the load when it is dropped, also by a failed check.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The story: a shop goes on putting and cancelling while its directory is copied again and again, with checkpoints in between. Each copy
/// has all that was answered before its call.
#[test]
fn a_copy_under_load_has_all_that_was_acknowledged_before_it() {
    let place = tempfile::tempdir().expect("a place for files");
    let data = place.path().join("data");
    let queue = open(&data);
    let ended = AtomicBool::new(false);
    // The acknowledged state: a key, and whether it is there.
    let told = Mutex::new(BTreeMap::<String, bool>::new());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (queue, told, ended) = (&queue, &told, &ended);
            scope.spawn(move || {
                for n in 0.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("{thread}-{n}");
                    put(queue, &text);
                    if n % 3 == 0 {
                        // Between the two answers the key may be there or not.
                        queue.cancel(Cancel::new(&name("close"), key(&text))).wait().expect("it is there");
                    }
                    told.lock().expect("unharmed").insert(text, n % 3 != 0);
                }
            });
        }
        let _end = End(&ended);
        let mut checkpoints = Vec::new();
        for round in 0.. {
            let before = told.lock().expect("unharmed").clone();
            let to = place.path().join(format!("copy-{round}"));
            let report = queue.backup(&to).expect("copied");
            let found = examined(&to);
            assert!(found.is_in_order() && found.not_needed.is_empty(), "{:#?}", found.problems);
            assert_eq!(report.bytes, found.bytes);
            checkpoints.extend(found.checkpoint.map(|checkpoint| checkpoint.file));
            checkpoints.dedup();
            let copy = open(&to);
            let there = keys(&copy);
            for (text, lives) in &before {
                assert_eq!(there.contains(text), *lives, "round {round}: {text} was {lives} before");
            }
            drop(copy);
            fs::remove_dir_all(&to).expect("removed");
            if checkpoints.len() >= 4 && round >= 4 {
                break;
            }
        }
    });
    queue.close();
    assert!(examined(&data).is_in_order());
}

#[test]
fn leases_of_the_copy_are_what_they_were_and_its_owner_is_another() {
    let place = tempfile::tempdir().expect("a place for files");
    let (data, to) = (place.path().join("data"), place.path().join("copy"));
    let close = name("close");
    let queue = open(&data);
    queue.put(Put::new(&close, key("a"))).wait().expect("taken");
    queue.advance(Duration::from_millis(1)).wait().expect("virtual");
    let lease = Lease::new(&close).lasting(Duration::from_secs(3_600));
    let leased = queue.lease(lease, Duration::ZERO).wait().expect("open");
    let token = leased[0].token;
    queue.close();
    backup(&data, &to).expect("copied");
    let copy = open(&to);
    let extended = copy.extend(Extend::new(&close, [token], Duration::from_secs(60))).wait();
    assert_eq!(extended, Ok(vec![TokenAnswer::Extended]));
    assert_eq!(copy.ack(Ack::new(&close, [token])).wait(), Ok(vec![TokenAnswer::Acked]));
    // The original knows nothing of it.
    let queue = open(&data);
    assert_eq!(queue.ack(Ack::new(&close, [token])).wait(), Ok(vec![TokenAnswer::Acked]));
    assert_eq!(copy.cancel(Cancel::new(&close, key("a"))).wait(), Err(CancelError::Done));
}

#[test]
fn there_and_back_again() {
    let place = tempfile::tempdir().expect("a place for files");
    let [data, to, back] = ["data", "copy", "back"].map(|name| place.path().join(name));
    stopped(&data);
    let before = files(&data);
    fs::create_dir(&to).expect("an empty directory will do");
    let copied = backup(&data, &to).expect("copied");
    let restored = restore(&to, &back).expect("restored");
    assert_eq!(copied, restored);
    assert!(files(&data) == before, "the original is as it was");
    let (there, again) = (examined(&data), examined(&back));
    assert_eq!((again.tasks, again.ended, again.queues), (there.tasks, there.ended, there.queues));
    assert!(again.bytes < there.bytes, "spare files are not copied");
    let queue = open(&back);
    let got = queue.get(Get::new(&name("close"), key("k599"))).wait();
    assert!(got.is_ok(), "{got:?}");
    assert_eq!(queue.get(Get::new(&name("close"), key("k600"))).wait(), Err(GetError::NotFound));
}

#[test]
fn what_is_no_place_for_a_copy_is_refused_and_left_as_it_was() {
    let place = tempfile::tempdir().expect("a place for files");
    let data = place.path().join("data");
    let full = place.path().join("full");
    stopped(&data);
    fs::create_dir(&full).expect("made");
    fs::write(full.join("mine"), b"1").expect("written");
    let queue = open(&data);
    for run in [&(|to: &Path| queue.backup(to)) as &dyn Fn(&Path) -> Result<_, BackupError>, &|to: &Path| {
        let source = place.path().join("stopped");
        if !source.exists() {
            stopped(&source);
        }
        backup(&source, to)
    }] {
        assert!(matches!(run(&full), Err(BackupError::NotEmpty { .. })));
        assert!(matches!(run(&full.join("mine")), Err(BackupError::Io { .. })));
        assert!(matches!(run(&place.path().join("absent/copy")), Err(BackupError::Io { .. })));
        assert!(matches!(run(Path::new("/")), Err(BackupError::NotEmpty { .. })));
        let part = place.path().join("copy.unfinished");
        fs::create_dir(&part).expect("made");
        let refused = run(&place.path().join("copy")).expect_err("a part is in the way");
        assert!(matches!(&refused, BackupError::Unfinished { path } if *path == part), "{refused}");
        assert!(matches!(restore(&part, &place.path().join("back")), Err(BackupError::Unfinished { .. })));
        fs::remove_dir(&part).expect("still there, and empty");
    }
    assert!(matches!(queue.backup(data.join("inside")), Err(BackupError::Inside { .. })));
    assert_eq!(fs::read_dir(&full).expect("there").count(), 1);
    let refused = backup(&data, &place.path().join("copy")).expect_err("it is in use");
    assert!(matches!(refused, BackupError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("stop it first"));
    let memory = Queue::options().open_memory().expect("it opens");
    assert!(matches!(memory.backup(place.path().join("copy")), Err(BackupError::InMemory)));
    queue.close();
    assert!(matches!(queue.backup(place.path().join("copy")), Err(BackupError::Unavailable(_))));
    let mut left: Vec<_> = fs::read_dir(place.path())
        .expect("there")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["data", "full", "stopped"], "a refusal leaves nothing");
}

#[test]
fn what_is_no_good_backup_is_not_restored() {
    type Harm = fn(&Path);
    let cases: [(&str, Harm); 5] = [
        ("checksum", |dir| {
            // One record, that no opening would read.
            let segments = fs::read_dir(dir.join("shard-0000")).expect("the shard");
            let mut names: Vec<PathBuf> = segments.map(|entry| entry.expect("an entry").path()).collect();
            names.retain(|path| path.to_string_lossy().contains("segment-"));
            let path = names.pop().expect("a segment");
            let mut bytes = fs::read(&path).expect("readable");
            bytes[64 + 50] ^= 1;
            fs::write(path, bytes).expect("writable");
        }),
        ("missing", |dir| fs::remove_file(dir.join("meta")).expect("removed")),
        ("is not ours", |dir| fs::write(dir.join("shard-0000/run.sh"), b"#!/bin/sh").expect("written")),
        ("no plain file", |dir| {
            std::os::unix::fs::symlink("/etc/passwd", dir.join("shard-0000/segment-00009999")).expect("made");
        }),
        ("empty", |dir| {
            fs::remove_dir_all(dir).expect("removed");
            fs::create_dir(dir).expect("made");
        }),
    ];
    let place = tempfile::tempdir().expect("a place for files");
    let data = place.path().join("data");
    stopped(&data);
    for (what, harm) in cases {
        let [to, back] = ["copy", "back"].map(|name| place.path().join(name));
        backup(&data, &to).expect("copied");
        harm(&to);
        let refused = restore(&to, &back).expect_err("it is no good");
        assert!(refused.to_string().contains(what), "{what}: {refused}");
        assert!(!back.exists() && !place.path().join("back.unfinished").exists(), "{what}");
        fs::remove_dir_all(&to).expect("removed");
    }
    // A damaged directory is not copied either, and an absent one is not made.
    fs::remove_file(data.join("meta")).expect("removed");
    assert!(matches!(backup(&data, &place.path().join("copy")), Err(BackupError::Damaged { .. })));
    let absent = place.path().join("absent");
    assert!(matches!(backup(&absent, &place.path().join("copy")), Err(BackupError::Io { .. })));
    assert!(!absent.exists());
}

/// A record that no opening looks at was damaged, and the error said that the disk of the copy was not to be trusted.
#[test]
fn a_damaged_source_is_named_and_not_its_copy() {
    let place = tempfile::tempdir().expect("a directory");
    let (data, copy) = (place.path().join("data"), place.path().join("copy"));
    stopped(&data);
    let segment = files(&data).into_iter().find(|(path, _)| path.to_string_lossy().contains("segment-"));
    let (path, mut bytes) = segment.expect("a day ahead is a segment's");
    // The first record. An opening reads the end of a segment, from the last checkpoint on: most of the file, if the disk is slow.
    let damaged_byte = 64 + 50;
    bytes[damaged_byte] ^= 1;
    fs::write(&path, &bytes).expect("written");
    let opening = examine_dir(&data, Depth::Opening).expect("it is there");
    let deep = examined(&data);
    assert!(
        opening.is_in_order(),
        "an opening reads no record before the last checkpoint: {:?}",
        opening.problems
    );
    assert!(!deep.is_in_order(), "a look at every record finds it");
    let name = path.strip_prefix(&data).expect("in it").to_string_lossy().into_owned();
    let check = |from: &Path, refused: BackupError| {
        let BackupError::Damaged { path, problems } = &refused else { panic!("{refused}") };
        assert_eq!((path.as_path(), problems[0].file.as_str()), (from, name.as_str()));
        let offset = problems[0].offset.expect("it knows where");
        assert!(offset <= damaged_byte as u64, "{offset} is behind byte {damaged_byte}");
        let text = refused.to_string();
        let place = format!("{} is not in order: {name} at byte {offset}: ", from.display());
        assert!(
            text.starts_with(&place) && text.contains("restore the data directory from a copy"),
            "{text}"
        );
        assert!(!copy.exists(), "nothing is left");
        assert!(!copy.with_extension("unfinished").exists(), "nothing is left");
    };
    check(&data, backup(&data, &copy).expect_err("damaged"));
    assert_eq!(fs::read(&path).expect("readable"), bytes, "the source is as it was");
    // A backup that was damaged later is found before a byte of it is copied.
    check(&data, restore(&data, &copy).expect_err("damaged"));
}

/// Puts in the background until it is dropped.
fn under_load<T>(queue: &Queue, work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                put(queue, &format!("load-{n}"));
            }
        });
        let _end = End(&ended);
        work()
    })
}

#[test]
fn a_gentle_copy_is_checked_and_says_what_it_is() {
    let place = tempfile::tempdir().expect("a place for files");
    let [data, to, back] = ["data", "copy", "back"].map(|name| place.path().join(name));
    let queue = open(&data);
    for n in 0..600 {
        put(&queue, &format!("k{n}"));
    }
    let before = system_now();
    let watch = BackupWatch::new();
    let report = under_load(&queue, || queue.backup_gently(&to, &watch)).expect("copied");
    let as_of = report.as_of.expect("it knows");
    assert!(before <= as_of && as_of <= system_now(), "{as_of:?}");
    let progress = watch.progress();
    assert_eq!((progress.phase, progress.as_of), (BackupPhase::Checking, Some(as_of)));
    assert_eq!((progress.copied, progress.files), (report.bytes, report.files), "{progress:?}");
    assert!(report.tasks.is_some_and(|tasks| tasks >= 600) && report.checked_bytes > 0, "{report:?}");
    let manifest = Manifest::read(&to).expect("readable").expect("it is there");
    assert_eq!(manifest.report(), report);
    assert!(before <= manifest.begun_at().expect("a time") && manifest.ended_at() >= manifest.begun_at());
    let found = examined(&to);
    assert!(found.is_in_order() && found.not_ours.is_empty(), "{:#?}", found.not_ours);

    let restored = restore(&to, &back).expect("restored");
    let proved = |report: BackupReport| (report.as_of, report.tasks, report.dead, report.queues);
    assert_eq!(proved(restored), proved(report));
    assert!(!back.join(Manifest::FILE).exists(), "a data directory says nothing of that");
    // A directory that was opened is a backup no more.
    drop(open(&to));
    assert_eq!(Manifest::read(&to).expect("readable"), None);
}

#[test]
fn a_gentle_copy_that_is_stopped_leaves_nothing_and_holds_nothing() {
    let place = tempfile::tempdir().expect("a place for files");
    let (data, to) = (place.path().join("data"), place.path().join("copy"));
    let queue = open(&data);
    for n in 0..600 {
        put(&queue, &format!("k{n}"));
    }
    for phase in [BackupPhase::Copying, BackupPhase::Checking] {
        let watch = BackupWatch::new();
        let stopped = std::thread::scope(|scope| {
            let copying = scope.spawn(|| queue.backup_gently(&to, &watch));
            while watch.progress().copied == 0 || watch.progress().phase != phase {
                std::thread::yield_now();
            }
            assert!(matches!(queue.backup(place.path().join("other")), Err(BackupError::Busy)));
            watch.stop();
            copying.join().expect("no panic")
        });
        assert!(matches!(stopped, Err(BackupError::Stopped)), "{phase:?}: {stopped:?}");
        assert_eq!(fs::read_dir(place.path()).expect("there").count(), 1, "{phase:?}: something is left");
    }
    queue.backup_gently(&to, &BackupWatch::new()).expect("the next one goes on");
}

#[test]
fn a_backup_that_is_not_what_it_says_of_itself_is_not_restored() {
    type Harm = fn(&Path);
    let cases: [(&str, Harm); 3] = [
        ("the file is damaged", |dir| {
            let path = dir.join(Manifest::FILE);
            let text =
                fs::read_to_string(&path).expect("readable").replace("\"tasks\": 600", "\"tasks\": 601");
            fs::write(path, text).expect("writable");
        }),
        ("with the checksum", |dir| {
            // Behind the last frame, where no opening looks.
            let path = log_files(dir).pop().expect("a log file");
            let mut bytes = fs::read(&path).expect("readable");
            *bytes.last_mut().expect("some") ^= 1;
            fs::write(path, bytes).expect("writable");
        }),
        ("no plain file", |dir| {
            fs::remove_file(dir.join(Manifest::FILE)).expect("removed");
            fs::create_dir(dir.join(Manifest::FILE)).expect("made");
        }),
    ];
    let place = tempfile::tempdir().expect("a place for files");
    let data = place.path().join("data");
    stopped(&data);
    for (what, harm) in cases {
        let [to, back] = ["copy", "back"].map(|name| place.path().join(name));
        backup(&data, &to).expect("copied");
        harm(&to);
        let refused = restore(&to, &back).expect_err("it is no good").to_string();
        assert!(refused.contains(what), "{what}: {refused}");
        assert!(!back.exists() && !place.path().join("back.unfinished").exists(), "{what}");
        fs::remove_dir_all(&to).expect("removed");
    }
}

/// The files of the log, by their names.
fn log_files(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = files(dir).into_keys().collect();
    names.retain(|path| path.to_string_lossy().contains("/log-"));
    names
}
