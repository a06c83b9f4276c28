//! Random damage to random directories.

use std::collections::BTreeMap;

use tickwheel_store::Table;

use crate::disk::Image;
use crate::salvage::history::{EFFECTS_MAX, Rng, directory};
use crate::salvage::honest::{Outcome, contents, salvage};
use crate::salvage::stories::logs;

/// Directories, and damages of each.
const DIRECTORIES: u64 = 8;
const DAMAGES: usize = 25;

/// Where a random byte is damaged: each kind of file as often as the others, and where there is something rather than where all is zero.
fn place(image: &Image, rng: &mut Rng) -> (String, usize) {
    let kinds =
        ["shard-0000/log-", "shard-0000/segment-", "shard-0000/checkpoint-", "meta", "shard-0000/newest-log"];
    let kind = kinds[[0, 0, 0, 1, 1, 1, 2, 2, 3, 4][rng.below(10)]];
    let files: Vec<&String> = image.files.keys().filter(|name| name.starts_with(kind)).collect();
    let file = files[rng.below(files.len())].clone();
    let bytes = &image.files[&file];
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
    // A log file has its frames from byte 4,096 on.
    let at = match kind {
        "shard-0000/log-" if used > 4_096 && rng.below(8) > 0 => 4_096 + rng.below(used - 4_096),
        _ => rng.below(used),
    };
    (file, at)
}

/// One byte is damaged: everything but what one checksum covers is saved, and that is told.
fn check(outcome: &Outcome, file: &str, story: &str) {
    let worse = outcome.lost.len() + outcome.changed.len();
    let back = outcome.back.len();
    if file.contains("/log-") {
        assert!(worse + back <= EFFECTS_MAX, "{story}: one frame has {EFFECTS_MAX} effects: {outcome:#?}");
        // All of a damaged frame is named but what the damaged byte is part of.
        let unnamed = outcome.unnamed();
        let missed = unnamed.len() + outcome.unnamed_rules();
        assert!(missed <= 1, "{story}: {unnamed:?} are not named: {:#?}", outcome.report.losses);
        assert_eq!(outcome.not_lost(), [], "{story}: {:#?}", outcome.report.losses);
    } else if file.contains("/segment-") {
        assert!(worse <= 1, "{story}: one record is one task: {:#?}", outcome.report.losses);
        let unnamed: Vec<u64> =
            outcome.unnamed().into_iter().filter(|id| !outcome.back.contains(id)).collect();
        assert_eq!(unnamed, [], "{story}: {:#?}", outcome.report.losses);
        assert_eq!(outcome.not_lost(), [], "{story}: {:#?}", outcome.report.losses);
        if back > 0 {
            assert_eq!(outcome.loss().unit.name(), "tombstones", "{story}");
        }
    } else if file.contains("/checkpoint-") {
        assert_eq!(worse, 0, "{story}: {:#?}", outcome.report.losses);
        assert!(outcome.unnamed_rules() <= 1, "{story}: {:#?}", outcome.report.losses);
    } else {
        assert!(outcome.report.is_whole() && outcome.is_equal, "{story}: {:#?}", outcome.report);
    }
}

#[test]
fn of_200_damaged_bytes_all_is_saved_but_what_one_checksum_covers() {
    let mut found = BTreeMap::new();
    for seed in 1..=DIRECTORIES {
        let image = directory(seed);
        let whole = contents(&image);
        assert!(whole.len() > 40, "seed {seed} has {} tasks", whole.len());
        let mut rng = Rng(seed << 32);
        for _ in 0..DAMAGES {
            let (file, at) = place(&image, &mut rng);
            let bits = 1 + rng.below(255) as u8;
            let story = format!("directory {seed}, byte {at} of {file} with {bits:#x}");
            let mut damaged = image.clone();
            damaged.flip(&file, at, bits);
            let outcome =
                salvage(&mut damaged, &whole, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
            check(&outcome, &file, &story);
            let kind = file.trim_start_matches("shard-0000/").split('-').next().unwrap_or("").to_owned();
            let (all, lossy, differ) = found.entry(kind).or_insert((0, 0, 0));
            *all += 1;
            *lossy += u32::from(!outcome.report.is_whole());
            *differ += u32::from(!outcome.is_equal);
        }
    }
    println!("of each kind: damages, with losses, with differences: {found:?}");
    assert_eq!(found.values().map(|(all, ..)| all).sum::<u32>(), 200);
    // The test is of no worth if no damage hit anything.
    assert!(found["log"].2 > 5 && found["segment"].2 > 5, "{found:?}");
}

/// Each frame in turn is damaged in the middle. Keys are used again and dead tasks are redriven, so the lost end or death of a task leaves
/// two with one key.
#[test]
fn of_each_frame_that_is_lost_the_tasks_are_named() {
    let (mut frames, mut left_out) = (0, 0);
    for seed in 1..=DIRECTORIES {
        let image = directory(seed);
        let whole = contents(&image);
        for (log, at, bytes) in logs(&image).iter().flat_map(|(log, frames)| {
            let behind = frames.iter().skip(1).copied().chain([image.files[log].len()]);
            frames.iter().zip(behind).map(move |(at, to)| (log, *at, to - at))
        }) {
            let story = format!("directory {seed}, the frame at byte {at} of {log}");
            let mut damaged = image.clone();
            damaged.flip(log, at + 72 + (bytes.min(400) - 72) / 2, 0x20);
            let outcome =
                salvage(&mut damaged, &whole, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
            check(&outcome, log, &story);
            frames += u32::from(!outcome.report.is_whole());
            left_out += outcome.report.superseded;
        }
    }
    println!("{frames} frames, {left_out} tasks were left out, because another one has their key");
    assert!(frames > 50 && left_out > 0, "{frames} frames, {left_out} tasks left out");
}

#[test]
fn what_was_not_damaged_is_saved_whole() {
    for seed in 1..=DIRECTORIES {
        let mut image = directory(seed);
        let whole = contents(&image);
        let outcome = salvage(&mut image, &whole, &format!("directory {seed}")).expect("it is whole");
        assert!(outcome.report.is_whole() && outcome.is_equal, "{:#?}", outcome.report);
        // The copy of a copy is the same again.
        let again = salvage(&mut outcome.image.clone(), &whole, "its copy").expect("it is whole");
        assert!(again.report.is_whole() && again.is_equal);
    }
}

/// A file that is gone, cut short, or in the place of another: what is told is at least as bad as what happened.
#[test]
fn files_that_are_gone_cut_or_swapped_are_told_honestly() {
    for seed in 1..=DIRECTORIES {
        let image = directory(seed);
        let whole = contents(&image);
        let names: Vec<String> = image.files.keys().filter(|name| name.contains('/')).cloned().collect();
        let mut rng = Rng(seed);
        for name in &names {
            let story = format!("directory {seed} without {name}");
            let mut damaged = image.clone();
            damaged.files.remove(name);
            told(&mut damaged, &whole, &story);

            let mut damaged = image.clone();
            let len = rng.below(image.files[name].len());
            damaged.files.get_mut(name).expect("there").truncate(len);
            told(&mut damaged, &whole, &format!("directory {seed}, {name} with {len} bytes"));

            let other = &names[rng.below(names.len())];
            let mut damaged = image.clone();
            let (one, two) = (image.files[name].clone(), image.files[other].clone());
            damaged.files.insert(name.clone(), two);
            damaged.files.insert(other.clone(), one);
            told(&mut damaged, &whole, &format!("directory {seed}, {name} and {other} are swapped"));
        }
    }
}

#[track_caller]
fn told(damaged: &mut Image, whole: &Table, story: &str) {
    if let Err(error) = salvage(damaged, whole, story) {
        panic!("{story}: {error}");
    }
}
