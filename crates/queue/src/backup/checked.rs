//! The check of a copy: reads every record of the copy and compares it with its checksum.

use std::path::Path;
use std::time::Instant;

use tickwheel_store::doctor::{Depth, Directory, Examination, examine};
use tickwheel_store::{Disk, DiskError, DiskOp};

use super::report::BackupError;
use super::throttle::Throttle;

/// Reads every record of the directory. The examination lists the problems of the directory.
///
/// The check takes as much memory as an opening of the directory, and frees it at the end.
///
/// # Errors
/// [`BackupError::Stopped`], or the directory cannot be opened.
pub(super) fn check(path: &Path, throttle: Throttle) -> Result<Examination, BackupError> {
    throttle.watch().checks();
    let directory = Directory::new(path).map_err(|error| of_disk(path, error))?.of_maker();
    let mut followed = Followed { directory, throttle };
    let found = examine(&mut followed, Depth::Records);
    // After a stop each read fails, and the examination counts that as damage of the disk. So a stop is reported instead of the
    // examination.
    followed.throttle.watch().go_on()?;
    Ok(found)
}

/// Makes an error of a backup from an error of a disk, with the whole path of the file.
pub(super) fn of_disk(path: &Path, error: DiskError) -> BackupError {
    // An error about the directory itself has no file, or the path that the caller gave.
    let whole = error.file.is_empty() || path == Path::new(&error.file);
    let path = if whole { path.to_owned() } else { path.join(&error.file) };
    BackupError::Io { op: "look at", path, source: error.source }
}

/// The directory under the check. `throttle` counts the bytes that are read. If the backup is gentle, `throttle` also sleeps after reads. After a
/// stop each read fails.
struct Followed {
    directory: Directory,
    throttle: Throttle,
}

impl Disk for Followed {
    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        if self.throttle.watch().is_stopped() {
            return Err(DiskError::new(DiskOp::Read, file, std::io::ErrorKind::Interrupted.into()));
        }
        let begun = Instant::now();
        let count = self.directory.read(file, offset, into)?;
        self.throttle.read(count as u64, begun);
        Ok(count)
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        self.directory.list(dir)
    }

    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.directory.open(file)
    }

    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.directory.len(file)
    }

    fn close(&mut self, file: &str) {
        self.directory.close(file);
    }

    fn free_bytes(&mut self) -> u64 {
        self.directory.free_bytes()
    }

    fn another(&self) -> Self {
        unreachable!("an examination has one hand on the disk")
    }

    // A [`Directory`] is read-only: it refuses all calls below.

    fn lock(&mut self) -> Result<(), DiskError> {
        self.directory.lock()
    }

    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.directory.create_dir(dir)
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        self.directory.create(file)
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.directory.write_at(file, offset, bytes)
    }

    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        self.directory.sync_data(file)
    }

    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        self.directory.set_len(file, bytes)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.directory.rename(from, to)
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.directory.remove(file)
    }

    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.directory.sync_dir(dir)
    }
}
