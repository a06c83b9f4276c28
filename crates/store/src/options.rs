//! The options of [`DiskStore`](crate::DiskStore).

use core::fmt;

use crate::bounds::Bounds;
use crate::history::HistoryLimits;

/// The default size of a log file: 16 MiB.
pub const LOG_FILE_BYTES_DEFAULT: u64 = 16 << 20;

/// The clock that the tasks of a directory live by. It is written down when the directory is made, and an opening with the other clock is
/// refused. A virtual clock runs ahead, so its changes would be early by the real clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ClockMode {
    /// The wall clock.
    #[default]
    Real,
    /// A clock that stands still until the user moves it.
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

/// When the store answers a commit with `Done`, and so which crashes the commit survives then.
///
/// At each level an opening finds a consistent earlier state. It has no part of a commit without all commits before it, and every commit
/// that had been synced is in it. The acquisition and the release of the shard are always synced.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum AckLevel {
    /// When the commit is synced. It survives a crash of the process, a crash of the system, and a power cut.
    #[default]
    Fsync,
    /// When the commit is written; the sync follows soon. The commit survives a crash of the process. A crash of the system or a power cut
    /// may take the commits of the last moments, as long as one sync takes.
    Os,
    /// At once; the write and the sync follow soon. Any crash, also of the process, may take the commits of the last moments.
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

/// The options of a [`DiskStore`](crate::DiskStore). Start from [`StoreOptions::new`] and change the fields that you need.
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
    /// A checkpoint starts when the log since the last one has more bytes than this. Default: 32 MiB. With a larger number, tasks that end
    /// soon are written once only. But recovery takes longer, and the tasks of twice as much log may be in memory (about 700 bytes for a
    /// task of 200 bytes).
    pub checkpoint_after_bytes: u64,
    /// Bytes that one step of background work writes and syncs. A commit that comes meanwhile waits for at most one such step. 4,096 to 1
    /// MiB. Default: 512 KiB.
    pub background_step_bytes: usize,
    /// Bytes after which a segment takes no more tasks. Then its stretch of time gets another segment. 1 KiB to 1 GiB. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Bytes of a block: its records are read as a whole, and memory has one entry for it. 256 to 1 MiB. Default: 16 KiB.
    pub block_bytes: u64,
    /// How many ended tasks are remembered, and how long.
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

    /// Returns the options, with every number brought into its range.
    pub(crate) fn in_range(mut self) -> Self {
        self.log_file_bytes = self.log_file_bytes.clamp(8_192, 1 << 30).next_multiple_of(4_096);
        self.segment_bytes = self.segment_bytes.clamp(1 << 10, 1 << 30);
        self.block_bytes = self.block_bytes.clamp(256, 1 << 20);
        self.background_step_bytes = self.background_step_bytes.clamp(4_096, 1 << 20);
        self.bounds = self.bounds.in_range();
        self
    }
}
