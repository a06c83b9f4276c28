//! The backups in the directory: which of them are whole, which belong to this server's data directory, and which may
//! be removed.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tickwheel_queue::backup::{Manifest, UNFINISHED, identity};

use super::backup_dir::BackupDir;
use super::name::name_of;
use crate::events;

/// The largest number of manifests that are read at once, those of the newest backups.
const MANIFESTS_MAX: usize = 1_000;

/// A directory with the name of a backup.
pub(crate) struct Found {
    pub(crate) id: u64,
    /// The manifest, or why it cannot be read.
    pub(crate) manifest: Result<Manifest, String>,
}

impl BackupDir {
    /// Adds the identity of the data directory. Warns in the log if there are whole backups, but none of this data
    /// directory.
    pub(crate) fn of(mut self, data: &Path) -> Self {
        let identity = identity(data).unwrap_or_else(|error| {
            tracing::error!(event = events::DOUBTFUL, %error, "the identity of the data directory cannot be read, so no old backup is removed");
            None
        });
        self.identity = identity;
        let others = self.whole().filter(|(_, manifest)| manifest.directory().is_some()).count();
        if others > 0 && self.newest().is_none() {
            tracing::error!(
                event = events::BACKUPS_OF_ANOTHER,
                directory = %self.path().display(),
                backups = others,
                "the directory of backups has whole ones of another data directory, and none of this one: is the right disk mounted, and is \
                 --data right? They are kept"
            );
        }
        self
    }

    /// The backup with this number, if it is there, with its manifest or the damage.
    pub(super) fn find(&self, id: u64) -> Option<Found> {
        let path = self.target(id);
        let manifest = match Manifest::read(&path) {
            Ok(manifest) => Ok(manifest?),
            Err(error) if path.is_dir() => Err(error.to_string()),
            Err(_) => return None,
        };
        Some(Found { id, manifest })
    }

    /// The whole backups of any data directory, the newest first, up to [`MANIFESTS_MAX`].
    fn whole(&self) -> impl Iterator<Item = (u64, Manifest)> {
        let found = self.ids().into_iter().rev().take(MANIFESTS_MAX).filter_map(|id| self.find(id));
        found.filter_map(|Found { id, manifest }| Some((id, manifest.ok()?)))
    }

    /// The whole backups of this data directory, the newest first. A backup whose manifest has no identity may
    /// be of any directory and is left out.
    fn own(&self) -> impl Iterator<Item = (u64, Manifest)> {
        let own =
            |manifest: &Manifest| self.identity.is_some() && manifest.directory() == self.identity.as_deref();
        self.whole().filter(move |(_, manifest)| own(manifest))
    }

    /// The newest whole backup of this data directory.
    pub(super) fn newest(&self) -> Option<Found> {
        let (id, manifest) = self.own().next()?;
        Some(Found { id, manifest: Ok(manifest) })
    }

    /// Removes the oldest whole backups of this data directory until `count` are left.
    pub(super) fn keep(&self, count: usize) {
        let mut old: Vec<u64> = self.own().skip(count).map(|(id, _)| id).collect();
        // The oldest comes first.
        old.reverse();
        if old.is_empty() {
            return;
        }
        if let Err(error) = self.look_at_lock() {
            tracing::warn!(event = events::BACKUP_NOT_REMOVED, name = name_of(old[0]), %error, "old backups are not removed");
            return;
        }
        for id in old {
            let name = name_of(id);
            match self.remove(id) {
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

    /// Removes a backup. An interruption, even by a power cut, leaves nothing that looks whole: first the name is
    /// removed durably, then the manifest.
    fn remove(&self, id: u64) -> io::Result<()> {
        let going = self.path().join(format!("{}{UNFINISHED}", name_of(id)));
        fs::rename(self.target(id), &going)?;
        File::open(self.path())?.sync_all()?;
        fs::remove_file(going.join(Manifest::FILE))?;
        fs::remove_dir_all(&going)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_queue::Queue;
    use tickwheel_queue::backup::BackupWatch;

    fn open(dir: &Path) -> BackupDir {
        let data = dir.join("data");
        BackupDir::open(&dir.join("backups"), &data).expect("free").of(&data)
    }

    fn copy(backup_dir: &BackupDir, queue: &Queue, ids: impl IntoIterator<Item = u64>) {
        for id in ids {
            queue.backup_gently(backup_dir.target(id), &BackupWatch::new()).expect("copied");
        }
    }

    #[test]
    fn the_oldest_are_removed_and_damaged_or_foreign_ones_stay() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = Queue::open(dir.path().join("data")).expect("it opens");
        let backup_dir = open(dir.path());
        copy(&backup_dir, &queue, 1..=5);
        fs::write(backup_dir.target(2).join(Manifest::FILE), b"{").expect("harmed");
        fs::create_dir(backup_dir.path().join("mine")).expect("made");
        fs::create_dir(backup_dir.target(6)).expect("made");
        assert!(backup_dir.find(2).expect("it is shown").manifest.is_err());
        assert_eq!(backup_dir.newest().expect("there is one").id, 5);
        backup_dir.keep(2);
        assert_eq!(backup_dir.ids(), [2, 4, 5, 6]);
        assert!(backup_dir.path().join("mine").is_dir());
        backup_dir.keep(7);
        assert_eq!(backup_dir.ids(), [2, 4, 5, 6]);
    }

    /// A bug that was found: the disk of the data was not mounted, so the server began with an empty directory. After
    /// a day of hourly backups of it, all good backups were gone.
    #[test]
    fn backups_of_another_data_directory_are_neither_counted_nor_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let queue = Queue::open(&data).expect("it opens");
        let backup_dir = open(dir.path());
        copy(&backup_dir, &queue, 1..=3);
        queue.close();
        drop(backup_dir);
        fs::rename(&data, dir.path().join("unmounted")).expect("renamed");
        let queue = Queue::open(&data).expect("an empty one is made");
        let backup_dir = open(dir.path());
        assert!(backup_dir.newest().is_none(), "there is none of this directory");
        copy(&backup_dir, &queue, 4..=6);
        backup_dir.keep(1);
        assert_eq!(backup_dir.ids(), [1, 2, 3, 6]);
        assert_eq!(backup_dir.newest().expect("its own").id, 6);
        queue.close();
        // When the server uses the first data directory again, its backups count again, and the backup of the other
        // directory stays.
        drop(backup_dir);
        fs::remove_dir_all(&data).expect("removed");
        fs::rename(dir.path().join("unmounted"), &data).expect("renamed");
        let backup_dir = open(dir.path());
        assert_eq!(backup_dir.newest().expect("its own").id, 3);
        backup_dir.keep(1);
        assert_eq!(backup_dir.ids(), [3, 6]);
    }

    #[test]
    fn a_removal_first_takes_the_name_and_then_the_manifest() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = Queue::open(dir.path().join("data")).expect("it opens");
        let backup_dir = open(dir.path());
        copy(&backup_dir, &queue, 1..=1);
        // A manifest that cannot be removed stops the removal. The remains have all files, but not the name of a
        // backup.
        let manifest = backup_dir.target(1).join(Manifest::FILE);
        let files = || {
            fs::read_dir(backup_dir.path().join(format!("{}{UNFINISHED}", name_of(1)))).map(Iterator::count)
        };
        fs::remove_file(&manifest).expect("removed");
        fs::create_dir(&manifest).expect("made");
        backup_dir.remove(1).expect_err("it is a directory");
        assert_eq!((backup_dir.ids(), files().expect("it is there")), (vec![], 4));
    }
}
