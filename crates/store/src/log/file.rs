//! One log file.

use crate::checksum::{Seeds, Use};
use crate::layout::{HEADER_BYTES, Header, can_rise, header, read_header};

const MAGIC: [u8; 8] = *b"TWLOGFIL";
pub(crate) const FORMAT: u32 = 1;

/// Where the first frame stands: the header has a block of the disk for itself, so that no frame is ever in a block that is
/// written for another reason.
pub(crate) const FRAMES_AT: u64 = 4_096;

/// The header of a log file. It is written and synced before the first frame of this use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogHeader {
    /// Which use this is: the order of the files, and the seed of their frames. Rises with each use of any file.
    pub(crate) generation: u64,
    /// Bytes of the file.
    pub(crate) len: u64,
    /// Whether all behind the header was zero when this use began. Else it has frames of an earlier use.
    pub(crate) fresh: bool,
}

impl LogHeader {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        let own = [self.generation, self.len, u64::from(self.fresh), 0, 0, 0];
        header(MAGIC, FORMAT, seeds.of(Use::LogHeader), own)
    }
}

/// What the header of a log file says; `Err` has the format if a later version wrote it.
pub(crate) fn read_log_header(bytes: &[u8], seeds: &Seeds) -> Result<Option<LogHeader>, u32> {
    match read_header(bytes, MAGIC, FORMAT, seeds.of(Use::LogHeader)) {
        Header::Valid([generation, len, fresh, ..]) => {
            Ok(can_rise(&[generation]).then_some(LogHeader { generation, len, fresh: fresh != 0 }))
        }
        Header::Newer(format) => Err(format),
        // The directory would have an older format as a whole.
        Header::Older(_) | Header::Bad => Ok(None),
    }
}
