//! The sections of a segment: parts of the file, each appended by one checkpoint.

use crate::checksum::crc;
use crate::codec::{DecodeError, Reader, put_varint};
use crate::layout::{le_u32, le_u64};

const MAGIC: [u8; 8] = *b"TWsectio";

/// Bytes of a tail, which ends each section.
pub(crate) const TAIL_BYTES: usize = 64;

/// The content of a section. Files have the number of the kind, so these numbers never change.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SectionKind {
    /// A run: records in the order of their due keys, then the footer that says where each record is.
    Run = 1,
    /// Tombstones: the offsets of records in the same file that are dead.
    Tombstones = 2,
}

/// The last bytes of a section, which describe the section. A reader finds the sections from the end of the file to its beginning.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tail {
    pub(crate) kind: SectionKind,
    /// The offset of the section's first byte in the file.
    pub(crate) start: u64,
    /// The offset where the section's footer begins. The footer ends where the tail begins.
    pub(crate) footer_at: u64,
    /// The footer's checksum.
    pub(crate) footer_sum: u32,
    /// How many records or tombstones the section has. A tail that was read has no more than its section has bytes.
    pub(crate) count: u64,
}

/// A section of a file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    pub(crate) tail: Tail,
    /// The offset in the file where the tail begins.
    pub(crate) tail_at: u64,
}

impl Section {
    /// Returns the length of the footer (bytes).
    pub(crate) fn footer_bytes(&self) -> u64 {
        self.tail_at - self.tail.footer_at
    }
}

impl Tail {
    /// Appends the tail, which will be written at `at` of its file.
    pub(crate) fn put(self, out: &mut Vec<u8>, at: u64, seed: u32) {
        let mut bytes = [0; TAIL_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..16].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.footer_at.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.footer_sum.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.count.to_le_bytes());
        let sum = tail_sum(&bytes, at, seed);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads the tail that is at `at` of its file; `None` if it does not check out there.
    pub(crate) fn read(bytes: &[u8], at: u64, seed: u32) -> Option<Self> {
        let bytes = bytes.first_chunk::<TAIL_BYTES>()?;
        if bytes[..8] != MAGIC || le_u32(bytes, 8) != tail_sum(bytes, at, seed) {
            return None;
        }
        let kinds = [SectionKind::Run, SectionKind::Tombstones];
        let tail = Self {
            kind: kinds.into_iter().find(|kind| *kind as u32 == le_u32(bytes, 12))?,
            start: le_u64(bytes, 16),
            footer_at: le_u64(bytes, 24),
            footer_sum: le_u32(bytes, 32),
            count: le_u64(bytes, 40),
        };
        let is_in_order = tail.start <= tail.footer_at && tail.footer_at <= at;
        // Each record and each tombstone takes at least one byte. So the counts of all sections of a file can be added up.
        (is_in_order && tail.count <= at - tail.start).then_some(tail)
    }
}

fn tail_sum(bytes: &[u8; TAIL_BYTES], at: u64, seed: u32) -> u32 {
    crc(crc(crc(seed, &at.to_le_bytes()), &bytes[..8]), &bytes[12..])
}

/// Appends a whole section of tombstones, which will be written at `start` of its file. `offsets` are the offsets of dead records of the
/// same file; this function sorts them.
pub(crate) fn put_tombstones(out: &mut Vec<u8>, offsets: &mut [u64], start: u64, seed: u32) {
    offsets.sort_unstable();
    let at = out.len();
    let mut before = 0;
    for offset in offsets.iter() {
        put_varint(out, offset - before);
        before = *offset;
    }
    let footer = &out[at..];
    let tail_at = start + footer.len() as u64;
    let tail = Tail {
        kind: SectionKind::Tombstones,
        start,
        footer_at: start,
        footer_sum: crc(seed, footer),
        count: offsets.len() as u64,
    };
    tail.put(out, tail_at, seed);
}

/// Reads the offsets from the footer of a section that has `count` tombstones.
pub(crate) fn read_tombstones(footer: &[u8], count: u64) -> Result<Vec<u64>, DecodeError> {
    let mut reader = Reader::new(footer);
    let mut offsets = Vec::new();
    let mut offset = 0_u64;
    while !reader.is_empty() {
        let more = reader.varint()?;
        offset = offset.checked_add(more).ok_or_else(|| reader.error("an offset beyond 64 bits"))?;
        offsets.push(offset);
    }
    if offsets.len() as u64 == count {
        Ok(offsets)
    } else {
        Err(reader.error("another number of tombstones"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_read_as_written() {
        let mut offsets = vec![900, 64, 1 << 40, 65];
        let mut bytes = vec![7; 3];
        put_tombstones(&mut bytes, &mut offsets, 1_000, 5);
        let section = &bytes[3..];
        let tail_at = section.len() - TAIL_BYTES;
        let tail = Tail::read(&section[tail_at..], 1_000 + tail_at as u64, 5).expect("a tail");
        assert_eq!((tail.kind, tail.start, tail.footer_at), (SectionKind::Tombstones, 1_000, 1_000));
        assert_eq!(tail.footer_sum, crc(5, &section[..tail_at]));
        assert_eq!(read_tombstones(&section[..tail_at], 4), Ok(vec![64, 65, 900, 1 << 40]));
        assert!(read_tombstones(&section[..tail_at], 3).is_err());
        assert_eq!(Tail::read(&section[tail_at..], 1_001 + tail_at as u64, 5), None, "another place");
    }

    #[test]
    fn a_tail_with_more_records_than_bytes_is_none() {
        let read = |count: u64| {
            let (kind, start, footer_at) = (SectionKind::Run, 100, 190);
            let mut bytes = Vec::new();
            Tail { kind, start, footer_at, footer_sum: 0, count }.put(&mut bytes, 200, 5);
            Tail::read(&bytes, 200, 5).map(|tail| tail.count)
        };
        assert_eq!([0, 100, 101, u64::MAX].map(read), [Some(0), Some(100), None, None]);
    }
}
