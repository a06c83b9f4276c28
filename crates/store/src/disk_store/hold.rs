//! Holding still what a copy needs.

use std::sync::Arc;

use super::store::DiskStore;
use crate::disk::Disk;
use crate::io::Io;
use crate::layout::META;

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
    /// How many bytes of it belong to the copy, `None` for all. They do not change while they are held. The copy has to be as long as the
    /// file, with zeroes behind them: a log file that is shorter than it was made is taken for damaged.
    pub bytes: Option<u64>,
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Holds still all files that a copy of the store needs, until [`let_go`](Self::let_go): none of them is removed, cut or used again,
    /// and their listed bytes do not change. Commits and checkpoints go on; the log takes space meanwhile.
    ///
    /// A directory with just these bytes opens with all that was committed before, and nothing of what comes after.
    pub fn hold(&mut self) -> Held {
        self.upkeep.hold();
        let mut files = vec![HeldFile { name: META.into(), bytes: None }];
        let whole = |name: &Arc<str>| HeldFile { name: Arc::clone(name), bytes: None };
        files.extend(self.upkeep.standing().map(whole));
        let segments = self.catalog.segments.iter().filter(|(_, segment)| segment.len > 0);
        files.extend(
            segments
                .map(|(_, segment)| HeldFile { name: Arc::clone(&segment.name), bytes: Some(segment.len) }),
        );
        files.extend(
            self.files.used().map(|(name, bytes)| HeldFile { name: Arc::clone(name), bytes: Some(bytes) }),
        );
        Held { files }
    }

    /// What was held may change again.
    pub fn let_go(&mut self) {
        self.unhold();
    }
}
