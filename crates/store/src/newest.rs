//! The note of the newest log file. Later files prove that an older one is missing; nothing else proves it for the newest.

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

/// The newest log file that may have frames.
///
/// The note is written when the header of that file is durable, and before its first frame. The file is neither overwritten nor removed
/// before the note names a later one, so a directory without the file has lost data. The note protects the file before it, too: the log
/// has to reach the last frame that was synced when the note was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Newest {
    /// The generation of the file's use; 0: no file has to be there.
    pub(crate) generation: u64,
    /// The number in the file's name, so that an error can name the file.
    pub(crate) number: u64,
    /// The last frame that was known to be synced.
    pub(crate) frame: u64,
}

impl Newest {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        header(MAGIC, FORMAT, seeds.of(Use::Newest), [self.generation, self.number, self.frame, 0, 0, 0])
    }

    /// The calls that replace the note durably. If one fails before the rename, the old note stands.
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

    /// Replaces the note. It is durable when this returns.
    pub(crate) fn write<D: Disk>(self, disk: &mut D, seeds: &Seeds) -> Result<(), DiskError> {
        run_calls(disk, &self.calls(seeds), &mut Vec::new())
    }
}

/// Reads the note; `None` if the directory need not have one: its format is older, or no log file was durable yet.
///
/// # Errors
/// The note is missing, damaged or of a later format; or the disk failed.
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
