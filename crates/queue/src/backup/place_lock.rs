//! [`PlaceLock`]: the lock of a directory that has backups in it.

use std::io;
use std::path::{Path, PathBuf};

use tickwheel_store::{Disk, DiskError, FsDisk};

use super::report::{self, BackupError};

/// The lock of a directory of backups. One process at a time can have it, so two servers do not keep their backups in one directory. The
/// lock is like that of a data directory: it locks the file `lock` in the directory, and the directory itself.
#[derive(Debug)]
pub struct PlaceLock {
    path: PathBuf,
    /// The locked directory; `None` while this process does not have the lock.
    disk: Option<FsDisk>,
}

impl PlaceLock {
    /// Takes the lock of a directory, which has to exist.
    ///
    /// # Errors
    /// [`BackupError::PlaceInUse`]: another process has the lock. [`BackupError::Io`]: the directory is missing or is no directory, the
    /// file system fails, or `lock` is a symbolic link.
    pub fn take(path: &Path) -> Result<Self, BackupError> {
        let mut lock = Self { path: path.to_owned(), disk: None };
        lock.take_again()?;
        Ok(lock)
    }

    /// Checks that this process still has the lock. Takes the lock again if the file `lock` is gone or is another file, for example because
    /// the directory was removed and made anew, or if this process lost the lock before. Returns whether the lock was taken again.
    ///
    /// # Errors
    /// The errors of [`take`](Self::take). After an error, this process does not have the lock until a later call returns `Ok`.
    pub fn look(&mut self) -> Result<bool, BackupError> {
        if self.disk.as_mut().is_some_and(|disk| disk.check_lock().is_ok()) {
            return Ok(false);
        }
        // This process may still have locked the directory itself. Its old lock would keep it from the new lock, so the old lock is
        // released first.
        self.disk = None;
        self.take_again()?;
        Ok(true)
    }

    fn take_again(&mut self) -> Result<(), BackupError> {
        let failed = |source| report::failed("lock", &self.path, source);
        // `FsDisk` would make a missing directory and its parents. If a mount is missing, `FsDisk` would make them on the disk below the
        // mount point.
        if !std::fs::metadata(&self.path).map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        let taken = FsDisk::new(&self.path).and_then(|mut disk| disk.lock().map(|()| disk));
        self.disk = Some(taken.map_err(|DiskError { source, .. }| match source.kind() {
            io::ErrorKind::WouldBlock => BackupError::PlaceInUse { path: self.path.clone() },
            _ => failed(source),
        })?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_place_that_is_removed_and_made_anew_is_taken_again_unless_another_has_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("backups");
        let file = path.join(FsDisk::LOCK_FILE);
        fs::create_dir(&path).expect("made");
        let mut first = PlaceLock::take(&path).expect("free");
        assert!(!first.look().expect("it is there"));
        // Only the file is removed. The directory itself is still locked, so no other process can take the lock.
        fs::remove_file(&file).expect("removed");
        assert!(matches!(PlaceLock::take(&path), Err(BackupError::PlaceInUse { .. })));
        assert!(first.look().expect("taken again") && !first.look().expect("it is there"));
        // The directory is removed and made anew. Another process can take its lock, and the first process notices.
        fs::remove_dir_all(&path).expect("removed");
        let gone = first.look().expect_err("gone").to_string();
        assert!(gone.contains("No such file"), "{gone}");
        fs::create_dir(&path).expect("made");
        let second = PlaceLock::take(&path).expect("free");
        assert!(matches!(first.look(), Err(BackupError::PlaceInUse { .. })));
        drop(second);
        assert!(first.look().expect("free again"));
        drop(first);
        fs::remove_file(&file).expect("removed");
        std::os::unix::fs::symlink(dir.path().join("victim"), &file).expect("linked");
        let refused = PlaceLock::take(&path).expect_err("a link").to_string();
        assert!(refused.contains("symbolic link") && !dir.path().join("victim").exists(), "{refused}");
    }
}
