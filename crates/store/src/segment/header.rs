//! The header of a segment.

use super::bucket::{Bucket, Level};
use crate::checksum::{Seeds, Use};
use crate::layout::{HEADER_BYTES, header, read_own};

const MAGIC: [u8; 8] = *b"TWSEGMNT";
pub(crate) const FORMAT: u32 = 1;

/// The header of a segment. It is written before the first run, and never again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The segment's number. No two segments that exist at one time have the same number.
    pub(crate) generation: u64,
    /// The bucket of the segment's tasks.
    pub(crate) bucket: Bucket,
}

impl SegmentHeader {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        let Bucket { level, index } = self.bucket;
        let own = [self.generation, level as u64, index, 0, 0, 0];
        header(MAGIC, FORMAT, seeds.of(Use::Segment(self.generation)), own)
    }
}

/// Reads the header of the segment with this generation. `Ok(None)`: the header is damaged, or is of another segment. `Err` has the format
/// if a later version wrote the header.
pub(crate) fn read_segment_header(
    bytes: &[u8],
    generation: u64,
    seeds: &Seeds,
) -> Result<Option<SegmentHeader>, u32> {
    let own = read_own(bytes, MAGIC, FORMAT, seeds.of(Use::Segment(generation)))?;
    Ok(own.and_then(|[generation, level, index, ..]| {
        let bucket = Bucket { level: Level::from_number(level)?, index };
        Some(SegmentHeader { generation, bucket })
    }))
}
