//! Damage of one kind at a time, and what is said of it.

use tickwheel_store::salvage::{Fate, MayHoldEnded, Unit, read};

use tickwheel_store::conformance::Owner;

use crate::disk::Image;
use crate::salvage::history::{directory, open};
use crate::salvage::honest::{contents, salvage, tasks};
use crate::salvage::shared::Shared;

/// Where the frames of a log file begin, by their heads.
fn frames(image: &Image, file: &str) -> Vec<usize> {
    let bytes = &image.files[file];
    let generation = &bytes[16..24];
    let mut frames = Vec::new();
    let mut at = 4_096;
    while bytes.get(at..at + 72).is_some_and(|head| head.starts_with(b"TWfr") && head[24..32] == *generation)
    {
        frames.push(at);
        let ops = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes")) as usize;
        at += (72 + ops).next_multiple_of(8);
    }
    frames
}

/// The log files by their generations, and their frames.
pub(crate) fn logs(image: &Image) -> Vec<(String, Vec<usize>)> {
    let names = image.files.keys().filter(|name| name.starts_with("shard-0000/log-"));
    let mut logs: Vec<(u64, String)> = names
        .map(|name| {
            (u64::from_le_bytes(image.files[name][16..24].try_into().expect("eight bytes")), name.clone())
        })
        .collect();
    logs.sort();
    logs.into_iter().map(|(_, name)| (name.clone(), frames(image, &name))).collect()
}

/// The newest log file with some frames.
fn newest_log(image: &Image) -> (String, Vec<usize>) {
    logs(image).into_iter().rfind(|(_, frames)| frames.len() > 4).expect("a log with frames")
}

#[test]
fn frames_behind_a_damaged_one_are_read() {
    let image = directory(3);
    let whole = contents(&image);
    let (log, frames) = newest_log(&image);
    // In its records, in its length, in its magic.
    for byte in [80, 9, 1] {
        let mut damaged = image.clone();
        damaged.flip(&log, frames[1] + byte, 0x10);
        let outcome = salvage(&mut damaged, &whole, &format!("byte {byte}")).expect("the rest can be read");
        let loss = outcome.loss();
        assert_eq!(
            (loss.unit, loss.file.as_str(), loss.certain),
            (Unit::Frame, log.as_str(), true),
            "{loss:?}"
        );
        assert_eq!((loss.from, loss.to), (frames[1] as u64, Some(frames[2] as u64)), "{loss:?}");
        assert!(loss.tasks_max.is_some_and(|most| most <= 4), "{loss:?}");
        assert_ne!(outcome.report.may_hold_ended(), MayHoldEnded::Unknown);
    }
}

#[test]
fn the_last_write_may_be_unfinished_or_damaged_and_that_is_told() {
    let mut told = 0;
    for seed in 1..9 {
        let image = directory(seed);
        let whole = contents(&image);
        let (log, frames) =
            logs(&image).into_iter().rfind(|(_, frames)| !frames.is_empty()).expect("a log with frames");
        let mut damaged = image.clone();
        damaged.flip(&log, frames[frames.len() - 1] + 40, 1);
        let outcome = salvage(&mut damaged, &whole, "the last frame").expect("the rest can be read");
        let loss = outcome.loss();
        assert_eq!(loss.from, frames[frames.len() - 1] as u64);
        // A graceful stop notes that it was synced.
        if !loss.certain {
            assert!(loss.what.contains("cut short"), "{loss:?}");
            told += 1;
        }
    }
    assert!(told > 0, "each of them was stopped");
}

#[test]
fn a_damaged_record_of_a_segment_is_told_with_its_key() {
    let mut named = 0;
    for seed in 1..9 {
        let image = directory(seed);
        let whole = contents(&image);
        for segment in image.files.keys().filter(|name| name.contains("/segment-")) {
            let mut damaged = image.clone();
            // In the payload of the first record: its names are whole.
            let length = image.files[segment][69..73].try_into().expect("four bytes");
            let record = u32::from_le_bytes(length) as usize;
            damaged.flip(segment, 64 + 9 + record - 3, 1);
            let outcome = salvage(&mut damaged, &whole, segment).expect("the rest can be read");
            if outcome.report.is_whole() {
                // The record was dead, or the checkpoint does not list the segment.
                continue;
            }
            let loss = outcome.loss();
            assert_eq!((loss.unit, loss.tasks.len(), loss.from), (Unit::Record, 1, 64), "{loss:?}");
            let lost = &loss.tasks[0];
            let task = whole.get(lost.id).expect("it was there");
            assert_eq!((&lost.queue, &lost.key), (&Some(task.queue.clone()), &Some(task.key.clone())));
            assert_eq!(lost.fate, Fate::Lost);
            assert_eq!(outcome.lost.iter().copied().collect::<Vec<_>>(), [lost.id]);
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn tails_footers_and_headers_are_no_loss() {
    let image = directory(4);
    let whole = contents(&image);
    let (log, _) = newest_log(&image);
    let checkpoint = image.first("shard-0000/checkpoint-");
    let segments: Vec<String> =
        image.files.keys().filter(|name| name.contains("/segment-")).cloned().collect();
    let mut places: Vec<(String, usize)> = segments.iter().map(|name| (name.clone(), 20)).collect();
    places.extend(segments.iter().map(|name| (name.clone(), image.files[name].len() - 40)));
    places.extend([
        (log, 17),
        (checkpoint, 30),
        ("meta".to_owned(), 33),
        ("shard-0000/newest-log".to_owned(), 17),
    ]);
    for (file, byte) in places {
        let mut damaged = image.clone();
        damaged.flip(&file, byte, 0x55);
        let story = format!("byte {byte} of {file}");
        let outcome = salvage(&mut damaged, &whole, &story).expect("it can be read");
        assert!(outcome.report.is_whole() && outcome.is_equal, "{story}: {:#?}", outcome.report);
    }
}

#[test]
fn a_damaged_run_footer_is_made_up_for_by_the_records() {
    let image = directory(4);
    let whole = contents(&image);
    let mut seen = 0;
    for segment in image.files.keys().filter(|name| name.contains("/segment-")) {
        let bytes = &image.files[segment];
        let tail = bytes.len() - 64;
        if bytes[tail + 12] != 1 {
            continue;
        }
        let mut damaged = image.clone();
        damaged.flip(segment, tail - 5, 1);
        let outcome = salvage(&mut damaged, &whole, segment).expect("it can be read");
        assert!(outcome.report.is_whole() && outcome.is_equal, "{segment}: {:#?}", outcome.report);
        seen += 1;
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn lost_tombstones_bring_ended_tasks_back_and_that_is_told() {
    let mut back = 0;
    for seed in 1..9 {
        let image = directory(seed);
        let whole = contents(&image);
        for segment in image.files.keys().filter(|name| name.contains("/segment-")) {
            let bytes = &image.files[segment];
            let tail = bytes.len() - 64;
            if bytes[tail + 12] != 2 {
                continue;
            }
            let mut damaged = image.clone();
            damaged.flip(segment, tail - 1, 1);
            let outcome = salvage(&mut damaged, &whole, segment).expect("it can be read");
            if outcome.report.is_whole() {
                // The checkpoint does not list it.
                assert!(outcome.is_equal);
                continue;
            }
            let loss = outcome.loss();
            assert_eq!((loss.unit, loss.tasks_max), (Unit::Tombstones, Some(0)), "{loss:?}");
            assert!(matches!(outcome.report.may_hold_ended(), MayHoldEnded::AtMost(_)));
            back += outcome.back.len();
        }
    }
    assert!(back > 0, "no tombstone stood for a task that ended");
}

#[test]
fn without_a_checkpoint_the_tasks_are_there_and_doubt_is_told() {
    let image = directory(5);
    let whole = contents(&image);
    let mut damaged = image.clone();
    let checkpoint = image.first("shard-0000/checkpoint-");
    damaged.files.remove(&checkpoint);
    let outcome = salvage(&mut damaged, &whole, "no checkpoint").expect("it can be read");
    assert!(outcome.lost.is_empty(), "{:?}", outcome.lost);
    assert_eq!(outcome.report.may_hold_ended(), MayHoldEnded::Unknown);
    assert!(outcome.report.losses.iter().any(|loss| loss.unit == Unit::Checkpoint), "{:#?}", outcome.report);
}

/// The story: a power cut left a checkpoint that was cut within its header, and the salvage panicked.
#[test]
fn a_checkpoint_without_a_whole_header_is_told() {
    let image = directory(5);
    let whole = contents(&image);
    let checkpoint = image.first("shard-0000/checkpoint-");
    for len in [0, 1, 40, 63, 64, 70] {
        let mut damaged = image.clone();
        damaged.files.get_mut(&checkpoint).expect("it is there").truncate(len);
        let story = format!("a checkpoint of {len} bytes");
        let outcome = salvage(&mut damaged, &whole, &story).expect("the rest can be read");
        assert!(outcome.lost.is_empty(), "{story}: {:?}", outcome.lost);
        assert!(
            outcome.report.losses.iter().any(|loss| loss.unit != Unit::Frame),
            "{story}: {:#?}",
            outcome.report
        );
    }
}

#[test]
fn a_missing_segment_is_told_with_how_many_records_it_had() {
    let image = directory(6);
    let whole = contents(&image);
    let mut damaged = image.clone();
    let segment = image.first("shard-0000/segment-");
    damaged.files.remove(&segment);
    let outcome = salvage(&mut damaged, &whole, "no segment").expect("it can be read");
    let loss = outcome.loss();
    assert_eq!((loss.unit, &loss.file), (Unit::Segment, &segment));
    assert!(loss.what.contains("missing"), "{loss:?}");
}

/// The disk fails to read some blocks: what is in them is lost, and the rest is read.
#[test]
fn blocks_that_cannot_be_read_are_a_loss_and_no_end() {
    let image = directory(8);
    let whole = contents(&image);
    let (log, frames) = newest_log(&image);
    let segment = image.first("shard-0000/segment-");
    for (file, block) in [(log, frames[1] as u64 / 4_096), (segment, 0)] {
        let mut damaged = image.clone();
        damaged.unreadable = Some((file.clone(), block * 4_096));
        let outcome = salvage(&mut damaged, &whole, &file).expect("the rest can be read");
        let unreadable = &outcome.report.read.unreadable;
        assert!(
            unreadable.iter().any(|(name, from, _)| *name == file && *from == block * 4_096),
            "{unreadable:?}"
        );
        assert!(!outcome.report.is_whole() || outcome.is_equal, "{file}");
    }
}

#[test]
fn what_a_salvage_needs_and_cannot_have_is_an_error() {
    let image = directory(1);
    for (change, what) in [
        (
            (|image| drop(image.files.remove("meta"))) as fn(&mut Image),
            "meta is damaged at byte 0: it is missing",
        ),
        (|image| image.files.get_mut("meta").expect("there")[32..36].fill(9), "more than one byte"),
        (|image| image.folders.clear(), "the folder is missing"),
    ] {
        let mut damaged = image.clone();
        change(&mut damaged);
        let error = read(&mut damaged, &mut |_| {}).err().expect("nothing can be read").to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// Ids and changes are never given out twice, and leases of a whole directory go on.
#[test]
fn numbers_go_on_where_they_ended() {
    let image = directory(7);
    let whole = contents(&image);
    let outcome = salvage(&mut image.clone(), &whole, "whole").expect("it can be read");
    let last = tasks(&whole).iter().map(|task| task.id).max().expect("tasks");
    let now = contents(&outcome.image);
    assert_eq!(now.state(), whole.state());
    let owner = |image: &Image| Owner::acquire(open(Shared::of(image.clone()))).acquired;
    let (before, after) = (owner(&image), owner(&outcome.image));
    assert_eq!(after.ownership, before.ownership, "the next owner is the same, so its leases go on");
    assert_eq!((after.last_wall, after.secret), (before.last_wall, before.secret));
    assert!(!after.page.leased.is_empty() && after.page.leased == before.page.leased);
    let (log, frames) = newest_log(&image);
    let mut damaged = image.clone();
    damaged.flip(&log, frames[1] + 80, 1);
    let outcome = salvage(&mut damaged, &whole, "a frame").expect("it can be read");
    let (ids_reserved, numbers) = contents(&outcome.image).state().parts();
    assert!(ids_reserved >= last + (1 << 32), "{ids_reserved} after task {last}");
    assert!(ids_reserved < 1 << 53, "JSON counts no further");
    assert_eq!(numbers, u64::MAX, "any number may be somebody's key now");
}

/// The story: a log has more changes than were passed over where its end was lost, and their numbers were given out again.
#[test]
fn where_the_end_of_the_log_is_lost_changes_and_owners_are_passed_over() {
    let image = directory(7);
    let whole = contents(&image);
    let owner = |image: &Image| Owner::acquire(open(Shared::of(image.clone()))).acquired.ownership;
    let before = owner(&image);
    let mut damaged = image.clone();
    for (log, frames) in logs(&image).into_iter().filter(|(_, frames)| !frames.is_empty()) {
        damaged.files.get_mut(&log).expect("there")[frames[0]..].fill(0xa5);
    }
    let outcome = salvage(&mut damaged, &whole, "no log").expect("it can be read");
    let after = owner(&outcome.image);
    assert!(after.last_seq.0 >= before.last_seq.0 - 400 + (1 << 32), "{after:?} after {before:?}");
    assert!(after.last_seq.0 < 1 << 53, "JSON counts no further");
    assert!(after.epoch.0 >= before.epoch.0 + (1 << 20) - 1, "{after:?} after {before:?}");
}

/// Two holes in the records of a run whose footer is damaged too: each is told with its bytes, and neither is said to be without a task.
#[test]
fn each_hole_of_a_run_without_a_footer_is_told() {
    let mut seen = 0;
    for seed in 1..9 {
        let image = directory(seed);
        let whole = contents(&image);
        for segment in image.files.keys().filter(|name| name.contains("/segment-")) {
            let bytes = &image.files[segment];
            let tail = bytes.len() - 64;
            // How long the record at a place is, or what looks like one there.
            let record = |at: usize| {
                let length = bytes
                    .get(at + 5..at + 9)
                    .map_or(0, |length| u32::from_le_bytes(length.try_into().expect("four bytes")) as usize);
                9 + length.min(bytes.len())
            };
            let (first, second) = (64, 64 + record(64));
            let third = second + record(second);
            if bytes[tail + 12] != 1 || third + record(third) + 400 > tail {
                continue;
            }
            let mut damaged = image.clone();
            // The payloads of the first and of the third record, and the footer.
            for at in [second - 3, third + record(third) - 3, tail - 5] {
                damaged.flip(segment, at, 1);
            }
            let outcome = salvage(&mut damaged, &whole, segment).expect("it can be read");
            let holes: Vec<_> =
                outcome.report.losses.iter().filter(|loss| loss.unit == Unit::Records).collect();
            // Else the records are of an earlier run, and the footer of that run is whole.
            if outcome.lost.len() == 2 && !holes.is_empty() {
                assert_eq!(holes.len(), 2, "{holes:#?}");
                // Each hole has a record, and both have two together.
                assert!(holes.iter().all(|hole| hole.tasks_max == Some(1)), "{holes:#?}");
                assert!(
                    holes.iter().all(|hole| hole
                        .what
                        .contains("this part and 1 other part of the file had at most 2 records together")),
                    "{holes:#?}"
                );
                assert_eq!((holes[0].from, holes[0].to), (first as u64, Some(second as u64)));
                assert_eq!(holes[1].from, third as u64);
                seen += 1;
            }
        }
    }
    assert!(seen > 2, "{seen}");
}

/// Two frames with changes of one task are damaged: the task is named in one of the two losses.
#[test]
fn a_task_that_two_losses_are_about_is_named_once() {
    let mut in_both = 0;
    for seed in 1..9 {
        let image = directory(seed);
        let whole = contents(&image);
        for (log, frames) in logs(&image) {
            for pair in frames.windows(3).take(12) {
                let mut damaged = image.clone();
                // The checksum of each frame. All its records can still be decoded.
                for frame in [pair[0], pair[2]] {
                    damaged.flip(&log, frame + 4, 1);
                }
                let Ok(outcome) = salvage(&mut damaged, &whole, &log) else { continue };
                let losses = &outcome.report.losses;
                in_both += usize::from(losses.iter().filter(|loss| !loss.tasks.is_empty()).count() > 1);
                let mut named: Vec<u64> =
                    losses.iter().flat_map(|loss| &loss.tasks).map(|task| task.id).collect();
                let all = named.len();
                named.sort_unstable();
                named.dedup();
                assert_eq!(named.len(), all, "{log} {pair:?}: {losses:#?}");
            }
        }
    }
    assert!(in_both > 2, "{in_both}");
}
