//! The seam to the file system: everything a store does to a disk goes through [`Disk`].

use core::fmt;
use std::io;

/// A place with files, addressed by names relative to it: `meta`, `shard-0000/log-00000001`.
///
/// [`FsDisk`](crate::FsDisk) is the real one; a simulator has its own that loses what was not synced. The contract is the weakest that file
/// systems give. Written bytes are durable after [`sync_data`](Disk::sync_data) of their file. The creation, the new name or the removal of
/// a file is durable after [`sync_dir`](Disk::sync_dir) of its directory. Until then a crash keeps any part of these changes, in any order.
/// After an error of a write or a sync, nothing is known of the bytes that it covered.
///
/// Files are opened when they are first used and stay open until [`close`](Disk::close), [`remove`](Disk::remove) or the
/// drop of the disk.
pub trait Disk: Send + 'static {
    /// Makes this process the only owner of the place until the disk is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] inside the error if another process has it.
    fn lock(&mut self) -> Result<(), DiskError>;
    /// Whether this process is still the only owner: the lock itself may have been taken away. A disk with a lock that cannot be taken
    /// away, and a disk without a lock, answer `Ok`.
    ///
    /// # Errors
    /// Another process may own the place by now.
    fn check_lock(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
    /// The names in a directory, in order; `""` is the place itself.
    ///
    /// # Errors
    /// If it is absent or cannot be read.
    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError>;
    /// Whether a file is there.
    ///
    /// # Errors
    /// If that cannot be told.
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
    /// If it exists, among others.
    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError>;
    /// Makes an empty file.
    ///
    /// # Errors
    /// If it exists, among others.
    fn create(&mut self, file: &str) -> Result<(), DiskError>;
    /// Opens an existing file; the other calls do it by themselves.
    ///
    /// # Errors
    /// If it is absent, among others.
    fn open(&mut self, file: &str) -> Result<(), DiskError>;
    /// The length of a file (bytes).
    ///
    /// # Errors
    /// If it is absent, among others.
    fn len(&mut self, file: &str) -> Result<u64, DiskError>;
    /// Reads into `into` from `offset` on. Returns how many bytes were there: fewer only at the end of the file.
    ///
    /// # Errors
    /// If the file is absent or cannot be read.
    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError>;
    /// Writes all of `bytes` at `offset`, growing the file if need be. Not durable before `sync_data`.
    ///
    /// # Errors
    /// If any of the bytes may not have been written.
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;
    /// Makes the bytes and the length of a file durable (`fdatasync`).
    ///
    /// # Errors
    /// If any of the bytes may be lost. A later sync that succeeds says nothing about this one.
    fn sync_data(&mut self, file: &str) -> Result<(), DiskError>;
    /// Cuts or grows a file. Not durable before `sync_data`.
    ///
    /// # Errors
    /// If the file is absent, among others.
    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError>;
    /// Gives a file another name. A file that had this name is replaced. Not durable before `sync_dir`.
    ///
    /// # Errors
    /// If the file is absent, among others.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;
    /// Removes a file. Not durable before `sync_dir`.
    ///
    /// # Errors
    /// If the file is absent, among others.
    fn remove(&mut self, file: &str) -> Result<(), DiskError>;
    /// Makes the names in a directory durable; `""` is the place itself.
    ///
    /// # Errors
    /// If any of the names may be lost.
    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError>;
    /// Closes an open file. Nothing happens to a file that is not open.
    fn close(&mut self, file: &str);
    /// Another handle to the same place, for another thread: bytes that one handle writes, the other reads. The lock stays with this
    /// handle.
    #[must_use]
    fn another(&self) -> Self
    where
        Self: Sized;
    /// Bytes that can still be written before the disk is full, as far as is known.
    fn free_bytes(&mut self) -> u64;
}

/// The operation that a disk was asked for when it failed.
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
    /// No operation of the disk failed: the thread that runs the disk ended.
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

/// A call to a [`Disk`] that failed.
#[derive(Debug, thiserror::Error)]
#[error("{op} {file}: {source}")]
pub struct DiskError {
    /// The operation.
    pub op: DiskOp,
    /// The file or directory, under the name that the owner of the disk knows.
    pub file: String,
    /// The cause.
    pub source: io::Error,
}

impl DiskError {
    /// An error of `op` on `file`.
    #[must_use]
    pub fn new(op: DiskOp, file: impl Into<String>, source: io::Error) -> Self {
        Self { op, file: file.into(), source }
    }

    /// Whether there was no space. Space may come back, and nothing is broken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}
