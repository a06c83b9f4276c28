//! The files in a shard's folder.

use std::sync::Arc;

use crate::bounds::Bounds;
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, Kind, SHARD, checkpoint_file, kind_of, log_file, zeroes};
use crate::log::{Bad, FRAMES_AT, LogHeader, read_frame, read_log_header};

/// A log file as it was found.
#[derive(Clone, Debug)]
pub(super) struct LogFile {
    pub(super) name: Arc<str>,
    pub(super) len: u64,
    /// The header. `None` if it does not check out: a crash met the file while it was made ready, or the file is damaged.
    pub(super) header: Option<LogHeader>,
    /// The number of the file's first frame, if that frame checks out.
    pub(super) first: Option<u64>,
    /// Whether the file has a frame of its use, or the head of one, and is shorter than it was made. All bytes of a file are synced before
    /// the first byte of a frame is written, so no crash does that: half a copy does.
    pub(super) cut_short: bool,
}

impl LogFile {
    /// Where the file's damage begins if its frames cannot be reached: at the header, or at the first frame.
    pub(super) fn frames_at(&self) -> u64 {
        if self.header.is_some() { FRAMES_AT } else { 0 }
    }
}

/// All files of the store in the folder. Reading them changes nothing.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Numbers, rising.
    pub(super) checkpoints: Vec<u64>,
    pub(super) logs: Vec<LogFile>,
    /// Generations of segments.
    pub(super) segments: Vec<u64>,
    /// Names of files that were never finished.
    pub(super) unfinished: Vec<Arc<str>>,
    /// The highest number of a log file; 0 if there is none.
    pub(super) log_number: u64,
}

impl Found {
    pub(super) fn read<D: Disk>(disk: &mut D, seeds: &Seeds, bounds: &Bounds) -> Result<Self, OpenError> {
        let mut found = Self::default();
        for name in disk.list(SHARD)? {
            match kind_of(&name) {
                None => {}
                Some(Kind::Unfinished) => found.unfinished.push(format!("{SHARD}/{name}").into()),
                Some(Kind::Checkpoint(number)) => {
                    debug_assert_eq!(
                        *checkpoint_file(number),
                        *format!("{SHARD}/{name}"),
                        "a name made elsewhere"
                    );
                    found.checkpoints.push(number);
                }
                Some(Kind::Segment(generation)) => found.segments.push(generation),
                // The note was read before the folder was listed.
                Some(Kind::Newest) => {}
                Some(Kind::Log(number)) => {
                    found.log_number = found.log_number.max(number);
                    found.logs.push(read_log(disk, log_file(number), seeds, bounds.log_read_bytes as u64)?);
                }
            }
        }
        found.checkpoints.sort_unstable();
        Ok(found)
    }
}

fn read_log<D: Disk>(
    disk: &mut D,
    name: Arc<str>,
    seeds: &Seeds,
    first_read: u64,
) -> Result<LogFile, OpenError> {
    let len = disk.len(&name)?;
    let mut bytes = [0; HEADER_BYTES];
    let count = disk.read(&name, 0, &mut bytes)?;
    let header = read_log_header(&bytes[..count], seeds);
    let header = header.map_err(|found| OpenError::newer(&name, found, crate::log::FORMAT))?;
    let (mut first, mut cut_short) = (None, false);
    if let Some(header) = header {
        // Most first frames are short, so this saves reading each file twice.
        let mut file = read_to(disk, &name, len.min(FRAMES_AT.saturating_add(first_read)))?;
        if let Err(Bad::Torn(bytes)) = read_frame(&file, FRAMES_AT as usize, header.generation, seeds) {
            file = read_to(disk, &name, len.min(FRAMES_AT.saturating_add(bytes)))?;
        }
        let frame = read_frame(&file, FRAMES_AT as usize, header.generation, seeds);
        cut_short = len < header.len && !matches!(frame, Err(Bad::Nothing));
        first = frame.ok().map(|frame| frame.head.number);
    }
    disk.close(&name);
    Ok(LogFile { name, len, header, first, cut_short })
}

/// The bytes of a whole file.
///
/// # Errors
/// [`OpenError::Io`].
pub(crate) fn read_all<D: Disk>(disk: &mut D, name: &str) -> Result<Vec<u8>, OpenError> {
    let len = disk.len(name)?;
    let bytes = read_to(disk, name, len)?;
    disk.close(name);
    Ok(bytes)
}

/// The first `len` bytes of a file that has at least `len` bytes.
fn read_to<D: Disk>(disk: &mut D, name: &str, len: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = zeroes(len);
    let count = disk.read(name, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}
