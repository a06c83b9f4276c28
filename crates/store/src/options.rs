//! The options of [`DiskStore`](crate::DiskStore).

use core::fmt;

use tickwheel_engine::ShardId;

use crate::bounds::Bounds;
use crate::history::HistoryLimits;

/// The default size of a log file: 16 MiB.
pub const LOG_FILE_BYTES_DEFAULT: u64 = 16 << 20;

/// The clock of the tasks of a directory. The clock is stored when the directory is made, and an opening with the other clock is refused. A
/// virtual clock may be ahead of the real clock, so the times in the directory would be wrong by the real clock.
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

/// When the store answers a commit with `Done`. The level decides which crashes an answered commit survives.
///
/// At each level, an opening finds a consistent earlier state. A commit is in this state only as a whole, and only with all commits before
/// it. Every commit that had been synced is in this state. The acquisition and the release of the shard are always synced.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum AckLevel {
    /// When the commit is synced. The commit survives a crash of the process, a crash of the system, and a power cut.
    #[default]
    Fsync,
    /// When the commit is written; the sync follows soon. The commit survives a crash of the process. A crash of the system or a power cut
    /// may lose the commits that are not synced yet.
    Os,
    /// When the write of the commit begins; the sync follows soon. Any crash, also of the process, may lose the commits that are not synced
    /// yet.
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
    /// 16 random bytes. They are used only if this opening makes the directory. An existing directory has its own secret.
    pub secret: [u8; 16],
    /// The clock of the tasks. Default: real.
    pub clock: ClockMode,
    /// The shard that the directory has. An existing directory must have this shard. Default: the only one of a data set with one shard.
    pub shard: ShardId,
    /// When the store answers a commit. Default: when the commit is synced.
    pub ack_level: AckLevel,
    /// The length of a log file (bytes), rounded up to a multiple of 4,096; 8,192 bytes to 1 GiB. Default: 16 MiB. A commit that does not
    /// fit gets a larger file. The number may change from one opening to the next.
    pub log_file_bytes: u64,
    /// A checkpoint starts when the log since the last checkpoint has more bytes than this number, or earlier if free space is low.
    /// Default: 32 MiB. With a larger number, more tasks end before a checkpoint, and are written only to the log. But a recovery takes
    /// longer, and the tasks of up to twice as much log may be in memory (about 700 bytes for a task of 200 bytes).
    pub checkpoint_after_bytes: u64,
    /// About how many bytes one step of background work writes and syncs. A commit that is submitted during a step waits for at most this
    /// step. 4,096 bytes to 1 MiB. Default: 512 KiB.
    pub background_step_bytes: usize,
    /// A segment takes no more tasks once it has this number of bytes. Later tasks of the same span of time go to another segment. 1 KiB to
    /// 1 GiB. Default: 64 MiB.
    pub segment_bytes: u64,
    /// A block takes no more records once it has this number of bytes. The records of a block are read together, and memory has one entry
    /// for each block. 256 bytes to 1 MiB. Default: 16 KiB.
    pub block_bytes: u64,
    /// How many ended tasks are remembered, and for how long.
    pub history: HistoryLimits,
    /// How much the store does at once. Only the simulator and tests change the bounds.
    #[doc(hidden)]
    pub bounds: Bounds,
}

impl StoreOptions {
    /// Returns the default options with this secret.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            secret,
            clock: ClockMode::Real,
            shard: ShardId::ONLY,
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

    /// Returns the options, with each number that has a range brought into it.
    pub(crate) fn in_range(mut self) -> Self {
        self.log_file_bytes = self.log_file_bytes.clamp(8_192, 1 << 30).next_multiple_of(4_096);
        self.segment_bytes = self.segment_bytes.clamp(1 << 10, 1 << 30);
        self.block_bytes = self.block_bytes.clamp(256, 1 << 20);
        self.background_step_bytes = self.background_step_bytes.clamp(4_096, 1 << 20);
        self.bounds = self.bounds.in_range();
        self
    }
}
