//! [`backup`]: the copy of a directory that no process has open. [`restore`]: the copy of a backup to a new directory.

use std::path::Path;

use tickwheel_store::doctor::{Depth, Directory, Examination, examine};
use tickwheel_store::{Disk, FsDisk, PinnedFile};

use super::checked::{check, of_disk};
use super::copy::{Copy, UNFINISHED};
use super::manifest::{Manifest, ManifestFile, report_of};
use super::report::{BackupError, BackupReport};
use super::shards::{check_root, check_stamps, copy_all, lock, several};
use super::throttle::Throttle;
use crate::clock::time::system_now;

/// Copies the data directory `from` to `to`. No process may have `from` open meanwhile. `to` must be absent or empty.
///
/// The copy has the files that an opening needs, and a [`Manifest`]. The copy is synced, and every record of it is read and checked. Until
/// then its name is `<to>.unfinished`. A directory of several shards is copied shard by shard.
///
/// # Errors
/// [`BackupError`]: a process has `from` open, `from` is damaged, or the copy cannot be made.
pub fn backup(from: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    let Some(router) = several(from)? else { return backup_one(from, to) };
    let _lock = lock(from)?;
    check_stamps(from, router)?;
    copy_all((from, router), to, None, true, |_, directory, target| backup_one(directory, target))
}

/// Copies a directory of one shard.
fn backup_one(from: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
    // A directory that is no data directory is not locked, because the lock would make a file in it.
    if !examine(&mut directory, Depth::Opening).is_ours {
        return Err(damaged(from, examine(&mut directory, Depth::Opening)));
    }
    let mut lock = FsDisk::new(from).map_err(|error| of_disk(from, error))?;
    lock.lock().map_err(|error| match error.source.kind() {
        std::io::ErrorKind::WouldBlock => BackupError::InUse { path: from.to_owned() },
        _ => of_disk(from, error),
    })?;
    // The directory is examined again, because another process may have changed it until the lock was taken.
    let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
    let found = examine(&mut directory, Depth::Opening);
    let begun_at = system_now();
    let (copy, mut report, files) = copy_examined(from, to, found, None)?;
    report.as_of = Some(begun_at);
    copy.describe(report, files, begun_at)?;
    copy.finish()?;
    Ok(report)
}

/// Copies `from`, a backup, to `to`, so that a queue can be opened in `to`. `to` must be absent or empty.
///
/// Every record of `from` is read and checked before the copy, and every record of the copy is read and checked after it. A link in `from`,
/// or a file that no backup has, is refused. `from` is not changed. If the backup has a [`Manifest`], the checksum of each file, and the
/// counts, are compared with the manifest. The report tells what the copy has, and the instant of the backup. Leases in the copy are as
/// they were in the backup.
///
/// # Errors
/// [`BackupError`]: `from` is damaged or unfinished, differs from its manifest, has a link or a file that no backup has, or is in use; or
/// the copy cannot be made.
pub fn restore(from: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    if from.file_name().is_some_and(|name| name.to_string_lossy().ends_with(UNFINISHED)) {
        return Err(BackupError::Unfinished { path: from.to_owned() });
    }
    let Some(router) = several(from)? else { return restore_one(from, to) };
    check_no_link(from)?;
    if Directory::new(from).map_err(|error| of_disk(from, error))?.is_in_use() {
        return Err(BackupError::InUse { path: from.to_owned() });
    }
    check_root(from, router)?;
    check_stamps(from, router)?;
    copy_all((from, router), to, None, false, |_, directory, target| restore_one(directory, target))
}

/// Refuses a link in a backup.
fn check_no_link(backup: &Path) -> Result<(), BackupError> {
    let mut directory = Directory::new(backup).map_err(|error| of_disk(backup, error))?;
    match directory.first_link().map_err(|error| of_disk(backup, error))? {
        Some(name) => Err(foreign(backup, &name, "is no plain file")),
        None => Ok(()),
    }
}

fn foreign(backup: &Path, name: &str, what: &'static str) -> BackupError {
    // Another user may have chosen the name. The name is printed in the error, so its special characters are escaped.
    BackupError::Foreign { path: backup.to_owned(), name: name.escape_debug().to_string(), what }
}

/// Restores the backup of a directory of one shard.
fn restore_one(from: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
    check_no_link(from)?;
    if directory.is_in_use() {
        return Err(BackupError::InUse { path: from.to_owned() });
    }
    let found = examine(&mut directory, Depth::Records);
    if let (true, Some(name)) = (found.is_ours, found.not_ours.first()) {
        return Err(foreign(from, name, "is not ours"));
    }
    if !found.is_in_order() {
        return Err(damaged(from, found));
    }
    let manifest = Manifest::read(from)?;
    if let Some(manifest) = &manifest {
        manifest.check(from, &found, true)?;
    }
    let (copy, mut report, _) = copy_examined(from, to, found, manifest.as_ref())?;
    report.as_of = manifest.as_ref().and_then(Manifest::as_of);
    report.ack = manifest.as_ref().and_then(Manifest::ack);
    copy.finish()?;
    Ok(report)
}

/// Copies the files that an opening needs. Fails unless the source and the copy are in order. The copy that is returned does not have its
/// final name yet.
fn copy_examined(
    from: &Path,
    to: &Path,
    found: Examination,
    manifest: Option<&Manifest>,
) -> Result<(Copy, BackupReport, Vec<ManifestFile>), BackupError> {
    if !found.is_in_order() {
        return Err(damaged(from, found));
    }
    let copy = Copy::begin(from, to)?;
    let parts = found.needed.iter().map(|part| PinnedFile {
        name: part.file.as_str().into(),
        bytes: Some(part.bytes),
        len: 0,
        content: part.content.clone(),
    });
    let files = copy.take(from, &parts.collect::<Vec<_>>(), &mut Throttle::quick())?;
    let copied = check(copy.path(), Throttle::quick())?;
    if !copied.is_in_order() {
        // The source may be damaged: before the copy, a backup checks only the parts of the source that an opening reads.
        let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
        let source = examine(&mut directory, Depth::Records);
        if !source.is_in_order() {
            return Err(damaged(from, source));
        }
        return Err(BackupError::BadCopy { path: to.to_owned(), problems: copied.problems });
    }
    if let Some(manifest) = manifest {
        manifest.check_counts(copy.path(), &copied)?;
    }
    Ok((copy, report_of(&files).checked(&copied), files))
}

fn damaged(path: &Path, found: Examination) -> BackupError {
    BackupError::Damaged { path: path.to_owned(), problems: found.problems }
}
