//! A disk that gives some bytes once and not again.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_engine::{Batch, Body, Reply, Request, Seq, TaskEffect, Timestamp};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::{Disk, DiskError, DiskOp};

use crate::disk::Image;
use crate::salvage::history::{directory, open};
use crate::salvage::honest::{contents, salvage_of};
use crate::salvage::shared::Shared;

/// The way in which a read fails.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum How {
    /// The read returns an error.
    Error,
    /// The read ends early.
    Short,
}

/// A disk whose reads fail, counted from 0.
struct Failing {
    image: Image,
    reads: u64,
    from: u64,
    to: u64,
    /// Other reads that fail.
    fails: BTreeSet<u64>,
    how: How,
}

impl Failing {
    /// A disk that does not fail.
    fn sound(image: &Image) -> Self {
        let (from, to) = (u64::MAX, u64::MAX);
        Self { image: image.clone(), reads: 0, from, to, fails: BTreeSet::new(), how: How::Error }
    }
}

impl Disk for Failing {
    fn lock(&mut self) -> Result<(), DiskError> {
        self.image.lock()
    }
    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        self.image.list(dir)
    }
    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.image.create_dir(dir)
    }
    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        self.image.create(file)
    }
    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.image.open(file)
    }
    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.image.len(file)
    }
    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        let fails = (self.from..self.to).contains(&self.reads) || self.fails.contains(&self.reads);
        self.reads += 1;
        let len = into.len();
        match (fails, self.how) {
            (false, _) => self.image.read(file, offset, into),
            (true, How::Short) => self.image.read(file, offset, &mut into[..len / 2]),
            (true, How::Error) => {
                let source = std::io::Error::other("the medium has lost it");
                Err(DiskError::new(DiskOp::Read, file, source))
            }
        }
    }
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.image.write_at(file, offset, bytes)
    }
    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        self.image.sync_data(file)
    }
    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        self.image.set_len(file, bytes)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.image.rename(from, to)
    }
    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.image.remove(file)
    }
    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.image.sync_dir(dir)
    }
    fn close(&mut self, file: &str) {
        self.image.close(file);
    }
    fn another(&self) -> Self {
        unreachable!("a salvage has one hand")
    }
    fn free_bytes(&mut self) -> u64 {
        0
    }
}

/// The story: in the second pass a record of the log had no checksum, and what the disk failed to read was taken for zeroes. So payloads
/// were zeroes in the new directory, and no loss was told.
///
/// Each read is the first one that fails, in both passes, for ever or for a while: what is told is at least as bad as what happened.
#[test]
fn a_disk_that_fails_from_some_read_on_loses_nothing_in_silence() {
    let mut outcomes = [0; 3];
    for seed in [2, 5] {
        let image = directory(seed);
        let whole = contents(&image);
        let disk = |from, to, how| Failing { from, to, how, ..Failing::sound(&image) };
        let mut sound = Failing::sound(&image);
        let outcome = salvage_of(&mut sound, &whole, "no failure").expect("it can be read");
        assert!(outcome.report.is_whole() && outcome.is_equal);
        for from in 0..sound.reads {
            for (for_reads, how) in
                [(1, How::Error), (3, How::Error), (u64::MAX, How::Error), (u64::MAX, How::Short)]
            {
                let story = format!("directory {seed}, {for_reads} reads from {from} on: {how:?}");
                let mut failing = disk(from, from.saturating_add(for_reads), how);
                match salvage_of(&mut failing, &whole, &story) {
                    // Without `meta` nothing is read.
                    Err(_) => outcomes[0] += 1,
                    Ok(outcome) => {
                        let has_failed = for_reads == u64::MAX && how == How::Error;
                        assert!(!has_failed || !outcome.report.read.unreadable.is_empty(), "{story}");
                        outcomes[if outcome.is_equal { 1 } else { 2 }] += 1;
                    }
                }
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "refused, saved whole, saved with losses: {outcomes:?}");
}

/// A payload has several blocks, and one of them is not read: the record around it looks as it did.
#[test]
fn a_block_in_the_middle_of_a_payload_is_not_taken_for_zeroes() {
    let image = large();
    let whole = contents(&image);
    let disk = |fails: BTreeSet<u64>| Failing { fails, ..Failing::sound(&image) };
    let mut sound = Failing::sound(&image);
    assert!(salvage_of(&mut sound, &whole, "no failure").expect("it can be read").is_equal);
    let (mut equal, mut lossy) = (0, 0);
    for from in 0..sound.reads {
        for block in 1..14 {
            for again in [0, 14] {
                let story = format!("read {from} and block {block} of it, and {again} reads later once more");
                let fails = [from, from + block, from + again, from + again + block];
                let outcome = salvage_of(&mut disk(fails.into()), &whole, &story);
                let Ok(outcome) = outcome else { continue };
                equal += u32::from(outcome.is_equal);
                lossy += u32::from(!outcome.is_equal);
            }
        }
    }
    assert!(equal > 0 && lossy > 0, "{equal} saved whole, {lossy} with losses");
}

/// A directory whose log has one task with a payload of 40,000 bytes.
fn large() -> Image {
    let shared = Shared::default();
    let mut owner = Owner::acquire(open(shared.clone()));
    let mut task = sample_task(1, 1, "q", "large", 1_800_000_000_000);
    task.body = Arc::new(Body::bytes(vec![b'x'; 40_000]));
    let effects = vec![TaskEffect::Stored { task: task.into(), body_known: false }];
    let batch = Batch { effects, ..Batch::default() };
    let wall = Timestamp::from_ms(1_700_000_000_000).expect("after 1970");
    let reply = owner.ask(Request::Commit { ownership: owner.acquired.ownership, seq: Seq(1), wall, batch });
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    drop(owner);
    shared.image()
}
