//! A directory in memory, that counts what changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use tickwheel_store::doctor::{Depth, Examination, examine};
use tickwheel_store::{Disk, DiskError, DiskOp};

/// The files of a directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Image {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) folders: BTreeSet<String>,
    /// Reads that touch this byte of this file fail, as those of a block that the medium has lost.
    pub(crate) unreadable: Option<(String, u64)>,
    changes: u64,
}

impl Image {
    /// The contents of a directory of the file system and of its shard.
    pub(crate) fn of(dir: &Path) -> Self {
        let mut image = Self::default();
        for entry in fs::read_dir(dir).expect("a directory") {
            let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
            if dir.join(&name).is_dir() {
                for entry in fs::read_dir(dir.join(&name)).expect("a folder") {
                    let inner = format!("{name}/{}", entry.expect("an entry").file_name().to_string_lossy());
                    image.files.insert(inner.clone(), fs::read(dir.join(inner)).expect("readable"));
                }
                image.folders.insert(name);
            } else {
                image.files.insert(name.clone(), fs::read(dir.join(&name)).expect("readable"));
            }
        }
        image
    }

    /// Examines it, and finds that nothing was changed.
    #[track_caller]
    pub(crate) fn examine(&mut self, depth: Depth) -> Examination {
        let before = self.changes;
        let found = examine(self, depth);
        assert_eq!(self.changes, before, "an examination changes nothing");
        found
    }

    /// The first file whose name begins like this.
    #[track_caller]
    pub(crate) fn first(&self, prefix: &str) -> String {
        let mut names = self.files.keys().filter(|name| name.starts_with(prefix));
        names.next().unwrap_or_else(|| panic!("there is no {prefix} among {:?}", self.files.keys())).clone()
    }

    #[track_caller]
    pub(crate) fn flip(&mut self, file: &str, byte: usize, bits: u8) {
        self.files.get_mut(file).unwrap_or_else(|| panic!("there is no {file}"))[byte] ^= bits;
    }

    fn file(&mut self, op: DiskOp, name: &str) -> Result<&mut Vec<u8>, DiskError> {
        let absent = || DiskError::new(op, name, io::ErrorKind::NotFound.into());
        self.files.get_mut(name).ok_or_else(absent)
    }
}

impl Disk for Image {
    fn lock(&mut self) -> Result<(), DiskError> {
        self.changes += 1;
        Ok(())
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        if !dir.is_empty() && !self.folders.contains(dir) {
            return Err(DiskError::new(DiskOp::List, dir, io::ErrorKind::NotFound.into()));
        }
        let inside = |name: &&String| match name.rsplit_once('/') {
            None => dir.is_empty(),
            Some((folder, _)) => folder == dir,
        };
        let files =
            self.files.keys().filter(inside).map(|name| name.rsplit('/').next().expect("split gives one"));
        let folders = self.folders.iter().map(String::as_str).filter(|_| dir.is_empty());
        Ok(files.chain(folders).map(str::to_owned).collect())
    }

    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.changes += 1;
        self.folders.insert(dir.to_owned());
        Ok(())
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        self.changes += 1;
        self.files.insert(file.to_owned(), Vec::new());
        Ok(())
    }

    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.file(DiskOp::Open, file).map(drop)
    }

    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.file(DiskOp::Len, file).map(|bytes| bytes.len() as u64)
    }

    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        if let Some((name, at)) = &self.unreadable
            && name == file
            && (offset..offset + into.len() as u64).contains(at)
        {
            return Err(DiskError::new(DiskOp::Read, file, io::Error::other("the medium has lost it")));
        }
        let bytes = self.file(DiskOp::Read, file)?;
        let from = usize::try_from(offset).expect("small").min(bytes.len());
        let count = into.len().min(bytes.len() - from);
        into[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.changes += 1;
        let into = self.file(DiskOp::Write, file)?;
        let from = usize::try_from(offset).expect("small");
        into.resize(into.len().max(from + bytes.len()), 0);
        into[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync_data(&mut self, _: &str) -> Result<(), DiskError> {
        self.changes += 1;
        Ok(())
    }

    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        self.changes += 1;
        self.file(DiskOp::SetLen, file)?.resize(usize::try_from(bytes).expect("small"), 0);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.changes += 1;
        let bytes = std::mem::take(self.file(DiskOp::Rename, from)?);
        self.files.remove(from);
        self.files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.changes += 1;
        self.files.remove(file);
        Ok(())
    }

    fn sync_dir(&mut self, _: &str) -> Result<(), DiskError> {
        self.changes += 1;
        Ok(())
    }

    fn close(&mut self, _: &str) {}

    fn another(&self) -> Self {
        self.clone()
    }

    fn free_bytes(&mut self) -> u64 {
        u64::MAX
    }
}
