//! [`PlaceLock`]: the lock of a directory that backups go into.

use std::io;
use std::path::{Path, PathBuf};

use tickwheel_store::{Disk, DiskError, FsDisk};

use super::report::{self, BackupError};

/// This process alone keeps its backups in a directory. The lock is the one that a data directory has: the file `lock` in the directory,
/// and the directory itself.
#[derive(Debug)]
pub struct PlaceLock {
    path: PathBuf,
    /// `None` once the lock was lost and could not be taken again.
    disk: Option<FsDisk>,
}

impl PlaceLock {
    /// Takes the lock of a directory, which has to exist.
    ///
    /// # Errors
    /// [`BackupError::PlaceInUse`]: another process has it. [`BackupError::Io`]: the file system refuses, or `lock` is a symbolic link.
    pub fn take(path: &Path) -> Result<Self, BackupError> {
        let mut lock = Self { path: path.to_owned(), disk: None };
        lock.take_again()?;
        Ok(lock)
    }

    /// Checks that the lock is still there. If the directory or the file was removed, and the directory was made anew, the lock is taken
    /// again. Returns whether that happened.
    ///
    /// # Errors
    /// As for [`take`](Self::take). Then this process does not have the place until a later call returns `Ok`.
    pub fn look(&mut self) -> Result<bool, BackupError> {
        if self.disk.as_mut().is_some_and(|disk| disk.check_lock().is_ok()) {
            return Ok(false);
        }
        // This process may still have the lock of the directory itself, and would block itself with it.
        self.disk = None;
        self.take_again()?;
        Ok(true)
    }

    fn take_again(&mut self) -> Result<(), BackupError> {
        let failed = |source| report::failed("lock", &self.path, source);
        // `FsDisk` would make the directory and its parents. If a mount is missing, it would make them on the disk below.
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
        // Only the file is removed: no other process gets in.
        fs::remove_file(&file).expect("removed");
        assert!(matches!(PlaceLock::take(&path), Err(BackupError::PlaceInUse { .. })));
        assert!(first.look().expect("taken again") && !first.look().expect("it is there"));
        // The directory is removed: another process gets in, and this one notices.
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
