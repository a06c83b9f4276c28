//! The report of a recovery.

/// The report of [`DiskStore::open`](crate::DiskStore::open): the parts that it read, and the parts that it left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the directory was made by this opening.
    pub created: bool,
    /// The format that the directory had before this opening, if it was an earlier one than [`FORMAT`](crate::FORMAT).
    pub upgraded_from: Option<u32>,
    /// How many tasks are live.
    pub tasks: u64,
    /// The file of the checkpoint that the recovery started from; `None` if it had the log alone.
    pub checkpoint: Option<String>,
    /// How many frames of the log were read on top of the checkpoint.
    pub frames: u64,
    /// The unfinished frame at the end of the log, if there was one. The commit of such a frame was never acknowledged, with one exception:
    /// see [`Torn`].
    pub torn: Option<Torn>,
    /// The file of a checkpoint that was damaged and not needed: an older checkpoint and the log, or the log alone, replaced it.
    pub damaged_checkpoint: Option<String>,
}

/// A frame that a crash left unfinished. The frame is not part of the state, and its commit was never acknowledged. There is one exception:
/// the very last frame of the log may have been whole and acknowledged, and the medium has damaged it since. A recovery cannot tell the two
/// cases apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The log file.
    pub file: String,
    /// The offset of the frame in the file (bytes).
    pub offset: u64,
    /// How many bytes of the frame were found, as far as the recovery can tell.
    pub bytes: u64,
}
