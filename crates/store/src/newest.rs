//! The note of the newest log file. The note and the headers of the log files form a chain, which shows whether a log file is missing.
//!
//! **The invariant.** A directory opens only if every log file exists that has a synced frame which no checkpoint covers. The opening
//! notices that such a file is missing, whichever it is, and however many are missing.
//!
//! **The chain.** The note names the newest file. The header of each file names the file that took frames before it. So the chain reaches
//! from the note back to the file in which the newest checkpoint begins. An opening walks the chain, and refuses the directory if a file of
//! the chain is missing.
//!
//! **Why a frame is in a file of the chain.** Each frame is written to the current file. A file becomes the current one only after its
//! header and then the note are durable. The header was written while the file before took the frames, and no other file can become current
//! in between. So the note names the current file or the next one, and the header of the next file names the current one. The note may name
//! the next file before the current file has a frame; the chain does not need frames.
//!
//! **Why a file of the chain is never missing in a whole directory.** The header, the name and the length of a file are durable before the
//! note names the file. The header changes when the file is used again, and the name is gone when the file is removed. Of the files that a
//! note has named, only spares are used again or removed. These files become spares:
//! - A file of a lower generation than the file in which a durable checkpoint begins. The walk ends before such a file.
//! - A file that was prepared and took no frame. Before it becomes a spare, the note names another file.
//! - A file that an opening found behind the end of the log, because a power cut took the unsynced frames before it. Before it becomes a
//!   spare, the opening notes the file where the log ends. The chain from that file back has no later files.
//!
//! **Each possible failure:**
//! - *A crash before the rename of the note is durable.* The old note stays. The file that it names took the frames, or is still the next
//!   file.
//! - *A crash after the rename is durable.* The new file has its header, and no frame or some. An opening notes the file where the log ends
//!   before it uses the new file again.
//! - *A full disk before the rename.* The new file is given up, and the old note stays. Another file is prepared later.
//! - *A full disk at the rename.* Either note may be in place, so neither file is given up or used again. The note is written again later.
//! - *A failed sync of the folder after the rename.* It is unknown which note is durable. The store fails, and the next opening works with
//!   either note.
//! - *A used file that lost all its frames in a power cut, because the frames were never synced.* The file stays while it is in the chain.
//! - *A file that was too small for a frame.* The small file stays until the note names the larger one. The headers of both name the same
//!   file before them.

use std::sync::Arc;

use crate::checksum::{Seeds, Use};
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::io::{Call, run_calls};
use crate::layout::{
    HEADER_BYTES, SHARD, can_rise, header, newest_file, newest_file_unfinished, read_own, spare_note,
};
use crate::log::LogUse;
use crate::meta::Meta;

const MAGIC: [u8; 8] = *b"TWNEWEST";
const FORMAT: u32 = 1;

/// Returns the generations of `file` and of the files before it, by the chain of the headers. For a generation, `before` returns what the
/// header of its file names: a file, or `Some(None)` for no file. `before` returns `None` if there is no file of the generation. The walk
/// ends where no file is named or found.
pub(crate) fn back_from(
    file: Option<LogUse>,
    before: impl Fn(u64) -> Option<Option<LogUse>>,
) -> impl Iterator<Item = u64> {
    let step = move |generation: u64| before(generation).map(|before| (generation, before));
    let first = file.and_then(|file| step(file.generation));
    std::iter::successors(first, move |(generation, before)| {
        before.filter(|before| before.generation < *generation).and_then(|before| step(before.generation))
    })
    .map(|(generation, _)| generation)
}

/// The note of the newest log file that may have frames.
///
/// A new file is noted after its header is durable, and before its first frame is written. The file is neither overwritten nor removed
/// before the note names another file. So a directory without the file has lost data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Newest {
    /// The newest log file; `None` if the note requires no file.
    pub(crate) file: Option<LogUse>,
    /// The last frame that was known to be synced when the note was written. An opening refuses a log that ends before this frame.
    pub(crate) frame: u64,
}

impl Newest {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        let (generation, number) = self.numbers();
        header(MAGIC, FORMAT, seeds.of(Use::Newest), [generation, number, self.frame, 0, 0, 0])
    }

    /// Returns the calls that replace the note durably. If a call before the rename fails, the old note stays.
    pub(crate) fn calls(self, seeds: &Seeds) -> Vec<Call> {
        let written_as = newest_file_unfinished(self.numbers().0);
        vec![
            Call::Create(Arc::clone(&written_as)),
            Call::Write { file: Arc::clone(&written_as), offset: 0, bytes: self.to_bytes(seeds).to_vec() },
            Call::Sync(Arc::clone(&written_as)),
            Call::Rename { from: written_as, to: newest_file() },
            Call::SyncDir(SHARD.into()),
        ]
    }

    /// Returns the generation and the number of the file; two zeroes if there is no file.
    fn numbers(self) -> (u64, u64) {
        self.file.map_or((0, 0), |file| (file.generation, file.number))
    }
}

/// Makes the calls of an opening. If they write the note and the disk has no space for its 64 bytes, the note takes the space of the spare
/// file. Without that, an opening on a full disk would be refused, and nothing of the directory would be delivered.
///
/// # Errors
/// The disk failed, or there is no spare file.
pub(crate) fn write_at_opening<D: Disk>(disk: &mut D, calls: &[Call]) -> Result<(), DiskError> {
    let result = run_calls(disk, calls, &mut Vec::new());
    let (Err(error), [Call::Create(unfinished), rest @ ..]) = (&result, calls) else { return result };
    let is_note = matches!(rest, [Call::Write { .. }, Call::Sync(_), Call::Rename { to, .. }, ..] if *to == newest_file());
    let spare = spare_note();
    if !error.is_full() || !is_note || !disk.exists(&spare)? {
        return result;
    }
    // The file was written and synced by an earlier opening. So its bytes can be overwritten without more space, unless the file system
    // copies what is written.
    disk.rename(&spare, unfinished)?;
    run_calls(disk, rest, &mut Vec::new())
}

/// Makes the spare file for a later opening, if there is none and the disk has space for it.
///
/// # Errors
/// The disk failed for another reason than a lack of space.
pub(crate) fn set_aside<D: Disk>(disk: &mut D) -> Result<(), DiskError> {
    let spare = spare_note();
    if disk.exists(&spare)? {
        let is_whole = disk.len(&spare)? == HEADER_BYTES as u64;
        disk.close(&spare);
        if is_whole {
            return Ok(());
        }
        // A crash came before its bytes were durable.
        disk.remove(&spare)?;
    }
    let calls = [
        Call::Create(Arc::clone(&spare)),
        Call::Write { file: Arc::clone(&spare), offset: 0, bytes: vec![0; HEADER_BYTES] },
        Call::Sync(Arc::clone(&spare)),
        Call::SyncDir(SHARD.into()),
    ];
    let made = run_calls(disk, &calls, &mut Vec::new());
    disk.close(&spare);
    match made {
        Err(error) if error.is_full() => {
            // A file without its space is of no use.
            if disk.exists(&spare)? { disk.remove(&spare) } else { Ok(()) }
        }
        made => made,
    }
}

/// Reads the note; `None` if the directory needs no note: no log file was durable yet.
///
/// # Errors
/// The note is missing, damaged or of another format; or the disk failed.
pub(crate) fn read<D: Disk>(disk: &mut D, meta: &Meta, seeds: &Seeds) -> Result<Option<Newest>, OpenError> {
    if !meta.has_log {
        return Ok(None);
    }
    let file = newest_file();
    if !disk.exists(&file)? {
        return Err(OpenError::corrupt(&*file, 0, "it is missing, and it says which log file is the newest"));
    }
    let mut bytes = [0; HEADER_BYTES + 1];
    let count = disk.read(&file, 0, &mut bytes)?;
    disk.close(&file);
    match of_bytes(&bytes[..count], seeds) {
        Ok(Some(newest)) => Ok(Some(newest)),
        Ok(None) => Err(OpenError::corrupt(&*file, 0, "its checksum does not match")),
        Err(found) => Err(OpenError::other_format(&file, found, FORMAT)),
    }
}

/// Decodes the bytes of the note; `Ok(None)` if they are damaged. `Err` has the format if a later version wrote the note.
pub(crate) fn of_bytes(bytes: &[u8], seeds: &Seeds) -> Result<Option<Newest>, u32> {
    let own = read_own(bytes, MAGIC, FORMAT, seeds.of(Use::Newest))?;
    Ok(own.and_then(|[generation, number, frame, ..]| {
        let file = (generation > 0).then_some(LogUse { generation, number });
        can_rise(&[generation, number, frame]).then_some(Newest { file, frame })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_checks_out_with_its_own_secret_only() {
        let seeds = Seeds::new([7; 16]);
        let file = Some(LogUse { generation: 5, number: 3 });
        let bytes = Newest { file, frame: 9 }.to_bytes(&seeds);
        let read = |seeds: &Seeds| read_own(&bytes, MAGIC, FORMAT, seeds.of(Use::Newest));
        assert_eq!(read(&seeds), Ok(Some([5, 3, 9, 0, 0, 0])));
        assert_eq!(read(&Seeds::new([8; 16])), Ok(None));
    }
}
