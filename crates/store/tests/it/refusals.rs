//! The cases that the opening refuses. A refusal changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tickwheel_engine::{Reply, TaskEffect};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::doctor::{Depth, examine_dir};
use tickwheel_store::{ClockMode, DiskStore, FsDisk, InlineIo, OpenError, StoreOptions};

fn options() -> StoreOptions {
    let mut options = StoreOptions::new([5; 16]);
    options.log_file_bytes = 16 << 10;
    options.checkpoint_after_bytes = 16 << 10;
    options
}

fn open(path: &Path, options: StoreOptions) -> Result<DiskStore<FsDisk, InlineIo<FsDisk>>, OpenError> {
    DiskStore::open(FsDisk::new(path).expect("a directory"), InlineIo::new(), options)
}

/// A directory with a checkpoint and a log behind it.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let mut owner = Owner::acquire(open(dir.path(), options()).expect("it opens"));
    for n in 1..=400 {
        let task = sample_task(n, n, "q", &format!("k{n}"), 5);
        let reply = owner.commit(vec![TaskEffect::Stored { task: task.into(), body_known: false }]);
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }
    let store = owner.into_store();
    drop(store);
    dir
}

fn shard_file(dir: &Path, prefix: &str) -> PathBuf {
    let mut names: Vec<PathBuf> = fs::read_dir(dir.join("shard-0000"))
        .expect("the shard")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect();
    names.sort();
    names.pop().unwrap_or_else(|| panic!("there is no {prefix}"))
}

fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in [dir.to_owned(), dir.join("shard-0000")] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                files.insert(path.clone(), fs::read(path).expect("readable"));
            }
        }
    }
    files
}

/// Opens a directory that is to be refused, and finds every byte as it was.
fn refused(dir: &Path, options: StoreOptions) -> OpenError {
    let before = content(dir);
    let error = open(dir, options).map(drop).expect_err("it was to be refused");
    assert!(content(dir) == before, "the refusal changed the directory: {error}");
    error
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("readable");
    change(&mut bytes);
    fs::write(path, bytes).expect("writable");
}

/// Makes a header of a later format, checksum and all.
fn raise_format(bytes: &mut [u8], seed: u32) {
    bytes[8] += 1;
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(seed, &bytes[..12]), &bytes[16..64]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
}

/// The seed of a header, as `docs/explanation/format.md` has it.
fn seed(kind: u64, number: u64) -> u32 {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher13::new_with_key(&[5; 16]);
    hasher.write(b"tickwheel store ");
    hasher.write(&kind.to_le_bytes());
    hasher.write(&number.to_le_bytes());
    hasher.finish() as u32
}

#[test]
fn the_other_clock() {
    let dir = filled();
    let mut options = options();
    options.clock = ClockMode::Virtual;
    let error = refused(dir.path(), options);
    assert!(matches!(error, OpenError::WrongClock { .. }), "{error:?}");
    assert!(error.to_string().contains("real clock"), "{error}");
}

#[test]
fn a_directory_of_another_program() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("lost+found")).expect("made");
    fs::write(dir.path().join(".profile"), "").expect("written");
    fs::write(dir.path().join("thesis.txt"), "years of work").expect("written");
    let error = refused(dir.path(), options());
    assert!(matches!(&error, OpenError::Foreign { name } if name == "thesis.txt"), "{error:?}");
    fs::remove_file(dir.path().join("thesis.txt")).expect("removed");
    open(dir.path(), options()).expect("what every file system has is welcome");
    fs::write(dir.path().join("notes.txt"), "mine").expect("written");
    open(dir.path(), options()).expect("a data directory opens, whatever else is in it");
}

#[test]
fn a_later_format_of_any_file() {
    type File = fn(&Path) -> PathBuf;
    type Seed = fn(&Path) -> u32;
    fn numbered(kind: u64, path: &Path) -> u32 {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let (_, number) = name.split_once('-').expect("a name with a number");
        seed(kind, number.parse().expect("a number"))
    }
    let cases: [(&str, u32, File, Seed); 5] = [
        ("newest-log", 1, |dir| shard_file(dir, "newest-log"), |_| seed(5, 0)),
        ("meta", 1, |dir| dir.join("meta"), |_| 0),
        ("log", 1, |dir| shard_file(dir, "log-"), |_| seed(1, 0)),
        ("checkpoint", 1, |dir| shard_file(dir, "checkpoint-"), |path| numbered(3, path)),
        ("segment", 1, |dir| shard_file(dir, "segment-"), |path| numbered(4, path)),
    ];
    for (what, format, file, seed) in cases {
        let dir = filled();
        let path = file(dir.path());
        let seed = seed(&path);
        change(&path, |bytes| raise_format(bytes, seed));
        let error = refused(dir.path(), options());
        let OpenError::NewerFormat { found, known, .. } = error else { panic!("{what}: {error:?}") };
        assert_eq!((found, known), (format + 1, format), "{what}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn damage_to_what_was_synced() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 8] = [
        ("meta", |dir| change(&dir.join("meta"), |bytes| bytes[20] ^= 1)),
        ("meta", |dir| fs::remove_file(dir.join("meta")).expect("removed")),
        ("shard-0000", |dir| fs::rename(dir.join("shard-0000"), dir.join("elsewhere")).expect("renamed")),
        ("checkpoint-", |dir| {
            change(&shard_file(dir, "checkpoint-"), |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 4;
            });
        }),
        ("checkpoint-", |dir| {
            change(&shard_file(dir, "checkpoint-"), |bytes| bytes.truncate(bytes.len() - 1));
        }),
        ("log-", |dir| {
            for entry in fs::read_dir(dir.join("shard-0000")).expect("the shard") {
                let path = entry.expect("an entry").path();
                if path.to_string_lossy().contains("log-") {
                    // Every first frame: then nothing of the log can be reached.
                    change(&path, |bytes| bytes[4_096 + 20] ^= 1);
                }
            }
        }),
        ("log-", |dir| {
            // The newest log file, of which the header is left.
            let note = fs::read(dir.join("shard-0000/newest-log")).expect("readable");
            let number = u64::from_le_bytes(note[24..32].try_into().expect("eight bytes"));
            let file = dir.join(format!("shard-0000/log-{number:08}"));
            change(&file, |bytes| bytes.truncate(4_096));
        }),
        ("shard-0000", |dir| fs::remove_file(shard_file(dir, "checkpoint-")).expect("removed")),
    ];
    for (index, (blamed, damage)) in cases.into_iter().enumerate() {
        let dir = filled();
        damage(dir.path());
        let error = refused(dir.path(), options());
        let OpenError::Corrupt { file, hint, .. } = &error else { panic!("case {index}: {error:?}") };
        assert!(file.contains(blamed), "case {index}: {error}");
        assert!(error.to_string().contains(hint), "case {index}: {error}");
    }
}

#[test]
fn a_place_that_is_no_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, b"x").expect("written");
    let error = FsDisk::new(&file).expect_err("it is a file");
    assert!(error.to_string().contains("file"), "{error}");
}

/// Files that are not ours stay where they are, and do not disturb.
#[test]
fn files_of_others_are_left_alone() {
    let dir = filled();
    for name in ["notes.txt", "shard-0000/log-7", "shard-0000/notes.tmp"] {
        fs::write(dir.path().join(name), b"mine").expect("written");
    }
    drop(open(dir.path(), options()).expect("it opens"));
    for name in ["notes.txt", "shard-0000/log-7", "shard-0000/notes.tmp"] {
        assert_eq!(fs::read(dir.path().join(name)).expect("there"), b"mine", "{name}");
    }
}

/// A crash in the middle of a write leaves an unfinished file. The next opening removes it.
#[test]
fn unfinished_files_are_removed() {
    let dir = filled();
    let left = ["meta.tmp", "shard-0000/checkpoint-00000099.tmp", "shard-0000/newest-log-00000099.tmp"];
    for name in left {
        fs::write(dir.path().join(name), b"half").expect("written");
    }
    let found = examine_dir(dir.path(), Depth::Opening).expect("readable");
    let mut not_needed: Vec<&str> = found.not_needed.iter().map(String::as_str).collect();
    not_needed.sort_unstable();
    assert_eq!(not_needed, left);
    drop(open(dir.path(), options()).expect("it opens"));
    for name in left {
        assert!(!dir.path().join(name).exists(), "{name} is left");
    }
}

/// The log file that was written last. A log file that is prepared for later has no frame.
fn newest_log(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir.join("shard-0000")).expect("the shard");
    let logs = entries.map(|entry| entry.expect("an entry").path()).filter_map(|path| {
        let bytes = fs::read(&path).expect("readable");
        let has_frame = bytes.starts_with(b"TWLOGFIL") && bytes[4_096..].starts_with(b"TWfr");
        let generation = u64::from_le_bytes(bytes.get(16..24)?.try_into().ok()?);
        has_frame.then_some((generation, path))
    });
    logs.max().expect("there is a log").1
}

/// The story: one commit follows the opening, then the power goes, and the medium damages the header of the newest log file. The commit
/// was synced and acknowledged, so the directory is refused; it is not opened as it was before.
#[test]
fn the_header_of_a_file_with_the_last_commit() {
    let dir = filled();
    let mut owner = Owner::acquire(open(dir.path(), options()).expect("it opens"));
    let task = sample_task(500, 500, "q", "last", 5);
    let reply = owner.commit(vec![TaskEffect::Stored { task: task.into(), body_known: false }]);
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    drop(owner);
    let newest = newest_log(dir.path());
    change(&newest, |bytes| bytes[40] ^= 1);
    let OpenError::Corrupt { file, offset, .. } = refused(dir.path(), options()) else {
        panic!("another reason")
    };
    assert!(newest.ends_with(&file), "{file}");
    assert_eq!(offset, 0);
}

/// The story: a checkpoint has all but the last commit. The medium damages the bytes in front of that commit in its log file. The
/// checkpoint has their contents already; but the commit was synced and acknowledged, and it cannot be reached without them.
#[test]
fn what_stands_in_front_of_the_last_commit() {
    for damaged in [4_096, 4_096 + 72] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut owner = Owner::acquire(open(dir.path(), options()).expect("it opens"));
        let mut commit = |key: &str| {
            let seq = owner.next_seq();
            let task = sample_task(seq, seq, "q", key, 5);
            let reply = owner.commit(vec![TaskEffect::Stored { task: task.into(), body_known: false }]);
            assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
            // Commits of nothing, so that the background gets somewhere.
            (0..20).for_each(|_| drop(owner.commit(Vec::new())));
            fs::read_dir(dir.path().join("shard-0000")).expect("the shard").any(|entry| {
                entry.expect("an entry").file_name().to_string_lossy().starts_with("checkpoint-")
            })
        };
        let has_checkpoint = (1..=1_000).any(|n| commit(&format!("k{n}")));
        assert!(has_checkpoint, "no checkpoint came");
        commit("last");
        drop(owner);
        let newest = newest_log(dir.path());
        // The frame's head has its length: this one is the first or the second.
        change(&newest, |bytes| {
            let length = u32::from_le_bytes(bytes[4_104..4_108].try_into().expect("four bytes")) as usize;
            let at = if damaged == 4_096 { damaged } else { (damaged + length).next_multiple_of(8) };
            assert!(bytes[at..].starts_with(b"TWfr"), "there is no frame at {at}");
            bytes[at + 20] ^= 1;
        });
        let OpenError::Corrupt { file, .. } = refused(dir.path(), options()) else {
            panic!("another reason")
        };
        assert!(newest.ends_with(&file), "{file}");
    }
}
