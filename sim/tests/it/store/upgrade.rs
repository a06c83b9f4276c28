//! A directory of an earlier format on a disk that crashes, fails and fills up while the version of today opens it for the
//! first time: what was in it is there, and as long as `meta` is of the earlier format, the earlier version finds its own files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tickwheel_sim::disk::{Fault, SimDisk};
use tickwheel_sim::rng::Rng;
use tickwheel_store::conformance;
use tickwheel_store::doctor::{Depth, examine};
use tickwheel_store::{Disk, DiskStore, HistoryLimits, InlineIo, OpenError, Table};

use crate::store::world::{Store, options};

/// The formats before the present one, as the golden directories of the store have them.
const EARLIER: [(&str, u32); 2] = [("format-3", 3), ("format-4", 4)];

/// The number of ended tasks that the golden directories remember for each queue.
const HISTORY: usize = 20;

fn golden(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/store/tests/golden").join(format)
}

/// The files of a golden directory by name.
fn files(format: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["", "shard-0000"] {
        for entry in fs::read_dir(golden(format).join(folder)).expect("a golden directory") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let name = path.strip_prefix(golden(format)).expect("in it").to_string_lossy().into_owned();
                files.insert(name, fs::read(path).expect("readable"));
            }
        }
    }
    files
}

/// A disk that has these files, all of them durable.
fn disk_with(files: &BTreeMap<String, Vec<u8>>) -> SimDisk {
    let mut disk = SimDisk::new();
    disk.create_dir("shard-0000").expect("made");
    for (name, bytes) in files {
        disk.create(name).expect("made");
        disk.write_at(name, 0, bytes).expect("written");
        disk.sync_data(name).expect("durable");
    }
    disk.sync_dir("").expect("durable");
    disk.sync_dir("shard-0000").expect("durable");
    disk.image()
}

fn open(disk: &SimDisk) -> Result<Store, OpenError> {
    let mut options = options();
    options.history = HistoryLimits::last(HISTORY);
    DiskStore::open(disk.clone(), InlineIo::new(), options)
}

fn contents(store: &mut Store) -> Table {
    conformance::contents(store, HISTORY).expect("it reads")
}

fn bytes_of(disk: &SimDisk, file: &str) -> Option<Vec<u8>> {
    let mut disk = disk.clone();
    let length = disk.len(file).ok()?;
    let mut bytes = vec![0; usize::try_from(length).expect("a small file")];
    let count = disk.read(file, 0, &mut bytes).ok()?;
    bytes.truncate(count);
    Some(bytes)
}

fn format_of(disk: &SimDisk) -> u32 {
    let meta = bytes_of(disk, "meta").expect("there is a meta");
    u32::from_le_bytes(meta[8..12].try_into().expect("four bytes"))
}

/// Checks that all files that the earlier version needs are as it wrote them.
fn assert_is_whole(disk: &SimDisk, files: &BTreeMap<String, Vec<u8>>, story: &str) {
    let needed = examine(&mut disk_with(files), Depth::Opening).needed;
    assert!(needed.len() > 10, "{story}: nearly nothing is needed: {needed:?}");
    for needed in needed.iter().filter(|needed| needed.content.is_none()) {
        let found = bytes_of(disk, &needed.file);
        assert!(found.as_ref() == Some(&files[&needed.file]), "{story}: {} is not as it was", needed.file);
    }
}

/// The story: each changing call of the first opening by a new version meets each fault. The administrator sees an error, and goes back
/// to the earlier version or starts the new one again.
#[test]
fn a_failed_upgrade_leaves_the_directory_whole() {
    for (name, format) in EARLIER {
        let files = files(name);
        let expected = contents(&mut open(&disk_with(&files)).expect("it opens"));
        assert!(expected.tasks_from(0).count() > 50, "{name} has too few tasks");
        for fault in [Fault::Crash, Fault::Error, Fault::LosingSync, Fault::Full] {
            let (mut before, mut after) = (0, 0);
            for nth in 1.. {
                let mut met = false;
                for variant in 0..2 {
                    let story = format!("{name}, {fault:?} at call {nth}, variant {variant}");
                    let disk = disk_with(&files);
                    disk.fail_at(nth, fault);
                    let opened = open(&disk);
                    met = disk.changes() >= nth;
                    if let Err(error) = &opened {
                        assert!(matches!(error, OpenError::Io(_)), "{story}: {error}");
                    }
                    drop(opened);
                    disk.forget_faults();
                    // The process is started again: after a power cut if the machine died or in variant 0.
                    if disk.is_crashed() || variant == 0 {
                        disk.crash(&mut Rng::new(nth * 7 + variant));
                    }
                    if format_of(&disk) == format {
                        before += 1;
                        assert_is_whole(&disk, &files, &story);
                        let problems = examine(&mut disk.image(), Depth::Records).problems;
                        assert!(problems.is_empty(), "{story}: {problems:?}");
                    } else {
                        after += 1;
                        assert_eq!(format_of(&disk), tickwheel_store::FORMAT, "{story}");
                    }
                    let from = Some(format_of(&disk)).filter(|found| *found == format);
                    for (round, from) in [from, None].into_iter().enumerate() {
                        let mut store = open(&disk).unwrap_or_else(|error| panic!("{story}: {error}"));
                        assert_eq!(store.recovery_report().upgraded_from, from, "{story}: round {round}");
                        assert!(
                            contents(&mut store) == expected,
                            "{story}: round {round} has another content"
                        );
                    }
                    assert_eq!(format_of(&disk), tickwheel_store::FORMAT, "{story}");
                }
                if !met {
                    break;
                }
            }
            assert!(
                before > 10 && after > 0,
                "{name}, {fault:?}: {before} before the change, {after} after it"
            );
        }
    }
}

/// The story: the disk was full when the new version was started. There is a clear error, and a start succeeds when there is room.
#[test]
fn a_full_disk_stops_an_upgrade_before_it_begins() {
    for (name, format) in EARLIER {
        let files = files(name);
        let disk = disk_with(&files);
        disk.set_space(Some(disk.used_bytes()));
        let Err(OpenError::Io(error)) = open(&disk) else {
            panic!("{name}: there is no room for a log file")
        };
        assert!(error.is_full(), "{error}");
        assert_eq!(format_of(&disk), format, "{name}");
        assert_is_whole(&disk, &files, name);
        disk.set_space(None);
        open(&disk).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format_of(&disk), tickwheel_store::FORMAT, "{name}");
    }
}
