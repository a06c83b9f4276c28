//! The note of the newest log file: without it nobody misses a file of which no later one tells.

use std::sync::Arc;

use crate::checksum::{Seeds, Use};
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::io::{Call, run_calls};
use crate::layout::{
    HEADER_BYTES, Header, SHARD, can_rise, header, newest_file, newest_file_unfinished, read_header,
};
use crate::meta::Meta;

const MAGIC: [u8; 8] = *b"TWNEWEST";
const FORMAT: u32 = 1;

/// Which log file is the newest that may have frames.
///
/// It is written after the header of that file is durable and before the first frame goes there. Nothing overwrites or removes that
/// file before the note is of a later one, so a directory without it has lost data. The file before it is missed by its frames: the
/// log has to reach the last one that was synced when the note was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Newest {
    /// The use of the file; 0: no file is missed.
    pub(crate) generation: u64,
    /// The number in its name, for an error to name it.
    pub(crate) number: u64,
    /// A frame that was synced.
    pub(crate) frame: u64,
}

impl Newest {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        header(MAGIC, FORMAT, seeds.of(Use::Newest), [self.generation, self.number, self.frame, 0, 0, 0])
    }

    /// The calls that put it in the place of the one there may be, durably. If one fails before the renaming, the old one stands.
    pub(crate) fn calls(self, seeds: &Seeds) -> Vec<Call> {
        let written_as = newest_file_unfinished(self.generation);
        vec![
            Call::Create(Arc::clone(&written_as)),
            Call::Write { file: Arc::clone(&written_as), offset: 0, bytes: self.to_bytes(seeds).to_vec() },
            Call::Sync(Arc::clone(&written_as)),
            Call::Rename { from: written_as, to: newest_file() },
            Call::SyncDir(SHARD.into()),
        ]
    }

    /// Puts it there. Durable when it returns.
    pub(crate) fn write<D: Disk>(self, disk: &mut D, seeds: &Seeds) -> Result<(), DiskError> {
        run_calls(disk, &self.calls(seeds), &mut Vec::new())
    }
}

/// Reads the note; `None` if the directory has none by right: it is of an older format, or no log file was durable yet.
///
/// # Errors
/// It is missing, damaged or of a later format; or the disk failed.
pub(crate) fn read<D: Disk>(disk: &mut D, meta: &Meta, seeds: &Seeds) -> Result<Option<Newest>, OpenError> {
    if !meta.has_newest() {
        return Ok(None);
    }
    let file = newest_file();
    if !disk.exists(&file)? {
        return Err(OpenError::corrupt(&*file, 0, "it is missing, and it says which log file is the newest"));
    }
    let mut bytes = [0; HEADER_BYTES + 1];
    let count = disk.read(&file, 0, &mut bytes)?;
    disk.close(&file);
    match read_header(&bytes[..count], MAGIC, FORMAT, seeds.of(Use::Newest)) {
        Header::Valid([generation, number, frame, ..]) if can_rise(&[generation, number, frame]) => {
            Ok(Some(Newest { generation, number, frame }))
        }
        Header::Newer(found) => Err(OpenError::NewerFormat { file: file.to_string(), found, known: FORMAT }),
        Header::Valid(_) | Header::Older(_) | Header::Bad => {
            Err(OpenError::corrupt(&*file, 0, "its checksum does not match"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_checks_out_with_its_own_secret_only() {
        let seeds = Seeds::new([7; 16]);
        let bytes = Newest { generation: 5, number: 3, frame: 9 }.to_bytes(&seeds);
        let read = |seeds: &Seeds| read_header(&bytes, MAGIC, FORMAT, seeds.of(Use::Newest));
        assert_eq!(read(&seeds), Header::Valid([5, 3, 9, 0, 0, 0]));
        assert_eq!(read(&Seeds::new([8; 16])), Header::Bad);
    }
}
