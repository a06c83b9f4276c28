//! The copy of a directory that nobody has open, and the way back.

use std::path::Path;

use tickwheel_store::doctor::{Depth, Directory, Examination, examine};
use tickwheel_store::{Disk, DiskError, FsDisk};

use super::copy::{Copy, Part, UNFINISHED};
use super::report::{BackupError, BackupReport};

/// Copies the data directory `from`, which nobody may have open meanwhile, to `to`, which must be absent or empty.
///
/// The copy has what an opening needs and nothing else. It is synced, every record of it is read and checked, and only then it gets
/// its name: until then it is called `<to>.unfinished`.
///
/// # Errors
/// [`BackupError`]: a process has `from`, it is damaged, or the copy cannot be made.
pub fn backup(from: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
    // The lock is not taken of what is no data directory: a file would be made in it.
    if !examine(&mut directory, Depth::Opening).is_ours {
        return Err(damaged(from, examine(&mut directory, Depth::Opening)));
    }
    let mut lock = FsDisk::new(from).map_err(|error| of_disk(from, error))?;
    lock.lock().map_err(|error| match error.source.kind() {
        std::io::ErrorKind::WouldBlock => BackupError::InUse { path: from.to_owned() },
        _ => of_disk(from, error),
    })?;
    // Again, for somebody may have had it until now.
    let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
    let found = examine(&mut directory, Depth::Opening);
    copy_checked(from, to, found)
}

/// Copies `from`, a backup, to `to`, which must be absent or empty, so that it can be opened there.
///
/// Every record of `from` is read and checked before, and every record of the copy after. Links and files that are not ours are
/// refused, and `from` is not changed. The next owner of the copy is a new one: leases are what they were in the backup.
///
/// # Errors
/// [`BackupError`]: `from` is damaged, has something that is not ours, or is in use; or the copy cannot be made.
pub fn restore(from: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    if from.file_name().is_some_and(|name| name.to_string_lossy().ends_with(UNFINISHED)) {
        return Err(BackupError::Unfinished { path: from.to_owned() });
    }
    let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
    // Somebody else chose the name, and it will be printed.
    let foreign = |name: &str, what| {
        let name = name.escape_debug().to_string();
        BackupError::Foreign { path: from.to_owned(), name, what }
    };
    if let Some(name) = directory.first_link().map_err(|error| of_disk(from, error))? {
        return Err(foreign(&name, "is no plain file"));
    }
    if directory.is_in_use() {
        return Err(BackupError::InUse { path: from.to_owned() });
    }
    let found = examine(&mut directory, Depth::Records);
    if let (true, Some(name)) = (found.is_ours, found.not_ours.first()) {
        return Err(foreign(name, "is not ours"));
    }
    copy_checked(from, to, found)
}

/// Copies what an opening needs, if all is well with it, and names the copy if all is well with that.
fn copy_checked(from: &Path, to: &Path, found: Examination) -> Result<BackupReport, BackupError> {
    if !found.is_in_order() {
        return Err(damaged(from, found));
    }
    let copy = Copy::begin(from, to)?;
    let parts = found.needed.iter().map(|part| Part {
        name: part.file.clone(),
        bytes: Some(part.bytes),
        len: 0,
        content: part.content.clone(),
    });
    let report = copy.take(from, &parts.collect::<Vec<_>>())?;
    let mut directory = Directory::new(copy.path()).map_err(|error| of_disk(copy.path(), error))?;
    let copied = examine(&mut directory, Depth::Records);
    if !copied.is_in_order() {
        // It may be as it was read: an opening does not look at every record, and neither did we before.
        let mut directory = Directory::new(from).map_err(|error| of_disk(from, error))?;
        let source = examine(&mut directory, Depth::Records);
        if !source.is_in_order() {
            return Err(damaged(from, source));
        }
        return Err(BackupError::BadCopy { path: to.to_owned(), problems: copied.problems });
    }
    copy.finish()?;
    Ok(report)
}

fn damaged(path: &Path, found: Examination) -> BackupError {
    BackupError::Damaged { path: path.to_owned(), problems: found.problems }
}

fn of_disk(path: &Path, error: DiskError) -> BackupError {
    // The directory itself goes by the path that was given.
    let whole = error.file.is_empty() || path == std::path::Path::new(&error.file);
    let path = if whole { path.to_owned() } else { path.join(&error.file) };
    BackupError::Io { op: "look at", path, source: error.source }
}
