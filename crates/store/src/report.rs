//! The report of a recovery.

/// The report of [`DiskStore::open`](crate::DiskStore::open): the state that it found, and the damaged or unfinished files that it left
/// out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether this opening made a new data directory.
    pub created: bool,
    /// How many tasks have not ended, live and dead.
    pub tasks: u64,
    /// The file of the checkpoint that the recovery started from; `None` if it started from an empty state.
    pub checkpoint: Option<String>,
    /// How many frames of the log were applied to the state that the recovery started from.
    pub frames: u64,
    /// The unfinished end of the log, if there was one.
    pub torn: Option<Torn>,
    /// The file of the newest checkpoint, if it was damaged and not needed: an older checkpoint and the log, or the log alone, replaced it.
    pub damaged_checkpoint: Option<String>,
}

/// The end of the log that a crash left unfinished: a part of a frame, or log files behind a frame that is missing. This end is not part of
/// the state. It was not synced, so no commit of it was acknowledged with [`Durability::Fsync`](crate::Durability::Fsync). There is one
/// exception: the very last frame of the log may have been whole and acknowledged, and the medium has damaged it since. A recovery cannot
/// tell the two cases apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The log file in which the unfinished end begins.
    pub file: String,
    /// The offset in the file where the unfinished end begins (bytes).
    pub offset: u64,
    /// How many bytes of the file are part of the unfinished end, as far as the recovery can tell.
    pub bytes: u64,
}
