//! The header of a log file, and the uses of a log file.

use crate::checksum::{Seeds, Use};
use crate::layout::{HEADER_BYTES, can_rise, header, read_own};

const MAGIC: [u8; 8] = *b"TWLOGFIL";
pub(crate) const FORMAT: u32 = 1;

/// The offset of the first frame (bytes). The header has a block of the disk for itself, so that the write of a frame never touches the
/// block of the header.
pub(crate) const FRAMES_AT: u64 = 4_096;

/// One use of a log file. A file may be used several times.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogUse {
    /// The generation of the use: not 0, and higher than that of every use before it.
    pub(crate) generation: u64,
    /// The number in the file's name, so that an error can name the file.
    pub(crate) number: u64,
}

/// The header of a log file. It is written and synced before the first frame of this use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogHeader {
    /// The generation of this use. It orders the files, and seeds the checksums of the frames. The generation rises with each use of any
    /// file.
    pub(crate) generation: u64,
    /// The length of the file (bytes).
    pub(crate) len: u64,
    /// Whether all bytes behind the header were zero when this use began. If not, the file may have frames of an earlier use.
    pub(crate) fresh: bool,
    /// The last file that took frames before this one. `None` if there was none.
    pub(crate) before: Option<LogUse>,
}

impl LogHeader {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        let (before, number) = self.before.map_or((0, 0), |before| (before.generation, before.number));
        let own = [self.generation, self.len, u64::from(self.fresh), before, number, 0];
        header(MAGIC, FORMAT, seeds.of(Use::LogHeader), own)
    }
}

/// Reads the header of a log file; `Ok(None)` if the header is not valid. `Err` has the format if a later version wrote the header.
pub(crate) fn read_log_header(bytes: &[u8], seeds: &Seeds) -> Result<Option<LogHeader>, u32> {
    let own = read_own(bytes, MAGIC, FORMAT, seeds.of(Use::LogHeader))?;
    Ok(own.and_then(|[generation, len, fresh, before, number, _]| {
        // Generations have to fall from file to file, so that the walk back from file to file ends.
        let is_possible = can_rise(&[generation, number]) && (before < generation || before == 0);
        let before = (before > 0).then_some(LogUse { generation: before, number });
        is_possible.then_some(LogHeader { generation, len, fresh: fresh != 0, before })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let seeds = Seeds::new([4; 16]);
        for before in [None, Some(LogUse { generation: 6, number: 2 })] {
            let header = LogHeader { generation: 7, len: 16_384, fresh: true, before };
            assert_eq!(read_log_header(&header.to_bytes(&seeds), &seeds), Ok(Some(header)));
        }
    }

    /// A file that names itself, or a later file, as the file before it would make the walk back endless.
    #[test]
    fn a_file_before_that_is_not_older_does_not_check_out() {
        let seeds = Seeds::new([4; 16]);
        for generation in [7, 8] {
            let before = Some(LogUse { generation, number: 2 });
            let header = LogHeader { generation: 7, len: 16_384, fresh: true, before };
            assert_eq!(read_log_header(&header.to_bytes(&seeds), &seeds), Ok(None));
        }
    }
}
