//! [`Found`]: the files in a shard's folder.

use std::sync::Arc;

use crate::bounds::Bounds;
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, Listing, SHARD, zeroes};
use crate::log::{Bad, FRAMES_AT, LogHeader, read_frame, read_log_header};

/// A log file as it was found.
#[derive(Clone, Debug)]
pub(super) struct LogFile {
    pub(super) name: Arc<str>,
    pub(super) len: u64,
    /// The header. `None` if it is not valid: a crash came while the file was prepared, or the file is damaged.
    pub(super) header: Option<LogHeader>,
    /// The number of the file's first frame, if that frame is valid.
    pub(super) first: Option<u64>,
    /// Whether the file is shorter than its header says, and its frames begin with a frame of its use, or with the head of one. All bytes
    /// of a file are synced before the first byte of a frame is written. So no crash leaves such a file, but an incomplete copy does.
    pub(super) cut_short: bool,
}

impl LogFile {
    /// Returns the offset (bytes) at which the damage begins if the frames cannot be reached: at the first frame, or at the header if the
    /// header is not valid.
    pub(super) fn frames_at(&self) -> u64 {
        if self.header.is_some() { FRAMES_AT } else { 0 }
    }
}

/// The files of the store in the shard's folder, without the note of the newest log file. Reading the files changes nothing.
#[derive(Debug)]
pub(super) struct Found {
    /// The names of the store's files in the folder, by kind.
    pub(super) listing: Listing,
    /// The log files, each read as far as its first frame.
    pub(super) logs: Vec<LogFile>,
}

impl Found {
    pub(super) fn read<D: Disk>(disk: &mut D, seeds: &Seeds, bounds: &Bounds) -> Result<Self, OpenError> {
        let names = disk.list(SHARD)?;
        let listing = Listing::of(&names);
        let first_read = bounds.log_read_bytes as u64;
        let logs = listing.logs.iter().map(|name| read_log(disk, Arc::clone(name), seeds, first_read));
        let logs = logs.collect::<Result<_, _>>()?;
        Ok(Self { listing, logs })
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
    let header = header.map_err(|found| OpenError::other_format(&name, found, crate::log::FORMAT))?;
    let (mut first, mut cut_short) = (None, false);
    if let Some(header) = header {
        // The first read is long enough for most first frames. Only a longer frame needs a second read.
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

/// Reads a whole file, and closes the file.
///
/// # Errors
/// [`OpenError::Io`].
pub(crate) fn read_all<D: Disk>(disk: &mut D, name: &str) -> Result<Vec<u8>, OpenError> {
    let len = disk.len(name)?;
    let bytes = read_to(disk, name, len)?;
    disk.close(name);
    Ok(bytes)
}

/// Reads the first `len` bytes of a file, or all bytes if the file is shorter.
fn read_to<D: Disk>(disk: &mut D, name: &str, len: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = zeroes(len);
    let count = disk.read(name, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}
