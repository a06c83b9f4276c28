//! [`OpenStore`]: how a queue opens its store. [`QueueStore`]: the methods that the store of a queue has beside those for tasks.

use std::path::PathBuf;

use tickwheel_engine::{ShardStore, Timestamp};

use crate::clock_note::ClockNote;
use crate::disk::Disk;
use crate::disk_store::{DiskStore, PinnedFiles};
use crate::inbox::{InboxRow, RowEnd};
use crate::io::Io;
use crate::memory::MemoryStore;
use crate::options::AckLevel;
use crate::report::RecoveryReport;
use crate::wall::WallClock;

/// Wakes the thread that polls a store, because the store has work for the next poll. A call must not block.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// A way to open a store. Each kind of store has a way of its own, such as a directory or memory.
pub trait OpenStore {
    /// The store.
    type Store: QueueStore + Send + 'static;
    /// The error of an opening.
    type Error;

    /// Opens the store. A store that works on threads of its own calls `wake` whenever it has work for the next poll.
    ///
    /// # Errors
    /// The store cannot be opened.
    fn open(self, wake: Wake) -> Result<OpenedStore<Self::Store>, Self::Error>;
}

/// A store that was opened, and its properties.
#[derive(Debug)]
pub struct OpenedStore<S> {
    /// The store.
    pub store: S,
    /// The latest wall instant in the records of the store; [`Timestamp::EPOCH`] in a new store.
    pub last_wall: Timestamp,
    /// The identity of the data: 16 hexadecimal digits that never change. Backups of the data have the same identity. All other data has
    /// another one.
    pub identity: String,
    /// The crashes that an acknowledged call survives.
    pub durability: Durability,
    /// The report of the recovery, if the store recovers from files.
    pub recovery: Option<RecoveryReport>,
    /// The directory that a backup copies; `None`: the store has no files, and the queue cannot make a backup.
    pub directory: Option<PathBuf>,
    /// Set if the store shares its data with other processes. One of them may have the shard, so the opening does not wait for the shard.
    pub shared: Option<SharedData>,
}

/// The facts about shared data that a queue needs before it has the shard.
#[derive(Clone, Debug)]
pub struct SharedData {
    /// The secret of the shard, as in [`Acquired`](tickwheel_engine::Acquired).
    pub secret: [u8; 16],
    /// The wall clock that all processes go by.
    pub wall: WallClock,
}

/// The crashes that an acknowledged call survives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Durability {
    /// The call survives a crash of the process, a crash of the system, and a power cut. The acknowledgement follows the sync that covers
    /// the call.
    Fsync,
    /// The call survives a crash of the process. A crash of the system or a power cut may lose the calls of the last moments.
    Os,
    /// The call may be lost in any crash: tasks are in memory only, or are written a moment later.
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

/// The store of a queue. The thread that owns the store calls these methods. A store without files or background work keeps the default of
/// every method.
pub trait QueueStore: ShardStore {
    /// Begins to check whether the data still belongs to this process. The queue calls this method about once a second.
    fn check_ownership(&mut self) {}

    /// Returns the bytes of log that no durable checkpoint covers, if a checkpoint is late; otherwise `None`.
    fn checkpoint_late(&self) -> Option<u64> {
        None
    }

    /// Whether the store waits for a file descriptor. A stop does not wait for it for ever.
    fn lacks_descriptor(&self) -> bool {
        false
    }

    /// Returns why the shard is not served at present although nothing has failed, as a part of a sentence: another process has it, or the
    /// medium does not answer. `None`: nothing is in the way.
    fn waits_for(&self) -> Option<String> {
        None
    }

    /// Returns how often this process lost its shards because an operator adopted the data since the opening. All shards have one number.
    fn adoptions(&self) -> u64 {
        0
    }

    /// Whether a commit can take long although nothing has failed, because it waits for a database. Calls then do not wait as long as the
    /// commit does.
    fn can_stall(&self) -> bool {
        false
    }

    /// Takes out the rows of the store's inbox that have come, in the order of their ids. A row that was taken out does not come again
    /// before [`row_ended`](Self::row_ended). The queue makes the rows calls of the engine. It calls this method after each turn while the
    /// shard is served without doubt, so a store with new rows wakes the thread.
    fn take_rows(&mut self) -> Vec<InboxRow> {
        Vec::new()
    }

    /// Learns what became of a row. If the shard is lost, the queue does not call this method for the rows under way: the store forgets
    /// them with the ownership.
    fn row_ended(&mut self, _row: u64, _end: RowEnd) {}

    /// Returns the note of the wall clock that the opening found; `None` if there is none, or the store keeps no such note.
    fn clock_note(&self) -> Option<ClockNote> {
        None
    }

    /// Begins to write a note of the wall clock, for later openings. The queue calls this method at most once a minute, and after a step of the
    /// clock.
    fn note_clock(&mut self, _note: ClockNote) {}

    /// Returns the store's files, to be pinned for a backup; `None` if the store has no files.
    fn backup(&mut self) -> Option<&mut dyn BackupPin> {
        None
    }
}

/// Files that can be pinned while a backup copies them.
pub trait BackupPin {
    /// Pins all files that a copy needs, and returns the list of them.
    fn pin(&mut self) -> PinnedFiles;

    /// Releases the pin: the store may change and remove the files again.
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

    fn lacks_descriptor(&self) -> bool {
        Self::lacks_descriptor(self)
    }

    fn clock_note(&self) -> Option<ClockNote> {
        Self::clock_note(self)
    }

    fn note_clock(&mut self, note: ClockNote) {
        Self::note_clock(self, note);
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
