//! Damage of each kind, alone and together.

use tickwheel_store::doctor::{Depth, Examination};

use crate::disk::Image;
use crate::doctor::patient::filled;

#[track_caller]
fn problem(found: &Examination, file: &str, what: &str) {
    let told = found.problems.iter().any(|problem| problem.file == file && problem.what.contains(what));
    assert!(told, "{what} of {file} is not among {:#?}", found.problems);
    assert!(!found.is_in_order());
}

/// Examines in both depths.
#[track_caller]
fn told(mut image: Image, file: &str, what: &str) -> Examination {
    problem(&image.examine(Depth::Opening), file, what);
    let found = image.examine(Depth::Records);
    problem(&found, file, what);
    found
}

#[test]
fn headers_footers_tails_frames_and_checkpoints() {
    let image = filled();
    let found = image.clone().examine(Depth::Records);
    let segment =
        found.segments.iter().find(|segment| segment.runs > Some(1)).expect("some runs").file.clone();
    let end = image.files[&segment].len();
    let log = found.logs.iter().find(|log| !log.spare && log.frames > 3).expect("a log").file.clone();
    let checkpoint = found.checkpoint.expect("a checkpoint").file;
    let cases: [(&str, usize, &str); 7] = [
        ("meta", 20, "checksum does not match"),
        (&segment, 3, "the header's checksum"),
        (&segment, 17, "the header's checksum"),
        (&segment, end - 40, "the end of a section"),
        (&segment, end - 66, "a footer's checksum"),
        (&log, 4_096 + 80, "frame"),
        (&checkpoint, 70, "a block's checksum"),
    ];
    for (file, byte, what) in cases {
        let mut image = image.clone();
        image.flip(file, byte, 4);
        let found = told(image, file, what);
        assert!(found.problems.iter().all(|problem| problem.to_do.contains("copy")), "{found:#?}");
    }
}

#[test]
fn a_record_is_told_in_the_deep_examination_and_the_others_are_checked_all_the_same() {
    let mut image = filled();
    let segments: Vec<String> =
        image.clone().examine(Depth::Records).segments.into_iter().map(|segment| segment.file).collect();
    for segment in &segments {
        image.flip(segment, 64 + 12, 1);
    }
    let found = image.examine(Depth::Opening);
    assert!(found.is_in_order(), "an opening does not read records: {:#?}", found.problems);
    let found = image.examine(Depth::Records);
    for segment in &segments {
        problem(&found, segment, "a record's checksum");
    }
    assert_eq!(found.problems.len(), segments.len(), "each once: {:#?}", found.problems);
    assert!(found.problems.iter().all(|problem| problem.offset == Some(64)));
}

/// An opening stops at the first thing that is wrong. The doctor goes on.
#[test]
fn damage_in_many_places_is_told_of_all_of_them() {
    let mut image = filled();
    let whole = image.examine(Depth::Records);
    let [first, second, third] = [0, 1, 2].map(|index| whole.segments[index].file.clone());
    let log = whole.logs.iter().find(|log| !log.spare && log.frames > 3).expect("a log").file.clone();
    image.flip(&first, 0, 1);
    image.files.remove(&second);
    let end = image.files[&third].len();
    image.files.get_mut(&third).expect("there").truncate(end - 1);
    image.flip(&log, 4_096 + 80, 1);
    for depth in [Depth::Opening, Depth::Records] {
        let found = image.examine(depth);
        problem(&found, &first, "header");
        problem(&found, &second, "missing");
        problem(&found, &third, "ends before");
        problem(&found, &log, "frame");
        assert_eq!(found.problems.len(), 4, "{:#?}", found.problems);
        assert_eq!((found.tasks, found.needed.len()), (None, 0));
        assert_eq!(found.segments.len(), whole.segments.len());
    }
}

#[test]
fn a_damaged_checkpoint_that_nothing_depends_on_is_told_with_nothing_to_do() {
    let mut image = filled();
    let whole = image.examine(Depth::Records);
    image.files.insert("shard-0000/checkpoint-00009999".to_owned(), vec![7; 300]);
    let found = told(image, "shard-0000/checkpoint-00009999", "header");
    assert!(found.problems.len() == 1 && found.problems[0].to_do.contains("makes up"), "{found:#?}");
    assert_eq!((found.tasks, found.checkpoint), (whole.tasks, whole.checkpoint));
}

#[test]
fn what_is_missing() {
    let image = filled();
    let checkpoint = image.first("shard-0000/checkpoint-");
    let mut gone = image.clone();
    gone.files.remove("meta");
    told(gone, "meta", "missing");
    let mut gone = image.clone();
    gone.folders.clear();
    gone.files.retain(|name, _| !name.contains('/'));
    told(gone, "shard-0000", "missing");
    let mut gone = image.clone();
    gone.files.remove(&checkpoint);
    let found = gone.examine(Depth::Records);
    assert!(!found.is_in_order() && !found.segments.is_empty(), "{found:#?}");
    let mut gone = image;
    gone.files.retain(|name, _| !name.contains("log-"));
    told(gone, "shard-0000", "log");
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
fn another_format_is_told_from_damage() {
    let image = filled();
    let found = image.clone().examine(Depth::Opening);
    let number = |name: &str| name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let (segment, log) = (found.segments[1].file.clone(), found.logs[0].file.clone());
    let checkpoint = found.checkpoint.expect("a checkpoint").file;
    let of_segment = seed(4, number(&segment));
    let of_checkpoint = seed(3, number(&checkpoint));
    let files = [("meta", 0), (&segment, of_segment), (&checkpoint, of_checkpoint), (&log, seed(1, 0))];
    for (file, seed) in files {
        let mut image = image.clone();
        raise_format(image.files.get_mut(file).expect("there"), seed);
        let found = told(image, file, "format");
        let problem = found.problems.iter().find(|problem| problem.file == file).expect("it was found above");
        assert!(problem.to_do.contains("the version that wrote it"), "{problem}");
    }
}
