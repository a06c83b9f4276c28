//! [`BackupDir`]: the directory that backups go into.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tickwheel_api::{BackupBody, BackupState};
use tickwheel_queue::backup::Manifest;
use tickwheel_queue::{BackupReport, Timestamp};

use super::name::{UNFINISHED, id_of, name_of};
use crate::events;

/// Held by the server that has the directory. It stays there when the server ends.
const LOCK: &str = "lock";

/// Why a directory cannot take backups.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupDirError {
    /// The file system refuses.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// What it was asked for.
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It lies in what is to be copied.
    #[error("it lies in the data directory {}; choose a place outside, on another disk if there is one", data.display())]
    Inside {
        /// The data directory.
        data: PathBuf,
    },
    /// Another server has it.
    #[error("another running server keeps its backups there; give each server a directory of its own")]
    InUse,
}

/// The directory that backups of one server go into. It is the server's own as long as this lives, by a lock.
///
/// Only entries with names of ours are ever looked at or removed.
#[derive(Debug)]
pub(crate) struct BackupDir {
    path: PathBuf,
    _lock: File,
}

impl BackupDir {
    /// Takes the directory, which is made if it is not there, in a folder that is, and removes what a killed server left unfinished.
    ///
    /// # Errors
    /// [`BackupDirError`].
    pub(crate) fn open(path: &Path, data: &Path) -> Result<Self, BackupDirError> {
        let io = |op, path: &Path| {
            let path = path.to_owned();
            move |source| BackupDirError::Io { op, path, source }
        };
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io("make", path)(error));
            }
            _ => {}
        }
        let path = fs::canonicalize(path).map_err(io("find", path))?;
        // A data directory that is not there yet has nothing in it.
        if let Ok(data) = fs::canonicalize(data)
            && path.starts_with(&data)
        {
            return Err(BackupDirError::Inside { data });
        }
        let file = path.join(LOCK);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&file);
        let lock = opened.map_err(io("open", &file))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupDirError::InUse),
            Err(TryLockError::Error(source)) => return Err(io("lock", &file)(source)),
        }
        let place = Self { path, _lock: lock };
        place.clear();
        Ok(place)
    }

    /// Where the backup with this number goes.
    pub(super) fn target(&self, id: u64) -> PathBuf {
        self.path.join(name_of(id))
    }

    /// Removes what is unfinished. Call it when no backup is under way.
    pub(super) fn clear(&self) {
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
    }

    /// The numbers of all directories with names of ours, rising.
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.names().iter().filter_map(|name| id_of(name)).collect();
        ids.sort_unstable();
        ids
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// The backup with this number, if it is there and is one: whole, or `failed` if it is damaged.
    pub(super) fn find(&self, id: u64) -> Option<BackupBody> {
        let path = self.target(id);
        let manifest = match Manifest::read(&path) {
            Ok(manifest) => Ok(manifest?),
            Err(error) if path.is_dir() => Err(error.to_string()),
            Err(_) => return None,
        };
        let body = BackupBody {
            id,
            name: name_of(id),
            state: BackupState::Done,
            phase: None,
            begun_at_ms: i64::try_from(id).unwrap_or(i64::MAX),
            as_of_ms: None,
            ended_at_ms: None,
            files: 0,
            bytes: 0,
            bytes_done: 0,
            tasks: None,
            dead: None,
            error: None,
        };
        Some(match manifest {
            Ok(manifest) => {
                let ended_at_ms = manifest.ended_at().map(Timestamp::as_ms);
                BackupBody { ended_at_ms, ..with_report(body, &manifest.report()) }
            }
            Err(error) => BackupBody { state: BackupState::Failed, error: Some(error), ..body },
        })
    }

    /// The newest that is whole.
    pub(super) fn newest(&self) -> Option<BackupBody> {
        let mut found = self.ids().into_iter().rev().filter_map(|id| self.find(id));
        found.find(|backup| backup.state == BackupState::Done)
    }

    /// Removes the oldest of the whole ones until there are so many.
    pub(super) fn keep(&self, count: usize) {
        let whole = |id: &u64| self.find(*id).is_some_and(|backup| backup.state == BackupState::Done);
        let whole: Vec<u64> = self.ids().into_iter().filter(whole).collect();
        for id in &whole[..whole.len().saturating_sub(count)] {
            let (name, path) = (name_of(*id), self.target(*id));
            // A removal that is cut short leaves nothing that looks whole.
            let going = self.path.join(format!("{name}{UNFINISHED}"));
            match fs::rename(&path, &going).and_then(|()| fs::remove_dir_all(&going)) {
                Ok(()) => tracing::info!(
                    event = events::BACKUP_REMOVED,
                    name,
                    "an old backup was removed: a newer one is whole"
                ),
                Err(error) => {
                    tracing::warn!(event = events::BACKUP_NOT_REMOVED, name, %error, "an old backup cannot be removed")
                }
            }
        }
    }
}

/// With what is known of a whole copy.
pub(super) fn with_report(body: BackupBody, report: &BackupReport) -> BackupBody {
    let BackupReport { files, bytes, as_of, tasks, dead, .. } = *report;
    BackupBody { files, bytes, bytes_done: bytes, as_of_ms: as_of.map(Timestamp::as_ms), tasks, dead, ..body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_queue::Queue;
    use tickwheel_queue::backup::BackupWatch;

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).expect("there").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn only_parts_of_our_own_are_cleared() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, data) = (dir.path().join("backups"), dir.path().join("data"));
        drop(BackupDir::open(&path, &data).expect("it is made"));
        for name in [format!("{}{UNFINISHED}", name_of(7)), "monday.unfinished".to_owned(), name_of(8)] {
            fs::create_dir(path.join(&name)).expect("made");
            fs::write(path.join(&name).join("file"), b"1").expect("written");
        }
        let place = BackupDir::open(&path, &data).expect("it is free");
        assert_eq!(names(&path), [name_of(8), "lock".to_owned(), "monday.unfinished".to_owned()]);
        assert_eq!(
            (place.ids(), place.find(8), place.find(9)),
            (vec![8], None, None),
            "it says nothing of itself"
        );
    }

    #[test]
    fn a_place_that_cannot_take_backups_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, data) = (dir.path().join("backups"), dir.path().join("data"));
        fs::create_dir(&data).expect("made");
        let refused = |path: &Path| BackupDir::open(path, &data).expect_err("it is no place").to_string();
        assert!(refused(&data.join("backups")).contains("lies in the data directory"));
        assert!(refused(&dir.path().join("absent/backups")).contains("No such file"));
        fs::write(dir.path().join("file"), b"1").expect("written");
        assert!(refused(&dir.path().join("file")).contains("Not a directory"));
        let place = BackupDir::open(&path, &data).expect("free");
        assert!(refused(&path).contains("another running server"));
        drop(place);
        BackupDir::open(&path, &data).expect("free again");
    }

    #[test]
    fn the_oldest_go_and_what_is_damaged_or_of_others_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, data) = (dir.path().join("backups"), dir.path().join("data"));
        let queue = Queue::open(&data).expect("it opens");
        let place = BackupDir::open(&path, &data).expect("free");
        for id in 1..=5 {
            queue.backup_gently(place.target(id), &BackupWatch::new()).expect("copied");
        }
        fs::write(place.target(2).join(Manifest::FILE), b"{").expect("harmed");
        fs::create_dir(path.join("mine")).expect("made");
        fs::create_dir(place.target(6)).expect("made");
        assert_eq!(place.find(2).expect("it is shown").state, BackupState::Failed);
        assert_eq!(place.newest().expect("there is one").id, 5);
        place.keep(2);
        assert_eq!(place.ids(), [2, 4, 5, 6]);
        assert!(path.join("mine").is_dir());
        place.keep(7);
        assert_eq!(place.ids(), [2, 4, 5, 6]);
    }
}
