//! The note of the newest log file. It is the end of a chain that makes a missing log file known.
//!
//! **The invariant.** A directory opens only if every log file is there that has a synced frame which no checkpoint covers. It does not matter
//! which files are missing, or how many.
//!
//! **The chain.** The note names the newest file. The header of each file names the file that took frames before it. So the chain goes from the
//! note back to the file in which the newest checkpoint begins. An opening walks it, and refuses if a file of it is not there.
//!
//! **Why a frame is in a file of the chain.** A frame goes to one file, the current one. A file becomes the current one after its header and
//! then the note were durable. Its header was written while the last current file took the frames, and no other file can become current in
//! between. So the noted file is the current one or the next one, and the header of the next one names the current one. The next file may be
//! noted before the current one has a frame; the chain does not ask for frames.
//!
//! **Why a file of the chain is never missing in a whole directory.** The header of a file, its name and its length are durable before the note.
//! Its header changes when it is used again, and its name goes when it is removed. Both happen to spares only, and these files become spares:
//! - A file of a lower generation than the one in which a durable checkpoint begins. The walk ends before it.
//! - A file that was made ready and took no frame. The note names another file first.
//! - A file that an opening found behind the end of the log, because a power cut took the unsynced frames before it. The opening notes the file
//!   where the log ends first. The chain from there does not lead to later files.
//!
//! **Each way in which something can go wrong:**
//! - *A crash before the rename of the note is durable.* The old note stands. Its file took the frames until then, or is the next one still.
//! - *A crash after it.* The new file has its header, and no frame or some. An opening notes the file where the log ends before it uses the new
//!   one again.
//! - *A full disk before the rename.* The new file is given up, and the old note stands. Another file is prepared later.
//! - *A full disk at the rename.* Either note may stand, so neither file is given up or used again. The note is written again later.
//! - *A failed sync of the folder after the rename.* It is unknown which note is durable. The store fails, and the next opening reads
//!   either.
//! - *A used file that lost all its frames in a power cut, because they were never synced.* The file stays while the chain leads to it.
//! - *A file that was too small for a frame.* It stays until the note names the larger one. Both headers name the same file before them.
//! - *A file of a version that named no file before it.* The chain ends there. The opening by the first version with a chain notes a file
//!   with a header that names the last one with frames.

use std::sync::Arc;

use crate::checksum::{Seeds, Use};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::io::Call;
use crate::layout::{HEADER_BYTES, SHARD, can_rise, header, newest_file, newest_file_unfinished, read_own};
use crate::log::LogUse;
use crate::meta::Meta;

const MAGIC: [u8; 8] = *b"TWNEWEST";
const FORMAT: u32 = 1;

/// The generations of this file and of the files before it, by the chain of the headers. `before` returns, for a generation, the file that
/// its header names; `None`: the file is not there, and the walk ends before it.
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

/// The newest log file that may have frames.
///
/// The note is written when the header of that file is durable, and before its first frame. The file is neither overwritten nor removed
/// before the note names a later one, so a directory without the file has lost data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Newest {
    /// `None`: the note requires no file.
    pub(crate) file: Option<LogUse>,
    /// The last frame that was known to be synced. The log has to reach it.
    pub(crate) frame: u64,
}

impl Newest {
    pub(crate) fn to_bytes(self, seeds: &Seeds) -> [u8; HEADER_BYTES] {
        let (generation, number) = self.numbers();
        header(MAGIC, FORMAT, seeds.of(Use::Newest), [generation, number, self.frame, 0, 0, 0])
    }

    /// The calls that replace the note durably. If one fails before the rename, the old note stands.
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

    /// The generation and the number of the file, zeroes if there is none.
    fn numbers(self) -> (u64, u64) {
        self.file.map_or((0, 0), |file| (file.generation, file.number))
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
    match of_bytes(&bytes[..count], seeds) {
        Ok(Some(newest)) => Ok(Some(newest)),
        Ok(None) => Err(OpenError::corrupt(&*file, 0, "its checksum does not match")),
        Err(found) => Err(OpenError::newer(&file, found, FORMAT)),
    }
}

/// Decodes the bytes of the note; `None` if they do not check out. `Err` has the format if a later version wrote it.
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
