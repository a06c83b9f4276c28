//! The interface between a store and the file system. Everything that a store does to a disk is a call to [`Disk`].

use core::fmt;
use std::io;

use crate::descriptors::is_lack_of_descriptors;

/// A directory with files. The names of files are relative to the directory: `meta`, `shard-0000/log-00000001`.
///
/// [`FsDisk`](crate::FsDisk) is the disk of the operating system. The simulator has a disk of its own, which may lose at a crash what was
/// not synced. A store relies only on the weakest promises that file systems make. Written bytes are durable after
/// [`sync_data`](Disk::sync_data) of their file. The creation, the new name or the removal of a file is durable after
/// [`sync_dir`](Disk::sync_dir) of its directory. Before these syncs, a crash may keep any part of the changes, in any order. After an
/// error of a write or a sync, the bytes that the call covered may be written or not.
///
/// The calls that need an open file open the file by themselves. A file may stay open until [`close`](Disk::close),
/// [`remove`](Disk::remove) or the drop of the disk. If a call cannot open its file or its directory, it has done nothing, and its error
/// names [`DiskOp::Open`].
pub trait Disk: Send + 'static {
    /// Makes this process the only owner of the directory until the disk is dropped.
    ///
    /// # Errors
    /// If the lock cannot be taken. [`io::ErrorKind::WouldBlock`] inside the error says that another process owns the directory.
    fn lock(&mut self) -> Result<(), DiskError>;
    /// Checks that this process is still the only owner, because the lock itself may have been taken away. A disk without a lock, and a
    /// disk with a lock that cannot be taken away, return `Ok`.
    ///
    /// # Errors
    /// If another process may own the directory.
    fn check_lock(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
    /// Returns the names in a directory, sorted. A disk may leave out names that a store never uses. `""` is the directory of the disk
    /// itself.
    ///
    /// # Errors
    /// If the directory is absent or cannot be read.
    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError>;
    /// Whether a file exists.
    ///
    /// # Errors
    /// If the disk cannot tell.
    fn exists(&mut self, file: &str) -> Result<bool, DiskError> {
        match self.len(file) {
            Ok(_) => Ok(true),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    /// Makes a directory.
    ///
    /// # Errors
    /// If the directory exists, or cannot be made for another reason.
    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError>;
    /// Makes an empty file.
    ///
    /// # Errors
    /// If the file exists, or cannot be made for another reason.
    fn create(&mut self, file: &str) -> Result<(), DiskError>;
    /// Opens an existing file. The calls that read, write or sync a file do not need this call before.
    ///
    /// # Errors
    /// If the file is absent or cannot be opened.
    fn open(&mut self, file: &str) -> Result<(), DiskError>;
    /// Returns the length of a file (bytes).
    ///
    /// # Errors
    /// If the file is absent or its length cannot be read.
    fn len(&mut self, file: &str) -> Result<u64, DiskError>;
    /// Reads bytes of a file into `into`, from `offset` on. Returns how many bytes were read. The number is less than the length of `into`
    /// only at the end of the file.
    ///
    /// # Errors
    /// If the file is absent or cannot be read.
    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError>;
    /// Writes all of `bytes` at `offset`. The file grows if it is too short. The bytes are not durable before `sync_data`.
    ///
    /// # Errors
    /// If some of the bytes may not have been written.
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;
    /// Makes the bytes and the length of a file durable (`fdatasync`).
    ///
    /// # Errors
    /// If some of the bytes may be lost. A later sync that succeeds does not prove that these bytes are durable.
    fn sync_data(&mut self, file: &str) -> Result<(), DiskError>;
    /// Sets the length of a file to `bytes`: cuts it or makes it longer. The length is not durable before `sync_data`.
    ///
    /// # Errors
    /// If the file is absent or its length cannot be changed.
    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError>;
    /// Gives a file another name. A file that had the new name is replaced. The change is not durable before `sync_dir`.
    ///
    /// # Errors
    /// If the file is absent or cannot be renamed.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;
    /// Removes a file. The removal is not durable before `sync_dir`.
    ///
    /// # Errors
    /// If the file is absent or cannot be removed.
    fn remove(&mut self, file: &str) -> Result<(), DiskError>;
    /// Makes the names in a directory durable. `""` is the directory of the disk itself.
    ///
    /// # Errors
    /// If some of the names may be lost.
    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError>;
    /// Closes an open file. Does nothing if the file is not open.
    fn close(&mut self, file: &str);
    /// Returns another handle to the same directory, for another thread. Bytes that one handle writes can be read by all other handles. The
    /// lock stays with the handle that took the lock.
    #[must_use]
    fn another(&self) -> Self
    where
        Self: Sized;
    /// Returns how many bytes can still be written before the disk is full, as far as the disk can tell.
    fn free_bytes(&mut self) -> u64;
}

/// The kind of call to a disk that failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DiskOp {
    /// [`Disk::lock`], [`Disk::check_lock`].
    Lock,
    /// [`Disk::list`].
    List,
    /// [`Disk::create_dir`].
    CreateDir,
    /// [`Disk::create`].
    Create,
    /// [`Disk::open`].
    Open,
    /// [`Disk::len`].
    Len,
    /// [`Disk::read`].
    Read,
    /// [`Disk::write_at`].
    Write,
    /// [`Disk::sync_data`].
    Sync,
    /// [`Disk::set_len`].
    SetLen,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`].
    Remove,
    /// [`Disk::sync_dir`].
    SyncDir,
    /// The thread that makes the calls to the disk panicked or ended. No operation of the disk returned an error.
    Run,
}

impl fmt::Display for DiskOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::List => "list",
            Self::CreateDir => "make directory",
            Self::Create => "create",
            Self::Open => "open",
            Self::Len => "get the length of",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SetLen => "set the length of",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::SyncDir => "sync directory",
            Self::Run => "reach the disk for",
        })
    }
}

/// The error of a call to a [`Disk`].
#[derive(Debug, thiserror::Error)]
#[error("{op} {file}: {source}")]
pub struct DiskError {
    /// The operation.
    pub op: DiskOp,
    /// The name of the file or directory, as the disk gives it. [`FsDisk`](crate::FsDisk) gives the whole path.
    pub file: String,
    /// The cause.
    pub source: io::Error,
}

impl DiskError {
    /// Makes the error of `op` on `file`.
    #[must_use]
    pub fn new(op: DiskOp, file: impl Into<String>, source: io::Error) -> Self {
        Self { op, file: file.into(), source }
    }

    /// Whether the call failed because the disk is full, or because a quota is used up. The same call may succeed later.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether a file could not be made or opened because the process or the system has no file descriptor left. The call has done nothing,
    /// and the same call may succeed later.
    #[must_use]
    pub fn lacks_descriptor(&self) -> bool {
        matches!(self.op, DiskOp::Create | DiskOp::Open) && is_lack_of_descriptors(&self.source)
    }
}
