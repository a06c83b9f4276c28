//! What a user of [`DiskStore`](crate::DiskStore) may choose.

use core::fmt;

use crate::bounds::Bounds;
use crate::history::HistoryLimits;

/// A log file has so many bytes unless somebody says otherwise: 16 MiB.
pub const LOG_FILE_BYTES_DEFAULT: u64 = 16 << 20;

/// Which clock the tasks of a directory live by. It is written down when the directory is made, and a store that is opened
/// with the other one is refused: a virtual clock runs ahead, and what it did would be early by the real one.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ClockMode {
    /// The wall clock.
    #[default]
    Real,
    /// A clock that stands still until it is moved by hand.
    Virtual,
}

impl fmt::Display for ClockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
        })
    }
}

/// When a commit is answered with `Done`, and so what it survives then.
///
/// Whatever the level, an opening finds a state that was: nothing of a commit without all before it, and nothing that had been
/// synced is lost. Taking and releasing the shard are always synced.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum AckLevel {
    /// When it is synced. It survives a crash of the process, a crash of the system, and a power cut.
    #[default]
    Fsync,
    /// When it is written, and it is synced soon. It survives a crash of the process. A crash of the system or a power cut may take the
    /// commits of the last moments, as long as one sync takes.
    Os,
    /// At once; it is written and synced soon. Any crash, that of the process too, may take the commits of the last moments.
    Memory,
}

impl fmt::Display for AckLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
            Self::Memory => "memory",
        })
    }
}

/// How a [`DiskStore`](crate::DiskStore) is set up. Start from [`StoreOptions::new`] and change what you need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreOptions {
    /// 16 random bytes, used only if the directory is made now; an existing one has its own.
    pub secret: [u8; 16],
    /// Which clock the tasks live by. Default: real.
    pub clock: ClockMode,
    /// When a commit is answered. Default: when it is synced.
    pub ack_level: AckLevel,
    /// Bytes of one log file, rounded up to a multiple of 4,096; at least 8,192. Default: 16 MiB. A commit that does not
    /// fit gets a file of its own size. May change from one opening to the next.
    pub log_file_bytes: u64,
    /// A checkpoint starts when the log since the last one has more bytes than this. Default: 32 MiB. Larger: what ends soon is written
    /// once only, but recovery takes longer, and the tasks of twice as much log may be in memory, at some 700 bytes for one of 200.
    pub checkpoint_after_bytes: u64,
    /// Bytes that one step of background work writes and syncs; a commit that comes meanwhile waits for one such step.
    /// 4,096 to 1 MiB. Default: 512 KiB.
    pub background_step_bytes: usize,
    /// Bytes after which a segment takes no more tasks and its stretch of time gets another one. 1 KiB to 1 GiB. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Bytes of records that are read as a whole, and of which memory has an entry. 256 to 1 MiB. Default: 16 KiB.
    pub block_bytes: u64,
    /// How much is remembered of tasks that ended.
    pub history: HistoryLimits,
    /// How much is done at once. Only the simulator and tests change it.
    #[doc(hidden)]
    pub bounds: Bounds,
}

impl StoreOptions {
    /// The defaults.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            secret,
            clock: ClockMode::Real,
            ack_level: AckLevel::Fsync,
            log_file_bytes: LOG_FILE_BYTES_DEFAULT,
            checkpoint_after_bytes: 32 << 20,
            background_step_bytes: 512 << 10,
            segment_bytes: 64 << 20,
            block_bytes: 16 << 10,
            history: HistoryLimits::default(),
            bounds: Bounds::default(),
        }
    }

    /// The same with every number brought into its range.
    pub(crate) fn in_range(mut self) -> Self {
        self.log_file_bytes = self.log_file_bytes.clamp(8_192, 1 << 30).next_multiple_of(4_096);
        self.segment_bytes = self.segment_bytes.clamp(1 << 10, 1 << 30);
        self.block_bytes = self.block_bytes.clamp(256, 1 << 20);
        self.background_step_bytes = self.background_step_bytes.clamp(4_096, 1 << 20);
        self.bounds = self.bounds.in_range();
        self
    }
}
