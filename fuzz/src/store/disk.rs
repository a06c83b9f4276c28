//! [`MemDisk`]: a disk that is a map.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_store::{Disk, DiskError, DiskOp};

/// Files by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// More than any sample grows to. Beyond it the disk is full.
const SPACE_BYTES: usize = 8 << 20;

/// What a read may ask for beyond the end of its file: a length that was read from a file must not make anybody reserve more
/// than the file has.
const SLACK_BYTES: usize = 64 << 10;

/// All is durable at once, and nothing fails but for want of space.
#[derive(Clone, Debug)]
pub(super) struct MemDisk {
    files: Arc<Mutex<Files>>,
}

impl MemDisk {
    pub(super) fn of(files: Files) -> Self {
        Self { files: Arc::new(Mutex::new(files)) }
    }

    pub(super) fn files(&self) -> Files {
        self.lock_files().clone()
    }

    fn lock_files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, op: DiskOp, file: &str, act: impl FnOnce(&mut Vec<u8>) -> T) -> Result<T, DiskError> {
        self.lock_files().get_mut(file).map(act).ok_or_else(|| failed(op, file, ErrorKind::NotFound))
    }
}

fn failed(op: DiskOp, file: &str, kind: ErrorKind) -> DiskError {
    DiskError::new(op, file, io::Error::from(kind))
}

impl Disk for MemDisk {
    fn lock(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        let files = self.lock_files();
        let inside = |name: &String| match (dir, name.split_once('/')) {
            ("", Some((folder, _))) => Some(folder.to_owned()),
            ("", None) => Some(name.clone()),
            (dir, Some((folder, file))) if folder == dir => Some(file.to_owned()),
            _ => None,
        };
        let mut names: Vec<String> = files.keys().filter_map(inside).collect();
        names.dedup();
        Ok(names)
    }

    fn create_dir(&mut self, _: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        match self.lock_files().insert(file.to_owned(), Vec::new()) {
            None => Ok(()),
            Some(_) => Err(failed(DiskOp::Create, file, ErrorKind::AlreadyExists)),
        }
    }

    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.with(DiskOp::Open, file, |_| ())
    }

    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.with(DiskOp::Len, file, |bytes| bytes.len() as u64)
    }

    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        self.with(DiskOp::Read, file, |bytes| {
            let wanted = into.len();
            assert!(
                wanted <= bytes.len() + SLACK_BYTES,
                "{wanted} bytes of {file}, which has {}",
                bytes.len()
            );
            let from =
                usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
            let count = from.len().min(wanted);
            into[..count].copy_from_slice(&from[..count]);
            count
        })
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(bytes.len()));
        let Some(end) = end.filter(|end| *end <= SPACE_BYTES) else {
            return Err(failed(DiskOp::Write, file, ErrorKind::StorageFull));
        };
        self.with(DiskOp::Write, file, |content| {
            content.resize(content.len().max(end), 0);
            content[end - bytes.len()..end].copy_from_slice(bytes);
        })
    }

    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        self.with(DiskOp::Sync, file, |_| ())
    }

    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        let Some(bytes) = usize::try_from(bytes).ok().filter(|bytes| *bytes <= SPACE_BYTES) else {
            return Err(failed(DiskOp::SetLen, file, ErrorKind::StorageFull));
        };
        self.with(DiskOp::SetLen, file, |content| content.resize(bytes, 0))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut files = self.lock_files();
        let content = files.remove(from).ok_or_else(|| failed(DiskOp::Rename, from, ErrorKind::NotFound))?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        let removed = self.lock_files().remove(file);
        removed.map(drop).ok_or_else(|| failed(DiskOp::Remove, file, ErrorKind::NotFound))
    }

    fn sync_dir(&mut self, _: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn close(&mut self, _: &str) {}

    fn another(&self) -> Self {
        self.clone()
    }

    fn free_bytes(&mut self) -> u64 {
        let used: usize = self.lock_files().values().map(Vec::len).sum();
        SPACE_BYTES.saturating_sub(used) as u64
    }
}
