//! The header of a segment.

use super::bucket::{Bucket, Level};
use crate::checksum::{Seeds, Use};
use crate::layout::{HEADER_BYTES, Header, header, read_header};

const MAGIC: [u8; 8] = *b"TWSEGMNT";
pub(crate) const FORMAT: u32 = 1;

/// The header of a segment. It is written with the first run and never again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The segment's number. No two segments of a directory ever have the same number.
    pub(crate) generation: u64,
    /// The bucket of the segment's tasks.
    pub(crate) bucket: Bucket,
}

impl SegmentHeader {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        let Bucket { level, index } = self.bucket;
        let own = [self.generation, level.number(), index, 0, 0, 0];
        header(MAGIC, FORMAT, seeds.of(Use::Segment(self.generation)), own)
    }
}

/// Reads the header of a segment; `Err` has the format if a later version wrote it.
pub(crate) fn read_segment_header(
    bytes: &[u8],
    generation: u64,
    seeds: &Seeds,
) -> Result<Option<SegmentHeader>, u32> {
    match read_header(bytes, MAGIC, FORMAT, seeds.of(Use::Segment(generation))) {
        Header::Valid([generation, level, index, ..]) => Ok(Level::from_number(level)
            .map(|level| SegmentHeader { generation, bucket: Bucket { level, index } })),
        Header::Newer(format) => Err(format),
        // The directory would have an older format as a whole.
        Header::Older(_) | Header::Bad => Ok(None),
    }
}
