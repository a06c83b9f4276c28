//! Pinning the files that a backup copies.

use std::sync::Arc;

use super::store::DiskStore;
use crate::disk::Disk;
use crate::io::Io;
use crate::layout::{META, newest_file};
use crate::stamp;

/// The parts of files that a copy needs. The copy opens as the store was when the files were pinned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedFiles {
    /// The files to copy.
    pub files: Vec<PinnedFile>,
}

/// The part of one file that a copy needs: its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedFile {
    /// The name of the file, relative to the data directory.
    pub name: Arc<str>,
    /// How many bytes of the file belong to the copy; `None`: all bytes. Unless `content` is given, these bytes do not change while the
    /// file is pinned.
    pub bytes: Option<u64>,
    /// The least length of the copy (bytes). A shorter copy has to be filled up with zeroes, because an opening may refuse a log file that
    /// is shorter than its header says. The zeroes have to be written: a hole in a file has no space on the disk when the file is used
    /// again.
    pub len: u64,
    /// The content of the copy, if it is given. Then the file is not read, because it may name files that are not in the copy.
    pub content: Option<Vec<u8>>,
}

/// Returns the stamps of a new copy: that of the data directory, and that of the folder of each shard. `number` is random, so that a folder
/// of another copy is noticed.
#[must_use]
pub fn stamps_of_copy(number: u64) -> [PinnedFile; 2] {
    stamp::stamps_of_copy(number).map(|(name, content)| PinnedFile {
        name: name.into(),
        bytes: None,
        len: 0,
        content: Some(content),
    })
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Pins all files that a copy of the store needs, until [`unpin`](Self::unpin). Until then, no file of the list is removed or used
    /// again, and the listed bytes do not change. Only the note of the newest log file may be replaced, so the list has the content of the
    /// note. Commits and checkpoints go on. Meanwhile the log grows, because its files are not freed.
    ///
    /// A directory with only these bytes opens with all commits whose frames were written before the call, and with no later ones.
    pub fn pin(&mut self) -> PinnedFiles {
        self.maintenance.pin();
        let file =
            |name: &Arc<str>, bytes, len| PinnedFile { name: Arc::clone(name), bytes, len, content: None };
        let newest = self.writer.files().newest().to_bytes(&self.setup.seeds).to_vec();
        let newest = PinnedFile { content: Some(newest), ..file(&newest_file(), None, 0) };
        let mut files = vec![file(&META.into(), None, 0), newest];
        files.extend(self.maintenance.standing().map(|name| file(name, None, 0)));
        let segments = self.catalog.segments.iter().filter(|(_, segment)| segment.len > 0);
        files.extend(segments.map(|(_, segment)| file(&segment.name, Some(segment.len), 0)));
        files.extend(self.writer.files().used().map(|(name, bytes, len)| file(name, Some(bytes), len)));
        PinnedFiles { files }
    }

    /// Ends the pin. The files may be changed and removed again.
    pub fn unpin(&mut self) {
        self.maintenance.unpin(&mut self.writer);
    }
}
