//! The report of a recovery.

/// The report of [`DiskStore::open`](crate::DiskStore::open): the parts that it read, and the parts that it left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the directory was made by this opening.
    pub created: bool,
    /// The format that the directory had before this opening, if it was an earlier one than [`FORMAT`](crate::FORMAT).
    pub upgraded_from: Option<u32>,
    /// Live tasks.
    pub tasks: u64,
    /// The checkpoint that the recovery started from; `None` if it had the log alone.
    pub checkpoint: Option<String>,
    /// Frames of the log that were read on top of the checkpoint.
    pub frames: u64,
    /// The unfinished write at the end of the log, if there was one. A crash leaves such a write of a commit that was never acknowledged.
    pub torn: Option<Torn>,
    /// A checkpoint that was damaged and not needed: an older one and the log replaced it.
    pub damaged_checkpoint: Option<String>,
}

/// A frame that a crash left unfinished. It is not part of the state, and was never acknowledged. There is one exception: the very last
/// frame may have been whole once, and the medium has damaged it since. Both look the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The log file.
    pub file: String,
    /// The offset of the frame.
    pub offset: u64,
    /// How many bytes of the frame were found, as far as can be told.
    pub bytes: u64,
}
