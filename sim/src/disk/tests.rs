//! Tests of the promises that the simulated disk gives to the tests that use it.

use super::*;
use crate::rng::Rng;

fn written(disk: &mut SimDisk, bytes: &[u8]) {
    disk.create("f").expect("new");
    disk.write_at("f", 0, bytes).expect("there");
}

fn content(disk: &mut SimDisk) -> Option<Vec<u8>> {
    let len = disk.len("f").ok()?;
    let mut bytes = vec![0; len as usize];
    disk.read("f", 0, &mut bytes).expect("there");
    Some(bytes)
}

#[test]
fn what_was_synced_survives_every_crash() {
    for seed in 0..200 {
        let mut disk = SimDisk::new();
        written(&mut disk, b"kept");
        disk.sync_data("f").expect("there");
        disk.sync_dir("").expect("there");
        disk.write_at("f", 4, b" or not").expect("there");
        disk.crash(&mut Rng::new(seed));
        let after = content(&mut disk).expect("the name was synced");
        assert_eq!(after[..4], *b"kept", "seed {seed}");
    }
}

#[test]
fn what_was_not_synced_may_stay_go_or_be_torn() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let mut disk = SimDisk::new();
        written(&mut disk, b"old!");
        disk.sync_data("f").expect("there");
        disk.sync_dir("").expect("there");
        disk.write_at("f", 0, b"new!").expect("there");
        disk.crash(&mut Rng::new(seed));
        seen.insert(content(&mut disk).expect("the name was synced"));
    }
    for wanted in [*b"old!", *b"new!", *b"ned!", *b"nld!"] {
        assert!(seen.contains(wanted.as_slice()), "{:?} never happened", String::from_utf8_lossy(&wanted));
    }
}

#[test]
fn a_name_that_was_not_synced_may_be_gone_though_its_data_was() {
    let gone = (0..100).filter(|&seed| {
        let mut disk = SimDisk::new();
        written(&mut disk, b"data");
        disk.sync_data("f").expect("there");
        disk.crash(&mut Rng::new(seed));
        content(&mut disk).is_none()
    });
    assert!((10..90).contains(&gone.count()));
}

#[test]
fn a_losing_sync_shows_the_data_until_the_crash() {
    let mut disk = SimDisk::new();
    written(&mut disk, b"old!");
    disk.sync_data("f").expect("there");
    disk.sync_dir("").expect("there");
    disk.write_at("f", 0, b"new!").expect("there");
    disk.fail_at(1, Fault::LosingSync);
    disk.sync_data("f").expect_err("it was to fail");
    disk.sync_data("f").expect("the next one succeeds");
    assert_eq!(content(&mut disk).as_deref(), Some(b"new!".as_slice()));
    disk.crash(&mut Rng::new(1));
    assert_eq!(content(&mut disk).as_deref(), Some(b"old!".as_slice()));
}

#[test]
fn a_full_disk_takes_nothing_that_grows() {
    let mut disk = SimDisk::new();
    written(&mut disk, b"1234");
    disk.set_space(Some(6));
    assert_eq!(disk.free_bytes(), 2);
    let error = disk.write_at("f", 4, b"567").expect_err("there is no space");
    assert!(error.is_full(), "{error}");
    assert_eq!(content(&mut disk).as_deref(), Some(b"1234".as_slice()));
    disk.write_at("f", 1, b"xxxxx").expect("there is space");
    disk.set_space(Some(0));
    disk.write_at("f", 0, b"yyyyyy").expect("it does not grow");
    disk.remove("f").expect("there");
    assert_eq!(disk.used_bytes(), 0);
}

#[test]
fn a_lying_sync_shows_only_after_a_crash_that_brings_it_out() {
    let mut disk = SimDisk::new();
    written(&mut disk, b"old!");
    disk.sync_data("f").expect("there");
    disk.sync_dir("").expect("there");
    disk.write_at("f", 0, b"new!").expect("there");
    disk.fail_at(1, Fault::LyingSync);
    disk.sync_data("f").expect("it says so");
    disk.write_at("f", 3, b"? and more").expect("there");
    disk.sync_data("f").expect("an honest one");
    assert_eq!(disk.lies(), (1, 1));
    assert_eq!(content(&mut disk.after_lies()).as_deref(), Some(b"old? and more".as_slice()));
    disk.crash(&mut Rng::new(1));
    assert_eq!(content(&mut disk).as_deref(), Some(b"new? and more".as_slice()));
}

#[test]
fn of_a_lying_sync_of_the_log_only_later_frames_tell() {
    let mut disk = SimDisk::new();
    disk.create_dir("shard-0000").expect("new");
    for file in ["shard-0000/log-00000001", "shard-0000/log-00000002", "shard-0000/segment-00000001"] {
        disk.create(file).expect("new");
        disk.write_at(file, 0, b"old!").expect("there");
        disk.sync_data(file).expect("there");
    }
    disk.write_at("shard-0000/log-00000001", 0, b"TWfr lost").expect("there");
    disk.fail_at(1, Fault::LyingSync);
    disk.sync_data("shard-0000/log-00000001").expect("it says so");
    for (file, bytes, told) in [
        ("shard-0000/log-00000001", b"".as_slice(), 0),
        ("shard-0000/log-00000002", b"\0\0\0\0".as_slice(), 0),
        ("shard-0000/segment-00000001", b"more", 0),
        ("shard-0000/log-00000002", b"TWfr kept", 1),
    ] {
        disk.write_at(file, 0, bytes).expect("there");
        disk.sync_data(file).expect("an honest one");
        assert_eq!(disk.lies(), (1, told), "{file} {bytes:?}");
    }
}

#[test]
fn a_chosen_crash_keeps_what_was_chosen() {
    for (kept, last, wanted) in [
        (0b000, LastWrite::Whole, "old!"),
        (0b001, LastWrite::Whole, "Nld!"),
        (0b110, LastWrite::Whole, "oEW!"),
        (0b111, LastWrite::Torn(512), "NEd!"),
    ] {
        let mut disk = SimDisk::new();
        written(&mut disk, b"old!");
        disk.sync_data("f").expect("there");
        disk.sync_dir("").expect("there");
        disk.write_at("f", 0, b"N").expect("there");
        disk.write_at("f", 1, b"E").expect("there");
        disk.write_at("f", 2, b"W").expect("there");
        assert_eq!(disk.unsynced(), 3);
        disk.crash_keeping(kept, last);
        assert_eq!(content(&mut disk).as_deref(), Some(wanted.as_bytes()), "{kept:b} {last:?}");
    }
}

#[test]
fn reads_go_wrong_once_and_at_the_call_that_was_named() {
    let mut disk = SimDisk::new();
    written(&mut disk, &[7; 2_048]);
    for fault in [Fault::Error, Fault::FlippedRead] {
        disk.fail_nth(DiskOp::Read, 2, fault);
        let mut read = || {
            let mut bytes = vec![0; 2_048];
            disk.read("f", 0, &mut bytes).map(|len| (len, bytes.iter().filter(|&&byte| byte == 7).count()))
        };
        assert_eq!(read().expect("the first one is good"), (2_048, 2_048));
        match (fault, read()) {
            (Fault::Error, Err(error)) => assert!(error.to_string().contains("read f"), "{error}"),
            (_, read) => assert_eq!(read.expect("it is read"), (2_048, 2_047)),
        }
        assert_eq!(read().expect("it is over"), (2_048, 2_048));
    }
}

#[test]
fn a_dead_machine_answers_nothing_until_it_is_started_again() {
    let mut disk = SimDisk::new();
    disk.fail_at(2, Fault::Crash);
    disk.create("f").expect("before");
    disk.write_at("f", 0, b"x").expect_err("it died here");
    disk.sync_data("f").expect_err("dead");
    disk.len("f").expect_err("dead");
    disk.crash(&mut Rng::new(1));
    assert!(!disk.is_crashed());
    disk.list("").expect("alive");
}
