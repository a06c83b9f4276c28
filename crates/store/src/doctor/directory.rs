//! A directory of the file system that is only read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::access::{check_no_link, open_no_link};
use crate::disk::{Disk, DiskError, DiskOp};
use crate::fs_disk::{FsDisk, list_names, read_all_at};
use crate::layout::SHARD;
use crate::locked_file::LockedFile;

/// A directory that is examined. Every operation that would change the directory is refused with [`io::ErrorKind::ReadOnlyFilesystem`].
/// Files are opened for reading only, so the right to read them is enough.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    open: BTreeMap<String, File>,
    /// Whether lists leave out the mark of an unfinished directory.
    is_maker: bool,
}

/// Keeps other processes from taking a directory, until this value is dropped. See [`Directory::pin`].
#[derive(Debug)]
pub struct DirectoryPin {
    _files: Vec<LockedFile>,
}

impl Directory {
    /// Returns the directory `root`, which has to exist.
    ///
    /// # Errors
    /// If `root` does not exist, is no directory, or may not be looked at.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, DiskError> {
        let root = root.into();
        let error = |source| DiskError::new(DiskOp::Open, root.display().to_string(), source);
        if !fs::metadata(&root).map_err(error)?.is_dir() {
            return Err(error(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { root, open: BTreeMap::new(), is_maker: false })
    }

    /// Makes lists leave out the mark of an unfinished directory. The process that is making the directory calls this method.
    #[must_use]
    pub fn of_maker(self) -> Self {
        Self { is_maker: true, ..self }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a running process owns the directory. The call takes a shared lock on it for a moment.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.pin().is_none()
    }

    /// Keeps every process from taking the directory until the returned value is dropped. `None`: a running process owns the directory. A
    /// lock file that is absent is not made; then only the directory itself is locked. On a file system without locks, nothing is locked.
    #[must_use]
    pub fn pin(&self) -> Option<DirectoryPin> {
        let mut held = Vec::new();
        // The lock file may have been removed while a process runs. So the lock of the directory itself is asked for, too.
        for file in [open_file(&self.root.join(FsDisk::LOCK_FILE)), File::open(&self.root)] {
            let Ok(file) = file else { continue };
            match LockedFile::shared(file) {
                Ok(file) => held.push(file),
                Err(TryLockError::WouldBlock) => return None,
                Err(TryLockError::Error(_)) => {}
            }
        }
        Some(DirectoryPin { _files: held })
    }

    /// Returns the size (bytes) and the time of the last change of each plain file in the directory and in the folder of the shard. Two
    /// calls tell whether a file was changed in between.
    ///
    /// # Errors
    /// If the directory, the folder of the shard or an entry of one of them cannot be read.
    pub fn file_times(&mut self) -> Result<BTreeMap<String, (u64, Option<SystemTime>)>, DiskError> {
        let mut times = BTreeMap::new();
        // The root of several shards has no folder of a shard's data.
        let has_data = self.list("")?.iter().any(|name| name == SHARD);
        for folder in ["", SHARD].into_iter().take(1 + usize::from(has_data)) {
            for name in self.list(folder)? {
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let found = fs::symlink_metadata(self.root.join(&name));
                let found = found.map_err(|e| DiskError::new(DiskOp::Open, &*name, e))?;
                if found.is_file() {
                    times.insert(name, (found.len(), found.modified().ok()));
                }
            }
        }
        Ok(times)
    }

    /// Returns the first entry, in any folder, that is neither a plain file nor a folder. Most likely, such an entry is a link.
    ///
    /// # Errors
    /// If a folder or an entry of a folder cannot be read.
    pub fn first_link(&mut self) -> Result<Option<String>, DiskError> {
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for name in self.list(&folder)? {
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let found = fs::symlink_metadata(self.root.join(&name));
                let kind = found.map_err(|e| DiskError::new(DiskOp::Open, &*name, e))?.file_type();
                if kind.is_dir() {
                    folders.push(name);
                } else if !kind.is_file() {
                    return Ok(Some(name));
                }
            }
        }
        Ok(None)
    }

    fn file(&mut self, name: &str) -> Result<&File, DiskError> {
        if !self.open.contains_key(name) {
            let file = open_file(&self.root.join(name));
            self.open.insert(name.to_owned(), file.map_err(|e| DiskError::new(DiskOp::Open, name, e))?);
        }
        Ok(self.open.get(name).expect("it was put in above"))
    }
}

/// Opens a plain file for reading. A link or a pipe is refused, because opening a pipe may wait for ever.
fn open_file(path: &Path) -> io::Result<File> {
    check_no_link(path)?;
    if fs::metadata(path)?.is_file() {
        open_no_link(OpenOptions::new().read(true), path)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
    }
}

fn refused<T>(op: DiskOp, name: &str) -> Result<T, DiskError> {
    Err(DiskError::new(op, name, io::ErrorKind::ReadOnlyFilesystem.into()))
}

impl Disk for Directory {
    fn lock(&mut self) -> Result<(), DiskError> {
        refused(DiskOp::Lock, FsDisk::LOCK_FILE)
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        // A name that is not UTF-8 does not belong to the store. The list has to show it, so its bad bytes are replaced.
        let text = |name: OsString| Some(name.to_string_lossy().into_owned());
        let names = list_names(&self.root, dir, self.is_maker, text);
        names.map_err(|e| DiskError::new(DiskOp::List, dir, e))
    }

    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        refused(DiskOp::CreateDir, dir)
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        refused(DiskOp::Create, file)
    }

    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.file(file).map(drop)
    }

    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        let metadata = self.file(file)?.metadata();
        metadata.map(|metadata| metadata.len()).map_err(|e| DiskError::new(DiskOp::Len, file, e))
    }

    fn read(&mut self, name: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        read_all_at(self.file(name)?, offset, into).map_err(|e| DiskError::new(DiskOp::Read, name, e))
    }

    fn write_at(&mut self, file: &str, _: u64, _: &[u8]) -> Result<(), DiskError> {
        refused(DiskOp::Write, file)
    }

    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        refused(DiskOp::Sync, file)
    }

    fn set_len(&mut self, file: &str, _: u64) -> Result<(), DiskError> {
        refused(DiskOp::SetLen, file)
    }

    fn rename(&mut self, from: &str, _: &str) -> Result<(), DiskError> {
        refused(DiskOp::Rename, from)
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        refused(DiskOp::Remove, file)
    }

    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        refused(DiskOp::SyncDir, dir)
    }

    fn close(&mut self, file: &str) {
        self.open.remove(file);
    }

    fn another(&self) -> Self {
        Self { root: self.root.clone(), open: BTreeMap::new(), is_maker: self.is_maker }
    }

    fn free_bytes(&mut self) -> u64 {
        0
    }
}
