//! A disk that gives some bytes once and not again.

use tickwheel_store::{Disk, DiskError, DiskOp};

use crate::disk::Image;
use crate::history::directory;
use crate::honest::{contents, salvage_of};

/// What becomes of a read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum How {
    /// It fails.
    Error,
    /// It ends early.
    Short,
}

/// A disk whose reads fail, counted from 0.
struct Failing {
    image: Image,
    reads: u64,
    from: u64,
    to: u64,
    how: How,
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
        let fails = (self.from..self.to).contains(&self.reads);
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

/// The story: in the second pass a record of the log had no checksum, and what the disk failed to read was taken for zeroes. So payloads were
/// zeroes in the new directory, and no loss was told.
///
/// Each read is the first one that fails, in both passes, for ever or for a while: what is told is at least as bad as what happened.
#[test]
fn a_disk_that_fails_from_some_read_on_loses_nothing_in_silence() {
    let mut outcomes = [0; 3];
    for seed in [2, 5] {
        let image = directory(seed);
        let whole = contents(&image);
        let disk = |from, to, how| Failing { image: image.clone(), reads: 0, from, to, how };
        let mut sound = disk(u64::MAX, u64::MAX, How::Error);
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
