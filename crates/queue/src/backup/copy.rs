//! Copies files into a new directory. The directory gets its final name when it is whole.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tickwheel_engine::Timestamp;
use tickwheel_store::{PinnedFile, UNFINISHED_MARK, identity, open_no_link};

use super::manifest::{Manifest, ManifestFile};
use super::report::{BackupError, BackupReport, failed};
use super::throttle::Throttle;
use crate::clock::time::system_now;

/// The end of a copy's name until the copy is whole.
pub const UNFINISHED: &str = ".unfinished";

/// The content of the file that marks an unfinished directory, for people who find the file.
const MARK_TEXT: &[u8] = b"The directory that this file is in is not whole: `tickwheel salvage`, `tickwheel restore` or a backup was making it and did not \
finish. Delete the directory and run the command again.\n";

/// A copy under way. If the copy is dropped before it has its final name, its directory is removed.
///
/// A user or a script may remove the directory while the copy is made, and another copy may make it anew. So a copy writes, renames and removes
/// only the directory that it made.
#[derive(Debug)]
pub(super) struct Copy {
    target: PathBuf,
    /// The directory of the copy until it gets the name `target`.
    made_as: PathBuf,
    /// The directory that this copy made. It is open, so no other directory gets its number.
    own: File,
    is_named: bool,
}

impl Copy {
    /// Makes the directory of the copy beside `target`, with the mark of an unfinished directory. [`finish`](Self::finish) gives it the
    /// name `target`.
    pub(super) fn begin(source: &Path, target: &Path) -> Result<Self, BackupError> {
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(BackupError::NotEmpty { path: target.to_owned() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed("look into", target, source)),
        }
        // The rename at the end can replace an empty directory, but no link and no mount point. With a link or a mount point, the copy may
        // also be made on another disk than the caller meant.
        if let Some(what) = not_plain(target) {
            return Err(BackupError::NotPlain { path: target.to_owned(), what });
        }
        let Some(name) = target.file_name() else {
            return Err(BackupError::NoName { path: target.to_owned() });
        };
        let beside = folder_of(target);
        let real = |path: &Path| fs::canonicalize(path).map_err(|source| failed("find", path, source));
        if real(beside)?.starts_with(real(source)?) {
            return Err(BackupError::Inside { path: target.to_owned() });
        }
        let mut made_as = OsString::from(name);
        made_as.push(UNFINISHED);
        let made_as = beside.join(made_as);
        make_dir(&made_as).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Unfinished { path: made_as.clone() },
            _ => failed("make", &made_as, error),
        })?;
        let own = File::open(&made_as).map_err(|source| failed("open", &made_as, source))?;
        let copy = Self { target: target.to_owned(), made_as, own, is_named: false };
        // Every opening refuses a directory with the mark. So the mark is written before any other file.
        copy.write_down(UNFINISHED_MARK, MARK_TEXT)?;
        Ok(copy)
    }

    /// Checks that the directory is still the one that this copy made.
    ///
    /// # Errors
    /// [`BackupError::Replaced`].
    pub(super) fn check_own(&self) -> Result<(), BackupError> {
        if self.is_own() { Ok(()) } else { Err(BackupError::Replaced { path: self.made_as.clone() }) }
    }

    fn is_own(&self) -> bool {
        let number = |found: fs::Metadata| (found.dev(), found.ino());
        let there = fs::symlink_metadata(&self.made_as).ok().map(number);
        there.is_some() && there == self.own.metadata().ok().map(number)
    }

    /// Writes a file of the copy, and makes it durable.
    fn write_down(&self, name: &str, content: &[u8]) -> Result<(), BackupError> {
        self.check_own()?;
        write_file(&self.made_as.join(name), content, &mut Throttle::quick())?;
        sync_dir(&self.made_as)
    }

    /// Returns the directory of the copy before it has its final name.
    pub(super) fn path(&self) -> &Path {
        &self.made_as
    }

    /// Copies `parts` from `source`, and returns the list of the copied files. All of them are durable then. Their names come from the
    /// store or from an examination of the source.
    pub(super) fn take(
        &self,
        source: &Path,
        parts: &[PinnedFile],
        throttle: &mut Throttle,
    ) -> Result<Vec<ManifestFile>, BackupError> {
        let bytes = parts.iter().map(|part| expected_bytes(part, source)).sum();
        throttle.watch().begins(parts.len() as u64, bytes);
        throttle.look_after(source, &self.made_as, bytes)?;
        let mut copied = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for part in parts {
            self.check_own()?;
            let to = self.made_as.join(&*part.name);
            let folder = folder_of(&to).to_owned();
            if folder != self.made_as && !folders.contains(&folder) {
                make_dir(&folder).map_err(|source| failed("make", &folder, source))?;
                folders.push(folder);
            }
            let (bytes, crc) = match &part.content {
                Some(content) => write_file(&to, content, throttle)?,
                None => copy_file(&source.join(&*part.name), &to, part, throttle)?,
            };
            copied.push(ManifestFile::new(&part.name, bytes, crc));
        }
        folders.push(self.made_as.clone());
        folders.iter().try_for_each(|folder| sync_dir(folder))?;
        Ok(copied)
    }

    /// Writes the manifest of the copy: this report, the list of these files, and the instant at which the backup began. The manifest is
    /// durable when this returns.
    ///
    /// # Errors
    /// The manifest cannot be written, or the identity of the copy cannot be read.
    pub(super) fn describe(
        &self,
        report: BackupReport,
        files: Vec<ManifestFile>,
        begun_at: Timestamp,
    ) -> Result<(), BackupError> {
        self.describe_as(report, files, begun_at, &self.made_as)
    }

    /// Works as [`describe`](Self::describe), with the identity of the directory `original`.
    pub(super) fn describe_as(
        &self,
        report: BackupReport,
        files: Vec<ManifestFile>,
        begun_at: Timestamp,
        original: &Path,
    ) -> Result<(), BackupError> {
        let unread = |error| failed("read", original, io::Error::other(error));
        let identity = identity(original).map_err(unread)?;
        let manifest = Manifest::new(report, identity, files, begun_at, system_now());
        self.write_down(Manifest::FILE, &manifest.to_bytes())
    }

    /// Gives the copy its final name, and makes the name durable.
    pub(super) fn finish(self) -> Result<(), BackupError> {
        self.finish_by(sync_dir)
    }

    /// Works as [`finish`](Self::finish), and syncs the folder with `sync`. If the sync fails, the copy loses its final name again: a copy
    /// that is reported as failed must not look whole.
    fn finish_by(mut self, sync: impl FnOnce(&Path) -> Result<(), BackupError>) -> Result<(), BackupError> {
        let rename =
            |from: &Path, to: &Path| fs::rename(from, to).map_err(|source| failed("rename", from, source));
        self.check_own()?;
        let mark = self.made_as.join(UNFINISHED_MARK);
        fs::remove_file(&mark).map_err(|source| failed("remove", &mark, source))?;
        sync_dir(&self.made_as)?;
        // The rename replaces an empty directory at the target.
        rename(&self.made_as, &self.target)?;
        if let Err(error) = sync(folder_of(&self.target)) {
            // If the rename back fails too, the copy keeps its final name. The copy is whole then, and only a power cut can take the name
            // away.
            self.is_named = rename(&self.target, &self.made_as).is_err();
            return Err(error);
        }
        self.is_named = true;
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.is_named && self.is_own() {
            // If the directory cannot be removed, the end of its name says that it is not whole.
            let _left = fs::remove_dir_all(&self.made_as);
        }
    }
}

/// Returns about how many bytes the copy of the file gets. A missing file is no error yet: the copy of the file fails later.
fn expected_bytes(part: &PinnedFile, source: &Path) -> u64 {
    let whole = || fs::metadata(source.join(&*part.name)).map_or(0, |found| found.len());
    let content = part.content.as_ref().map(|content| content.len() as u64);
    content.or(part.bytes).unwrap_or_else(whole).max(part.len)
}

/// Writes a new file and syncs it. Returns how many bytes the file has, and their checksum.
fn write_file(to: &Path, content: &[u8], throttle: &mut Throttle) -> Result<(u64, u32), BackupError> {
    let write = |source| failed("write", to, source);
    let mut target = new_file(to).map_err(write)?;
    target.write_all(content).map_err(write)?;
    target.sync_all().map_err(|source| failed("sync", to, source))?;
    throttle.watch().copied(content.len() as u64)?;
    Ok((content.len() as u64, crc32c::crc32c(content)))
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Copies a file and syncs the copy. The copy is filled up with zeroes to the length that `part` asks for. Returns how many bytes the copy
/// has, and their checksum.
fn copy_file(
    from: &Path,
    to: &Path,
    part: &PinnedFile,
    throttle: &mut Throttle,
) -> Result<(u64, u32), BackupError> {
    let read = |source| failed("read", from, source);
    let write = |source| failed("write", to, source);
    // The examined file was no link. Another user may have put a link in its place since then, so a link is refused.
    let source = open_no_link(OpenOptions::new().read(true), from).map_err(read)?;
    let wanted = match part.bytes {
        Some(bytes) => bytes,
        None => source.metadata().map_err(read)?.len(),
    };
    let whole = wanted.max(part.len);
    let mut target = new_file(to).map_err(write)?;
    let mut piece = vec![0; throttle.piece_bytes().min(usize::try_from(whole).unwrap_or(usize::MAX))];
    let (mut done, mut crc) = (0, 0);
    while done < whole {
        let begun = Instant::now();
        let end = if done < wanted { wanted } else { whole };
        let left = usize::try_from(end - done).map_or(piece.len(), |left| left.min(piece.len()));
        let count = if done < wanted {
            match source.read_at(&mut piece[..left], done) {
                Ok(0) => return Err(BackupError::Short { path: from.to_owned(), found: done, wanted }),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(read(source)),
            }
        } else {
            piece[..left].fill(0);
            left
        };
        target.write_all(&piece[..count]).map_err(write)?;
        crc = crc32c::crc32c_append(crc, &piece[..count]);
        done += count as u64;
        throttle.wrote((to, &target), done, count as u64, begun)?;
    }
    target.sync_all().map_err(|source| failed("sync", to, source))?;
    Ok((done, crc))
}

fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn sync_dir(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(|source| failed("sync", path, source))
}

/// Returns the kind of the target if a rename cannot replace it. `None`: the target is no link and no mount point, or it is missing.
fn not_plain(target: &Path) -> Option<&'static str> {
    let found = fs::symlink_metadata(target).ok()?;
    if found.file_type().is_symlink() {
        return Some("a symbolic link");
    }
    is_mount_point(target, &found).then_some("a mount point")
}

fn is_mount_point(path: &Path, found: &fs::Metadata) -> bool {
    let is_other_disk = fs::symlink_metadata(folder_of(path)).is_ok_and(|folder| folder.dev() != found.dev());
    is_other_disk || is_mount_root(path)
}

/// Whether a file system is mounted at `path`. Comparing devices is not enough: a folder that is mounted in another place of its own file
/// system (`mount --bind`) has the device of the folder around it.
#[cfg(target_os = "linux")]
fn is_mount_root(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mount_root(_path: &Path) -> bool {
    false
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a source, and begins a copy with one file. Returns the target and the copy.
    fn begun(dir: &Path) -> (PathBuf, Copy) {
        let (source, target) = (dir.join("source"), dir.join("copy"));
        fs::create_dir(&source).expect("made");
        let copy = Copy::begin(&source, &target).expect("begun");
        fs::write(copy.path().join("meta"), b"1").expect("written");
        (target, copy)
    }

    #[test]
    fn a_copy_whose_name_is_not_durable_loses_it_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, copy) = begun(dir.path());
        let broken = |path: &Path| Err(failed("sync", path, io::Error::other("broken")));
        let error = copy.finish_by(broken).expect_err("it is not durable").to_string();
        assert!(error.contains("sync") && error.contains("broken"), "{error}");
        assert!(!target.exists() && !dir.path().join("copy.unfinished").exists(), "nothing is left");
    }

    /// The story: a script removed old directories `*.unfinished` while a backup was made, and the next backup began in the same place. Each
    /// wrote into the directory of the other one, and the first that failed removed both.
    #[test]
    fn a_copy_whose_directory_is_removed_takes_no_part_in_that_of_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, first) = begun(dir.path());
        fs::remove_dir_all(first.path()).expect("removed");
        let replaced = |result: Result<(), BackupError>| {
            let error = result.expect_err("its directory is gone");
            assert!(matches!(&error, BackupError::Replaced { path } if path.ends_with("copy.unfinished")));
            let text = error.to_string();
            assert!(text.contains("was removed or replaced"), "{text}");
        };
        replaced(first.check_own());
        let source = dir.path().join("source");
        let second = Copy::begin(&source, &target).expect("the place is free");
        let file = PinnedFile { name: "meta".into(), bytes: None, len: 0, content: Some(b"first".to_vec()) };
        replaced(first.take(&source, std::slice::from_ref(&file), &mut Throttle::quick()).map(drop));
        replaced(first.write_down("backup.json", b"first"));
        let file = PinnedFile { content: Some(b"second".to_vec()), ..file };
        second.take(&source, &[file], &mut Throttle::quick()).expect("copied");
        // The end of the first copy neither names nor removes the directory of the second one.
        replaced(first.finish());
        second.finish().expect("named");
        assert_eq!(fs::read(target.join("meta")).expect("it is there"), b"second");
        assert!(!target.join(UNFINISHED_MARK).exists());
    }

    /// The story: `mount /dev/sdb /srv/new`, and then a salvage into `/srv/new`. The copy was made beside the mount point and filled the
    /// small disk there, and the rename at the end failed.
    #[test]
    fn a_target_that_cannot_be_replaced_is_refused_before_a_byte_is_copied() {
        let dir = tempfile::tempdir().expect("a directory");
        let (source, real, link) =
            (dir.path().join("source"), dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&source).expect("made");
        fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let refused = Copy::begin(&source, &link).expect_err("a link").to_string();
        assert!(refused.contains("link is a symbolic link") && refused.contains("inside of it"), "{refused}");
        assert!(!dir.path().join("link.unfinished").exists());
        let there = |path: &str| fs::symlink_metadata(path).expect("there");
        if cfg!(target_os = "linux") {
            assert!(is_mount_point(Path::new("/proc"), &there("/proc")) && is_mount_root(Path::new("/proc")));
        }
        assert_eq!((not_plain(&real), not_plain(&dir.path().join("absent"))), (None, None));
        Copy::begin(&source, &real).expect("an empty directory will do").finish().expect("named");
        assert!(real.is_dir());
    }
}
