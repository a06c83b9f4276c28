//! The reports on a directory that is in order, and on places that are no data directory.

use tickwheel_store::conformance;
use tickwheel_store::doctor::{Depth, Span, examine_dir};
use tickwheel_store::{ClockMode, FsDisk};

use crate::disk::Image;
use crate::doctor::patient::{self, Life, START_MS, filled};

#[test]
fn a_directory_in_order_is_told_as_it_opens() {
    let mut image = filled();
    let found = image.examine(Depth::Records);
    assert!(found.is_in_order(), "{:#?}", found.problems);
    assert_eq!((found.format, found.clock), (Some(1), Some(ClockMode::Real)));
    let mut store = patient::open(image.clone()).expect("it opens");
    let all = found.tasks.zip(found.dead).map(|(live, dead)| live + dead);
    assert_eq!(all, Some(store.len() as u64));
    assert_eq!(found.tasks, Some(found.queues.values().map(|of| of.live).sum()));
    assert_eq!(found.dead, Some(found.queues.values().map(|of| of.dead).sum()));
    assert_eq!(found.ended, Some(store.ended().count() as u64));
    assert_eq!(found.last_written, Some(store.last_wall()));
    let report = store.recovery_report();
    assert_eq!(found.checkpoint.as_ref().map(|checkpoint| &checkpoint.file), report.checkpoint.as_ref());
    assert_eq!((found.torn.as_ref(), report.torn.as_ref()), (None, None));
    assert!(conformance::contents(&mut store, 10_000).is_ok());

    // The directory has some of everything; without that the other tests would prove little.
    let spans: Vec<&Span> = found.segments.iter().map(|segment| &segment.span).collect();
    assert!(spans.contains(&&Span::Overdue) && spans.len() > 3, "{spans:?}");
    assert!(found.segments.iter().any(|segment| segment.live < Some(segment.records)));
    assert!(found.segments.iter().any(|segment| segment.runs > Some(1)));
    assert!(found.logs.iter().any(|log| log.spare) && found.logs.iter().any(|log| !log.spare));
    assert!(found.checked_bytes > Some(4_000), "{:?}", found.checked_bytes);
    let of_hour = found.segments.iter().find_map(|segment| match segment.span {
        Span::Between(from, to) if to.ms_since(from) == 3_600_000 => Some((from, to)),
        Span::Between(..) | Span::Overdue => None,
    });
    let (from, to) = of_hour.expect("a segment of an hour");
    assert!(from.as_ms() % 3_600_000 == 0 && to.as_ms() > START_MS, "{from:?} to {to:?}");

    let shallow = image.examine(Depth::Opening);
    assert_eq!(shallow.checked_bytes, None);
    assert_eq!(
        (shallow.segments, shallow.tasks, shallow.needed),
        (found.segments, found.tasks, found.needed)
    );
}

/// The files that are listed as needed open alone, as the whole directory does.
#[test]
fn what_is_needed_is_enough() {
    let mut image = filled();
    let found = image.examine(Depth::Opening);
    let mut copy = Image::default();
    copy.folders.insert("shard-0000".to_owned());
    for needed in &found.needed {
        let whole = || image.files[&needed.file][..needed.bytes as usize].to_vec();
        let bytes = needed.content.clone().unwrap_or_else(whole);
        copy.files.insert(needed.file.clone(), bytes);
    }
    assert!(copy.files.len() < image.files.len(), "no spare and no lock is needed");
    let contents = |image: Image| conformance::contents(&mut patient::open(image).expect("it opens"), 10_000);
    assert_eq!(contents(copy), contents(image));
}

#[test]
fn files_that_nothing_needs_and_files_of_others_are_told_apart() {
    let mut image = filled();
    for name in ["shard-0000/checkpoint-00000009.tmp", "shard-0000/segment-00009999", "meta.tmp"] {
        image.files.insert(name.to_owned(), b"x".to_vec());
    }
    for name in ["notes.txt", "shard-0000/log-7"] {
        image.files.insert(name.to_owned(), b"mine".to_vec());
    }
    let found = image.examine(Depth::Records);
    assert!(found.is_in_order(), "{:#?}", found.problems);
    let mut not_needed = found.not_needed.clone();
    not_needed.sort_unstable();
    assert_eq!(not_needed, ["meta.tmp", "shard-0000/checkpoint-00000009.tmp", "shard-0000/segment-00009999"]);
    assert_eq!(found.not_ours, ["notes.txt", "shard-0000/log-7"]);
}

#[test]
fn a_torn_tail_is_told_and_is_no_problem() {
    let mut image = filled();
    let before = image.examine(Depth::Opening);
    let log = before.logs.iter().filter(|log| !log.spare).max_by_key(|log| log.generation).expect("a log");
    // Half a frame, as a crash leaves one.
    let bytes = image.files.get_mut(&log.file).expect("there");
    let at = log.used_bytes as usize;
    bytes[at..at + 100].fill(0xaa);
    let found = image.examine(Depth::Records);
    assert!(found.is_in_order(), "{:#?}", found.problems);
    let torn = found.torn.expect("a torn tail");
    assert_eq!((&torn.file, torn.offset), (&log.file, log.used_bytes));
    assert_eq!(found.tasks, before.tasks);
}

#[test]
fn empty_and_foreign_places_are_no_data_directories() {
    let mut image = Image::default();
    let found = image.examine(Depth::Records);
    assert!(!found.is_ours && !found.is_in_order());
    assert!(found.problems[0].what.contains("empty"), "{:?}", found.problems);
    image.files.insert("holiday.jpg".to_owned(), vec![1]);
    let found = image.examine(Depth::Records);
    assert!(!found.is_ours && found.problems[0].what.contains("none is of a data directory"), "{found:?}");
    assert_eq!(found.not_ours, ["holiday.jpg"]);
    // A crash in the very first moments leaves a folder; the next opening goes on from there.
    let mut image = Image::default();
    image.folders.insert("shard-0000".to_owned());
    assert!(image.examine(Depth::Records).is_in_order());
}

#[test]
fn a_directory_of_the_file_system_is_left_byte_for_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    patient::fill(dir.path());
    let before = Image::of(dir.path());
    let found = examine_dir(dir.path(), Depth::Records).expect("it is there");
    assert!(found.is_in_order() && !found.in_use, "{:#?}", found.problems);
    assert!(Image::of(dir.path()) == before);
    assert_eq!(found, before.clone().examine(Depth::Records));

    let absent = dir.path().join("absent");
    let error = examine_dir(&absent, Depth::Opening).expect_err("it is not there");
    assert!(error.to_string().contains("absent") && !absent.exists(), "{error}");
    examine_dir(dir.path().join("meta"), Depth::Opening).expect_err("it is a file");
    // No store has ever opened this directory, and the examination does not open it either.
    let empty = tempfile::tempdir().expect("a directory");
    assert!(!examine_dir(empty.path(), Depth::Records).expect("it is there").is_ours);
    assert_eq!(Image::of(empty.path()), Image::default());
}

#[test]
fn a_directory_in_use_says_so_and_can_be_opened_right_after() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::begin(dir.path());
    for id in 1..=100 {
        life.put(id, "close", id as i64);
        let found = examine_dir(dir.path(), Depth::Records).expect("it is there");
        assert!(found.in_use && found.is_in_order(), "after {id}: {:#?}", found.problems);
    }
    life.stop();
    let found = examine_dir(dir.path(), Depth::Records).expect("it is there");
    assert_eq!((found.in_use, found.tasks), (false, Some(100)));
    patient::open(FsDisk::new(dir.path()).expect("a directory")).expect("no lock is left");
}

#[cfg(unix)]
#[test]
fn a_link_and_a_pipe_are_seen_and_never_waited_for() {
    use tickwheel_store::doctor::Directory;
    let dir = tempfile::tempdir().expect("a directory");
    patient::fill(dir.path());
    let mut directory = Directory::new(dir.path()).expect("it is there");
    assert_eq!(directory.first_link().expect("readable"), None);
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("shard-0000/segment-00008888"))
        .expect("made");
    assert_eq!(directory.first_link().expect("readable").as_deref(), Some("shard-0000/segment-00008888"));
}
