//! The stores of Tickwheel, which keep tasks in memory or on disk.
//!
//! A store keeps the tasks of a shard behind [`ShardStore`](tickwheel_engine::ShardStore): [`MemoryStore`] keeps them until it is dropped,
//! [`DiskStore`] keeps them on disk. A store keeps and finds records. The engine decides when a task is due, ready or dead.
//!
//! [`DiskStore`] uses a second trait, [`Disk`]; [`FsDisk`] is the disk of the operating system. After the opening, an [`Io`] makes the
//! calls to the disk: on its own threads ([`ThreadIo`]), or on the caller's thread when it is polled ([`InlineIo`]).

mod access;
mod acquired;
mod bounds;
mod catalog;
mod checkpoint;
mod checksum;
mod clock_note;
mod codec;
mod descriptors;
mod disk;
mod disk_store;
mod error;
mod fs_disk;
mod history;
mod identity;
mod inbox;
mod index;
mod io;
mod kit;
mod layout;
mod locked_file;
mod log;
mod members;
mod memory;
mod mend;
mod meta;
mod newest;
mod open;
mod options;
mod recovery;
mod report;
mod root;
mod rules;
mod segment;
mod shards_file;
mod stamp;
mod table;
mod wall;

pub mod doctor;
pub mod records;
pub mod salvage;

#[doc(hidden)]
pub use access::open_no_link;
pub use access::{warning_of_others, writable_by_others};
#[doc(hidden)]
pub use bounds::Bounds;
pub use clock_note::ClockNote;
pub use descriptors::{descriptors_kept, is_lack_of_descriptors};
pub use disk::{Disk, DiskError, DiskOp};
pub use disk_store::{DiskStore, PinnedFile, PinnedFiles, stamps_of_copy};
pub use error::OpenError;
pub use fs_disk::FsDisk;
pub use history::HistoryLimits;
pub use identity::identity;
pub use inbox::{InboxRow, RowEnd};
pub use io::{Call, Completion, InlineIo, Io, Job, JobId, Lane, ThreadIo, ZEROES_MAX};
pub use kit::conformance;
pub use layout::UNFINISHED_MARK;
pub use members::Members;
pub use memory::MemoryStore;
pub use meta::FORMAT;
pub use open::{BackupPin, Durability, OpenStore, OpenedStore, QueueStore, SharedData, Wake};
pub use options::{AckLevel, ClockMode, LOG_FILE_BYTES_DEFAULT, StoreOptions};
pub use report::{RecoveryReport, Torn};
pub use root::{Root, directory_of, shards_of};
#[doc(hidden)]
pub use table::Table;
pub use wall::{WallClock, WallSpan};
