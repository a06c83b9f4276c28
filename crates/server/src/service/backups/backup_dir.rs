//! [`BackupDir`]: the directory of the backups.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickwheel_queue::BackupError;
use tickwheel_queue::backup::{PlaceLock, UNFINISHED};

use super::name::{id_of, name_of};
use crate::events;

/// Why a directory cannot take backups.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupDirError {
    /// The file system refuses.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory is inside the data directory, which is copied.
    #[error("it lies in the data directory {}; choose a place outside, on another disk if there is one", data.display())]
    Inside {
        /// The data directory.
        data: PathBuf,
    },
    /// Another server uses the directory, or its lock cannot be taken.
    #[error(transparent)]
    Lock(BackupError),
}

/// The directory of one server's backups. A lock makes it the server's own while this lives.
///
/// Only entries with names of backups are ever read or removed.
#[derive(Debug)]
pub(crate) struct BackupDir {
    path: PathBuf,
    lock: Mutex<PlaceLock>,
    /// The identity of the data directory. `None`: it is not known, and no backup counts as one of this directory.
    pub(super) identity: Option<String>,
}

impl BackupDir {
    /// Takes the directory and creates it if it is absent; its parent must exist. Removes unfinished backups of a
    /// killed server.
    ///
    /// # Errors
    /// [`BackupDirError`]. In this case nothing was created.
    pub(crate) fn open(path: &Path, data: &Path) -> Result<Self, BackupDirError> {
        let path = real(path)?;
        // A data directory that does not exist yet contains nothing.
        if let Ok(data) = fs::canonicalize(data)
            && path.starts_with(&data)
        {
            return Err(BackupDirError::Inside { data });
        }
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(BackupDirError::Io { op: "make", path, source });
            }
            _ => {}
        }
        let lock = Mutex::new(PlaceLock::take(&path).map_err(BackupDirError::Lock)?);
        let backup_dir = Self { path, lock, identity: None };
        backup_dir.clear().map_err(BackupDirError::Lock)?;
        Ok(backup_dir)
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the backup with this number.
    pub(super) fn target(&self, id: u64) -> PathBuf {
        self.path.join(name_of(id))
    }

    /// Checks that the directory still belongs to this server. Call it before anything in the directory is removed.
    /// A user may have removed and recreated the directory, and another server may use it now.
    ///
    /// # Errors
    /// The directory is gone, or another server uses it.
    pub(super) fn look_at_lock(&self) -> Result<(), BackupError> {
        if self.lock().look()? {
            tracing::warn!(
                event = events::BACKUP_DIR_TAKEN_AGAIN,
                directory = %self.path.display(),
                "the directory of backups or its file `lock` was removed and made anew; it is this server's again"
            );
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, PlaceLock> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes unfinished backups. Call it only while no backup is running.
    ///
    /// # Errors
    /// The directory does not belong to this server any more. Nothing was removed.
    pub(super) fn clear(&self) -> Result<(), BackupError> {
        self.look_at_lock()?;
        let unfinished =
            |name: &String| name.strip_suffix(UNFINISHED).is_some_and(|name| id_of(name).is_some());
        for name in self.names().into_iter().filter(unfinished) {
            match fs::remove_dir_all(self.path.join(&name)) {
                Ok(()) => tracing::info!(
                    event = events::BACKUP_PART_REMOVED,
                    name,
                    "a part of a backup that did not finish was removed"
                ),
                Err(error) => {
                    tracing::warn!(event = events::BACKUP_NOT_REMOVED, name, %error, "a part of a backup that did not finish cannot be removed");
                }
            }
        }
        Ok(())
    }

    /// The numbers of all backups in the directory, rising.
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.names().iter().filter_map(|name| id_of(name)).collect();
        ids.sort_unstable();
        ids
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// The path without links. The directory may be absent, but its parent must exist.
fn real(path: &Path) -> Result<PathBuf, BackupDirError> {
    let failed = |source| BackupDirError::Io { op: "find", path: path.to_owned(), source };
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map_err(failed),
    }
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(folder).map_err(failed)?.join(name))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).expect("there").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn only_unfinished_backups_are_cleared() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, data) = (dir.path().join("backups"), dir.path().join("data"));
        drop(BackupDir::open(&path, &data).expect("it is made"));
        for name in [format!("{}{UNFINISHED}", name_of(7)), "monday.unfinished".to_owned(), name_of(8)] {
            fs::create_dir(path.join(&name)).expect("made");
            fs::write(path.join(&name).join("file"), b"1").expect("written");
        }
        let backup_dir = BackupDir::open(&path, &data).expect("it is free");
        assert_eq!(names(&path), [name_of(8), "lock".to_owned(), "monday.unfinished".to_owned()]);
        assert!(backup_dir.find(8).is_none() && backup_dir.find(9).is_none(), "it says nothing of itself");
        assert_eq!(backup_dir.ids(), [8]);
    }

    /// A bug that was found: `rm -rf backups; mkdir backups` under a running server admitted a second server, which
    /// removed the unfinished backup of the first.
    #[test]
    fn a_directory_that_another_server_took_meanwhile_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, data) = (dir.path().join("backups"), dir.path().join("data"));
        let first = BackupDir::open(&path, &data).expect("it is made");
        fs::remove_dir_all(&path).expect("removed");
        fs::create_dir(&path).expect("made");
        let second = BackupDir::open(&path, &data).expect("it is free");
        let part = second.path.join(format!("{}{UNFINISHED}", name_of(7)));
        fs::create_dir(&part).expect("made");
        assert!(matches!(first.clear(), Err(BackupError::PlaceInUse { .. })));
        assert!(part.is_dir(), "the part of the second one is left alone");
        drop(second);
        first.clear().expect("free again");
        assert!(!part.exists());
    }

    #[test]
    fn a_place_that_cannot_take_backups_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, data) = (dir.path().join("backups"), dir.path().join("data"));
        fs::create_dir(&data).expect("made");
        let refused = |path: &Path| BackupDir::open(path, &data).expect_err("it is no place").to_string();
        assert!(refused(&data.join("backups")).contains("lies in the data directory"));
        assert!(!data.join("backups").exists(), "a refusal makes nothing");
        assert!(refused(&dir.path().join("absent/backups")).contains("No such file"));
        fs::write(dir.path().join("file"), b"1").expect("written");
        assert!(refused(&dir.path().join("file")).contains("ot a directory"));
        let backup_dir = BackupDir::open(&path, &data).expect("free");
        assert!(refused(&path).contains("another running server"));
        drop(backup_dir);
        BackupDir::open(&path, &data).expect("free again");
    }
}
