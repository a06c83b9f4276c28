//! Copies of directories of several shards: the copies of all shards, one after the other, below one root.

use std::path::Path;

use tickwheel_engine::ShardId;
use tickwheel_store::doctor::{Depth, Directory, Examination, examine_dir, examine_stamps};
use tickwheel_store::{Disk, FsDisk, PinnedFile, Root, UNFINISHED_MARK, directory_of, shards_of};

use super::checked::of_disk;
use super::copy::Copy;
use super::manifest::{Manifest, ManifestFile, report_of};
use super::report::{BackupError, BackupReport};
use super::throttle::Throttle;
use crate::clock::time::system_now;
use crate::router::Router;

/// Returns the router of a directory of several shards; `None` if the directory has one shard or is none.
pub(super) fn several(directory: &Path) -> Result<Option<Router>, BackupError> {
    let shards = shards_of(directory).map_err(|error| match error {
        tickwheel_store::OpenError::Unfinished => BackupError::Unfinished { path: directory.to_owned() },
        other => {
            let source = std::io::Error::other(other);
            BackupError::Io { op: "look at", path: directory.to_owned(), source }
        }
    })?;
    Ok(shards.filter(|shards| *shards > 1).and_then(Router::new))
}

/// Copies all shards of the root `from` with `copy_one`, which gets the shard, its directory and the target of its copy. The copy gets its
/// final name when it is whole. `stamp`: the stamp of the copy; `None`: that of the root, if it has one. `is_backup`: the copies of the shards
/// have manifests, and the root gets one.
pub(crate) fn copy_all(
    (from, router): (&Path, Router),
    to: &Path,
    stamp: Option<PinnedFile>,
    is_backup: bool,
    mut copy_one: impl FnMut(ShardId, &Path, &Path) -> Result<BackupReport, BackupError>,
) -> Result<BackupReport, BackupError> {
    let begun_at = system_now();
    let copy = Copy::begin(from, to)?;
    let own = |name: &str| PinnedFile { name: name.into(), bytes: None, len: 0, content: None };
    let has_stamp = || from.join(Root::STAMP).exists();
    let stamp = stamp.or_else(|| has_stamp().then(|| own(Root::STAMP)));
    let root: Vec<PinnedFile> = std::iter::once(own(Root::FILE)).chain(stamp).collect();
    let mut sum: Option<BackupReport> = None;
    let mut files = copy.take(from, &root, &mut Throttle::quick())?;
    for shard in router.all() {
        copy.check_own()?;
        let target = directory_of(copy.path(), shard);
        let report = copy_one(shard, &directory_of(from, shard), &target)?;
        sum = Some(sum.map_or(report, |sum| sum.with(report)));
        if is_backup && let Some(manifest) = Manifest::read(&target)? {
            files.extend(manifest.files_below(&folder(shard), &target)?);
        }
    }
    let mut report = sum.expect("there are shards");
    if is_backup {
        // The files of the root count too, as they do for a reader of its manifest.
        let BackupReport { files: count, bytes, .. } = report_of(&files);
        report = BackupReport { files: count, bytes, ..report };
        copy.describe_as(report, files, begun_at, from)?;
    }
    copy.finish()?;
    Ok(report)
}

fn folder(shard: ShardId) -> String {
    directory_of("", shard).display().to_string()
}

/// Locks the root of several shards, so that no process opens it meanwhile.
pub(super) fn lock(root: &Path) -> Result<FsDisk, BackupError> {
    let mut disk = FsDisk::new(root).map_err(|error| of_disk(root, error))?;
    disk.lock().map_err(|error| match error.source.kind() {
        std::io::ErrorKind::WouldBlock => BackupError::InUse { path: root.to_owned() },
        _ => of_disk(root, error),
    })?;
    Ok(disk)
}

/// Checks the root of a backup of several shards: it has nothing but the directories of the shards and its own files, and its manifest, if
/// there is one, says what the manifests of the shards say. Returns the manifest.
pub(super) fn check_root(backup: &Path, router: Router) -> Result<Option<Manifest>, BackupError> {
    let mut directory = Directory::new(backup).map_err(|error| of_disk(backup, error))?;
    let names = directory.list("").map_err(|error| of_disk(backup, error))?;
    let folders: Vec<String> = router.all().map(folder).collect();
    let own = [Root::FILE, Root::STAMP, FsDisk::LOCK_FILE, Manifest::FILE, UNFINISHED_MARK, "lost+found"];
    let foreign =
        |name: &&String| !own.contains(&name.as_str()) && !folders.contains(name) && !name.starts_with('.');
    if let Some(name) = names.iter().find(foreign) {
        let name = name.escape_debug().to_string();
        return Err(BackupError::Foreign { path: backup.to_owned(), name, what: "is not ours" });
    }
    let Some(manifest) = Manifest::read(backup)? else { return Ok(None) };
    manifest.check_root(backup, files_of(backup, router)?)?;
    Ok(Some(manifest))
}

/// Checks that the folders of all shards are of the moment of the root.
pub(super) fn check_stamps(root: &Path, router: Router) -> Result<(), BackupError> {
    let mut directory = Directory::new(root).map_err(|error| of_disk(root, error))?;
    let problems = examine_stamps(&mut directory, router.all());
    if problems.is_empty() { Ok(()) } else { Err(BackupError::Damaged { path: root.to_owned(), problems }) }
}

/// Compares a backup with its manifest, and with those of its shards, by what an examination found in it. `None`: the directory has no
/// manifest. With `bytes`, the checksum of each file is compared too.
///
/// # Errors
/// [`BackupError::Differs`] with the first difference, or a file cannot be read.
pub fn check_found(backup: &Path, found: &Examination, bytes: bool) -> Result<Option<Manifest>, BackupError> {
    let router = found.shards.filter(|_| found.shard.is_none()).and_then(Router::new);
    let Some(router) = router else {
        let manifest = Manifest::read(backup)?;
        manifest.as_ref().map_or(Ok(()), |manifest| manifest.check(backup, found, bytes))?;
        return Ok(manifest);
    };
    let manifest = Manifest::read(backup)?;
    if manifest.is_some() {
        check_root(backup, router)?;
    }
    for member in &found.members {
        let at = backup.join(&member.folder);
        if let Some(manifest) = Manifest::read(&at)? {
            manifest.check(&at, &member.found, bytes)?;
        }
    }
    Ok(manifest)
}

/// Returns the files of a backup of several shards, as the manifests of the shards list them.
fn files_of(backup: &Path, router: Router) -> Result<Vec<ManifestFile>, BackupError> {
    let mut files = vec![ManifestFile::of(backup, "", Root::FILE)?];
    if backup.join(Root::STAMP).exists() {
        files.push(ManifestFile::of(backup, "", Root::STAMP)?);
    }
    for shard in router.all() {
        let at = directory_of(backup, shard);
        if let Some(manifest) = Manifest::read(&at)? {
            files.extend(manifest.files_below(&folder(shard), &at)?);
        }
    }
    Ok(files)
}

/// Compares a backup of several shards with its manifests. With `bytes`, the checksum of each file is compared too.
///
/// # Errors
/// [`BackupError::Differs`] with the first difference, or a file cannot be read.
pub fn check_shards(backup: &Path, bytes: bool) -> Result<Option<Manifest>, BackupError> {
    if several(backup)?.is_none() {
        return Ok(None);
    }
    let depth = if bytes { Depth::Records } else { Depth::Opening };
    let found = examine_dir(backup, depth).map_err(|error| of_disk(backup, error))?;
    check_found(backup, &found, bytes)
}
