//! How a queue gets its store, and what it needs of it beside the tasks.

use std::path::PathBuf;

use tickwheel_engine::{ShardStore, Timestamp};

use crate::disk::Disk;
use crate::disk_store::{DiskStore, PinnedFiles};
use crate::io::Io;
use crate::memory::MemoryStore;
use crate::options::AckLevel;
use crate::report::RecoveryReport;

/// Tells the thread that polls a store that another poll will bring something. It must not block.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// A way to open a store. A queue is opened over whatever implements it: a directory, memory, a database.
pub trait OpenStore {
    /// The store.
    type Store: QueueStore + Send + 'static;
    /// Why it cannot be opened.
    type Error;

    /// Opens the store. It calls `wake` whenever a poll will bring something.
    ///
    /// # Errors
    /// The store cannot be opened.
    fn open(self, wake: Wake) -> Result<OpenedStore<Self::Store>, Self::Error>;
}

/// A store that was opened, and what it says of itself.
#[derive(Debug)]
pub struct OpenedStore<S> {
    /// The store.
    pub store: S,
    /// The latest wall instant in its records; [`Timestamp::EPOCH`] in a new one.
    pub last_wall: Timestamp,
    /// Tells its data from other data: 16 hexadecimal digits, the same for as long as the data lives.
    pub identity: String,
    /// What an acknowledged call survives.
    pub durability: Durability,
    /// What was found at the opening, if the store recovers from files.
    pub recovery: Option<RecoveryReport>,
    /// The directory that a backup copies; `None`: this store has no files, and its backup is not the queue's to make.
    pub directory: Option<PathBuf>,
}

/// What an acknowledgement means.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Durability {
    /// It survives a crash of the process, of the system, and a power cut: it follows the sync that covers it.
    Fsync,
    /// It survives a crash of the process; a crash of the system or a power cut may take the last moments.
    Os,
    /// It survives no crash: tasks are in memory alone, or are written soon after.
    Memory,
}

impl From<AckLevel> for Durability {
    fn from(level: AckLevel) -> Self {
        match level {
            AckLevel::Fsync => Self::Fsync,
            AckLevel::Os => Self::Os,
            AckLevel::Memory => Self::Memory,
        }
    }
}

/// The store of a queue: it keeps the tasks, and is looked after by the thread that owns it. A store without files or background work
/// leaves all methods as they are.
pub trait QueueStore: ShardStore {
    /// Begins to look whether the data is still this process's. Called about once a second.
    fn check_ownership(&mut self) {}

    /// Bytes of log that wait for a checkpoint which is late; `None`: none is late.
    fn checkpoint_late(&self) -> Option<u64> {
        None
    }

    /// The files, to be pinned for a backup; `None`: there are none.
    fn backup(&mut self) -> Option<&mut dyn BackupPin> {
        None
    }
}

/// Files that can be pinned while a backup copies them.
pub trait BackupPin {
    /// Pins all that a copy needs, and says what that is.
    fn pin(&mut self) -> PinnedFiles;

    /// What was pinned may change again.
    fn unpin(&mut self);
}

impl QueueStore for MemoryStore {}

impl<D: Disk, I: Io<D>> QueueStore for DiskStore<D, I> {
    fn check_ownership(&mut self) {
        self.look_at_lock();
    }

    fn checkpoint_late(&self) -> Option<u64> {
        Self::checkpoint_late(self)
    }

    fn backup(&mut self) -> Option<&mut dyn BackupPin> {
        Some(self)
    }
}

impl<D: Disk, I: Io<D>> BackupPin for DiskStore<D, I> {
    fn pin(&mut self) -> PinnedFiles {
        Self::pin(self)
    }

    fn unpin(&mut self) {
        Self::unpin(self);
    }
}
