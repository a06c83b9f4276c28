//! Pinning the files that a copy needs.

use std::sync::Arc;

use super::store::DiskStore;
use crate::disk::Disk;
use crate::io::Io;
use crate::layout::{META, newest_file};

/// The parts of files that together open as the store was when they were pinned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedFiles {
    /// The files to copy.
    pub files: Vec<PinnedFile>,
}

/// The beginning of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedFile {
    /// The name of the file, from the data directory on.
    pub name: Arc<str>,
    /// How many bytes of the file belong to the copy, `None` for all. They do not change while the file is pinned.
    pub bytes: Option<u64>,
    /// The least length of the copy (bytes), filled up with zeroes: a log file that is shorter than it was made counts as half of one.
    /// The zeroes have to be written, because a hole in a file has no space of its own when the file is used again.
    pub len: u64,
    /// The copy gets these bytes, and the file is not read: the file itself may name files that are not in the copy.
    pub content: Option<Vec<u8>>,
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Pins all files that a copy of the store needs, until [`unpin`](Self::unpin): none of them is removed, cut or used again,
    /// and their listed bytes do not change. Commits and checkpoints go on; the log takes space meanwhile.
    ///
    /// A directory with just these bytes opens with all that was committed before, and nothing of what comes after.
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

    /// The files may change again.
    pub fn unpin(&mut self) {
        self.maintenance.unpin(&mut self.writer);
    }
}
