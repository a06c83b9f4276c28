//! Holding still what a copy needs.

use std::sync::Arc;

use super::store::DiskStore;
use crate::disk::Disk;
use crate::io::Io;
use crate::layout::{META, newest_file};

/// A part of the files of a store that together open as the store it was when it was held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// What is to be copied.
    pub files: Vec<HeldFile>,
}

/// The beginning of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldFile {
    /// Its name, from the data directory on.
    pub name: Arc<str>,
    /// How many bytes of it belong to the copy, `None` for all. They do not change while they are held.
    pub bytes: Option<u64>,
    /// So long the copy has to be at least, with zeroes behind those: a log file that is shorter than it was made is taken for half of one.
    /// They have to be written, for a hole has no space of its own when the file is used again.
    pub len: u64,
    /// The copy gets these bytes, and the file is not read: the file itself may name files that are not in the copy.
    pub content: Option<Vec<u8>>,
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Holds still all files that a copy of the store needs, until [`let_go`](Self::let_go): none of them is removed, cut or used again,
    /// and their listed bytes do not change. Commits and checkpoints go on; the log takes space meanwhile.
    ///
    /// A directory with just these bytes opens with all that was committed before, and nothing of what comes after.
    pub fn hold(&mut self) -> Held {
        self.upkeep.hold();
        let mut files = vec![HeldFile { name: META.into(), bytes: None, len: 0, content: None }];
        let newest = self.files.newest().to_bytes(&self.seeds).to_vec();
        files.push(HeldFile { name: newest_file(), bytes: None, len: 0, content: Some(newest) });
        let whole = |name: &Arc<str>| HeldFile { name: Arc::clone(name), bytes: None, len: 0, content: None };
        files.extend(self.upkeep.standing().map(whole));
        let part = |name: &Arc<str>, bytes, len| HeldFile {
            name: Arc::clone(name),
            bytes: Some(bytes),
            len,
            content: None,
        };
        let segments = self.catalog.segments.iter().filter(|(_, segment)| segment.len > 0);
        files.extend(segments.map(|(_, segment)| part(&segment.name, segment.len, 0)));
        files.extend(self.files.used().map(|(name, bytes, len)| part(name, bytes, len)));
        Held { files }
    }

    /// What was held may change again.
    pub fn let_go(&mut self) {
        self.unhold();
    }
}
