//! What recovery found.

/// What [`DiskStore::open`](crate::DiskStore::open) read, and what it left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the directory was made by this opening.
    pub created: bool,
    /// The format that the directory had before this opening, if it was an earlier one than [`FORMAT`](crate::FORMAT).
    pub upgraded_from: Option<u32>,
    /// Live tasks.
    pub tasks: u64,
    /// The checkpoint it started from; `None` if it had the log alone.
    pub checkpoint: Option<String>,
    /// Frames of the log that were read on top of it.
    pub frames: u64,
    /// The unfinished write at the end of the log, if there was one: what a crash does to a commit that nobody was told of.
    pub torn: Option<Torn>,
    /// A checkpoint that was damaged and not needed: an older one and the log made up for it.
    pub damaged_checkpoint: Option<String>,
}

/// A frame that a crash left unfinished. It is not part of the state, and was never acknowledged; unless it was whole once and the
/// medium has damaged it since, for the very last frame looks the same then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The log file.
    pub file: String,
    /// Where the frame begins.
    pub offset: u64,
    /// How many bytes of it were found, as far as can be told.
    pub bytes: u64,
}
