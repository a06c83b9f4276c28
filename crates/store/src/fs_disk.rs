//! [`FsDisk`]: a [`Disk`] over a directory of the file system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::access::{check_no_link, open_no_link};
use crate::descriptors;
use crate::disk::{Disk, DiskError, DiskOp};
use crate::layout::UNFINISHED_MARK;
use crate::locked_file::LockedFile;

/// A [`Disk`] over a directory of the file system. The files that an `FsDisk` makes are for their owner only (0600, directories 0700).
///
/// A call that opens a file or lists a folder refuses a symbolic link in its place. A call that renames or removes a file changes the link
/// and not its target. The path of the directory itself may be a link.
///
/// Writes and syncs are plain `pwrite`, `fdatasync` and `fsync`. So tools that trace system calls, or make them fail, see each write and
/// each sync.
///
/// For Unix only.
#[derive(Debug)]
pub struct FsDisk {
    root: PathBuf,
    open: BTreeMap<String, Opened>,
    /// A number that grows with each use of a file. The number orders the open files by their last use.
    uses: u64,
    lock: Option<Lock>,
    /// Whether [`Disk::list`] leaves out the mark of an unfinished directory, because this process is making the directory.
    is_maker: bool,
}

/// The locks by which this process owns the directory.
#[derive(Debug)]
struct Lock {
    /// The lock file. A user can remove or rename the file and make another one with its name, and another process may lock that one.
    file: LockedFile,
    /// The directory itself, locked too, because the lock file can be replaced. `None` on a file system that does not lock directories,
    /// such as NFS.
    _directory: Option<LockedFile>,
}

/// The most files, without the locks, that one `FsDisk` has open at a time. To open one more, the disk closes the file whose last use is
/// the oldest. A store may have thousands of files, and the system limits how many files a process has open.
const OPEN_MAX: usize = 48;
/// A disk that finds no descriptor closes files of its own down to this number, before it takes one of those that are set aside.
const OPEN_IN_NEED: usize = 8;

#[derive(Debug)]
struct Opened {
    file: File,
    used: u64,
}

impl FsDisk {
    /// The name of the file that a process locks to own the directory. The content of the file has no meaning. The file must not be removed
    /// while a process owns the directory.
    pub const LOCK_FILE: &'static str = "lock";

    /// Returns the disk over the directory `root`, without a lock. Makes the directory and its parents if they are absent.
    ///
    /// # Errors
    /// If the directory can neither be found nor made, or if `root` is a file.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, DiskError> {
        let root = root.into();
        if root.exists() && !root.is_dir() {
            let source = io::Error::new(io::ErrorKind::NotADirectory, "it is a file, not a directory");
            return Err(DiskError::new(DiskOp::Open, root.display().to_string(), source));
        }
        make_dirs(&root).map_err(|e| DiskError::new(DiskOp::CreateDir, root.display().to_string(), e))?;
        Ok(Self { root, open: BTreeMap::new(), uses: 0, lock: None, is_maker: false })
    }

    /// Makes [`Disk::list`] leave out the mark of an unfinished directory. For the process that is making the directory.
    #[must_use]
    pub fn of_maker(self) -> Self {
        Self { is_maker: true, ..self }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    fn error(&self, op: DiskOp, name: &str, source: io::Error) -> DiskError {
        DiskError::new(op, self.path(name).display().to_string(), source)
    }

    fn file(&mut self, name: &str) -> Result<&File, DiskError> {
        if !self.open.contains_key(name) {
            let path = self.path(name);
            let opened = self.opened(|| open_no_link(OpenOptions::new().read(true).write(true), &path));
            let file = opened.map_err(|e| self.error(DiskOp::Open, name, e))?;
            self.keep_open(name, file);
        }
        self.uses += 1;
        let opened = self.open.get_mut(name).expect("it was put in above");
        opened.used = self.uses;
        Ok(&opened.file)
    }

    fn keep_open(&mut self, name: &str, file: File) {
        if self.open.len() >= OPEN_MAX {
            self.close_oldest();
        }
        self.uses += 1;
        self.open.insert(name.to_owned(), Opened { file, used: self.uses });
    }

    /// Closes the file whose last use is the oldest. Returns whether there was one.
    fn close_oldest(&mut self) -> bool {
        let oldest = self.open.iter().min_by_key(|(_, opened)| opened.used).map(|(name, _)| name.clone());
        oldest.and_then(|oldest| self.open.remove(&oldest)).is_some()
    }

    /// Opens a file or a directory. If the process has no descriptor left, gives up those of this disk and those that are set aside, one
    /// after the other, and tries again each time: another thread may take a descriptor that was given up.
    fn opened<R>(&mut self, open: impl Fn() -> io::Result<R>) -> io::Result<R> {
        loop {
            let opened = open();
            if !opened.as_ref().is_err_and(descriptors::is_lack_of_descriptors) {
                return opened;
            }
            let has_many = self.open.len() > OPEN_IN_NEED;
            let given_up = has_many && self.close_oldest() || descriptors::give_up() || self.close_oldest();
            if !given_up {
                return opened;
            }
        }
    }

    /// Opens the file if it is not open, and runs `act` on it. Adds the operation and the name of the file to an error.
    fn on<R>(
        &mut self,
        op: DiskOp,
        name: &str,
        act: impl FnOnce(&File) -> io::Result<R>,
    ) -> Result<R, DiskError> {
        let done = act(self.file(name)?);
        done.map_err(|e| self.error(op, name, e))
    }
}

impl FsDisk {
    /// Returns how the lock file was lost; `None` if the lock file is in its place, or if this disk has no lock.
    ///
    /// # Errors
    /// If the state of the lock file cannot be read.
    fn lock_stands(&self) -> io::Result<Option<&'static str>> {
        let Some(lock) = &self.lock else { return Ok(None) };
        let ours = lock.file.metadata()?;
        match fs::symlink_metadata(self.path(Self::LOCK_FILE)) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Ok(None),
            Ok(_) => Ok(Some("another file is in its place")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some("the file is gone")),
            Err(error) => Err(error),
        }
    }
}

impl Disk for FsDisk {
    fn lock(&mut self) -> Result<(), DiskError> {
        let name = Self::LOCK_FILE;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let opened = open_no_link(&mut options, &self.path(name));
        let file = opened.map_err(|e| self.error(DiskOp::Lock, name, e))?;
        let file = LockedFile::exclusive(file).map_err(|e| {
            let source = match e {
                TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
                TryLockError::Error(source) => source,
            };
            self.error(DiskOp::Lock, name, source)
        })?;
        let directory = lock_directory(&self.root).map_err(|e| self.error(DiskOp::Lock, "", e))?;
        self.lock = Some(Lock { file, _directory: directory });
        // Another process may have replaced the lock file after this process opened it and before this process locked it.
        match self.lock_stands() {
            Ok(_) => self.check_lock(),
            Err(source) => Err(self.error(DiskOp::Lock, name, source)),
        }
    }

    fn check_lock(&mut self) -> Result<(), DiskError> {
        descriptors::keep();
        // If the look at the lock file fails, the lock may still be there: a network file system may not answer for a moment. The next
        // check comes soon.
        let Ok(Some(what)) = self.lock_stands() else { return Ok(()) };
        let source = io::Error::other(format!(
            "{what}, so a second process may own the directory, or the directory was moved; stop this one, and leave the file `lock` and the \
             directory alone while one runs"
        ));
        Err(self.error(DiskOp::Lock, Self::LOCK_FILE, source))
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        // The names of the store are UTF-8, so all other names are left out.
        let names = list_names(&self.root, dir, self.is_maker, |name| name.into_string().ok());
        names.map_err(|e| self.error(DiskOp::List, dir, e))
    }

    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        let made = fs::DirBuilder::new().mode(0o700).create(self.path(dir));
        made.map_err(|e| self.error(DiskOp::CreateDir, dir, e))
    }

    fn create(&mut self, name: &str) -> Result<(), DiskError> {
        let path = self.path(name);
        let made = self
            .opened(|| OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path));
        let file = made.map_err(|e| self.error(DiskOp::Create, name, e))?;
        self.keep_open(name, file);
        Ok(())
    }

    fn open(&mut self, name: &str) -> Result<(), DiskError> {
        self.file(name).map(drop)
    }

    fn len(&mut self, name: &str) -> Result<u64, DiskError> {
        self.on(DiskOp::Len, name, |file| Ok(file.metadata()?.len()))
    }

    fn read(&mut self, name: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        self.on(DiskOp::Read, name, |file| read_all_at(file, offset, into))
    }

    fn write_at(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        // `write_all_at` continues after a short write and after an interruption.
        self.on(DiskOp::Write, name, |file| file.write_all_at(bytes, offset))
    }

    fn sync_data(&mut self, name: &str) -> Result<(), DiskError> {
        self.on(DiskOp::Sync, name, File::sync_data)
    }

    fn set_len(&mut self, name: &str, bytes: u64) -> Result<(), DiskError> {
        self.on(DiskOp::SetLen, name, |file| file.set_len(bytes))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path(from), self.path(to)).map_err(|e| self.error(DiskOp::Rename, from, e))?;
        self.open.remove(to);
        if let Some(file) = self.open.remove(from) {
            self.open.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.open.remove(name);
        fs::remove_file(self.path(name)).map_err(|e| self.error(DiskOp::Remove, name, e))
    }

    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        let path = self.path(dir);
        let opened = self.opened(|| File::open(&path)).map_err(|e| self.error(DiskOp::Open, dir, e))?;
        opened.sync_all().map_err(|e| self.error(DiskOp::SyncDir, dir, e))
    }

    fn close(&mut self, name: &str) {
        self.open.remove(name);
    }

    fn another(&self) -> Self {
        Self { root: self.root.clone(), open: BTreeMap::new(), uses: 0, lock: None, is_maker: self.is_maker }
    }

    fn free_bytes(&mut self) -> u64 {
        // A file system that does not tell its free space is treated as one that is never full. If it is full, a write fails.
        rustix::fs::statvfs(&self.root).map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Returns the names in the folder `dir` of a data directory, converted by `text` and sorted. A name for which `text` returns `None` is
/// left out. With `is_maker`, the mark of an unfinished directory is left out too.
pub(crate) fn list_names(
    root: &Path,
    dir: &str,
    is_maker: bool,
    text: impl Fn(OsString) -> Option<String>,
) -> io::Result<Vec<String>> {
    let path = root.join(dir);
    // The path of the directory itself may be a link. A folder inside belongs to the store, so a link in its place is refused.
    if !dir.is_empty() {
        check_no_link(&path)?;
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.extend(text(entry?.file_name()));
    }
    names.retain(|name| !(is_maker && dir.is_empty() && name == UNFINISHED_MARK));
    names.sort_unstable();
    Ok(names)
}

/// Reads into `into` from `offset` on, and continues after short reads and interruptions. Returns how many bytes were read: fewer than
/// asked only at the end of the file.
pub(crate) fn read_all_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Makes a directory and its missing parents. Each new directory is durable in its parent when the call returns.
fn make_dirs(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    make_dirs(parent)?;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    sync_directory(parent)
}

/// Locks the directory itself. The lock stays when files in the directory are replaced. `None`: the file system does not lock directories.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process has the lock; another error if the directory cannot be opened.
fn lock_directory(path: &Path) -> io::Result<Option<LockedFile>> {
    match LockedFile::exclusive(File::open(path)?) {
        Ok(directory) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_and_directories_belong_to_their_owner_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("a/b");
        let mut disk = FsDisk::new(&root).expect("made");
        disk.lock().expect("locked");
        disk.create_dir("s").expect("made");
        disk.create("s/f").expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&root), 0o700);
        assert_eq!(mode(&root.join("s")), 0o700);
        assert_eq!(mode(&root.join("s/f")), 0o600);
        assert_eq!(mode(&root.join("lock")), 0o600);
    }

    /// The story: a user with the right to write to the directory put a link in the place of a log file, and the server wrote to the file
    /// that the link points to.
    #[test]
    fn a_link_in_the_place_of_a_file_is_refused_and_what_it_points_to_stays() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().expect("a directory");
        let (real, root) = (dir.path().join("real"), dir.path().join("data"));
        fs::create_dir(&real).expect("made");
        symlink(&real, &root).expect("linked");
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        for name in ["lock", "meta", "dangling"] {
            symlink(
                if name == "dangling" { dir.path().join("absent") } else { victim.clone() },
                real.join(name),
            )
            .expect("linked");
        }
        symlink(dir.path(), real.join("shard-0000")).expect("linked");
        let mut disk = FsDisk::new(&root).expect("the directory itself may be a link");
        let refused = [
            disk.lock().expect_err("a link"),
            disk.open("meta").expect_err("a link"),
            disk.len("meta").expect_err("a link"),
            disk.write_at("meta", 0, b"evil").expect_err("a link"),
            disk.set_len("meta", 0).expect_err("a link"),
            disk.read("dangling", 0, &mut [0]).expect_err("a link"),
            disk.list("shard-0000").expect_err("a link"),
        ];
        for error in refused {
            let text = error.to_string();
            assert!(text.contains("data/") && text.contains("it is a symbolic link"), "{text}");
        }
        assert_eq!(disk.create("dangling").expect_err("a link").source.kind(), io::ErrorKind::AlreadyExists);
        // A file that takes the place of a link does not change the file that the link points to.
        disk.create("new").expect("made");
        disk.rename("new", "meta").expect("renamed");
        disk.remove("lock").expect("removed");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
        assert_eq!((disk.len("meta").expect("a file"), disk.list("").expect("listed").len()), (0, 3));
    }

    #[test]
    fn it_reads_what_it_wrote_under_the_name_it_has_now() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut disk = FsDisk::new(dir.path()).expect("made");
        disk.create("a").expect("made");
        disk.write_at("a", 3, b"xyz").expect("written");
        disk.sync_data("a").expect("synced");
        disk.rename("a", "b").expect("renamed");
        disk.sync_dir("").expect("synced");
        let mut bytes = [9; 8];
        assert_eq!(disk.read("b", 1, &mut bytes).expect("read"), 5);
        assert_eq!(&bytes[..5], b"\0\0xyz");
        assert_eq!(disk.len("b").expect("there"), 6);
        assert_eq!(disk.open("a").expect_err("gone").source.kind(), io::ErrorKind::NotFound);
        assert_eq!(disk.create("b").expect_err("there").source.kind(), io::ErrorKind::AlreadyExists);
        disk.remove("b").expect("removed");
        assert_eq!(disk.list("").expect("listed"), Vec::<String>::new());
    }

    /// The story: tasks up to a hundred years ahead make more than a thousand segments, and a process may not have a thousand files open.
    #[test]
    fn it_uses_more_files_than_it_keeps_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut disk = FsDisk::new(dir.path()).expect("made");
        let names: Vec<String> = (0..3 * OPEN_MAX).map(|n| format!("f{n}")).collect();
        for name in &names {
            disk.create(name).expect("made");
            disk.write_at(name, 0, name.as_bytes()).expect("written");
            assert!(disk.open.len() <= OPEN_MAX);
        }
        for name in names.iter().rev() {
            let mut bytes = vec![0; name.len()];
            disk.read(name, 0, &mut bytes).expect("read");
            assert_eq!(bytes, name.as_bytes());
            disk.sync_data(name).expect("synced");
            assert!(disk.open.len() <= OPEN_MAX);
        }
    }

    /// The story: the lock file was removed while a server ran, a second server started, and work that the first server had acknowledged
    /// was lost.
    #[test]
    fn a_lock_file_that_is_removed_or_replaced_lets_no_process_in_and_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut first = FsDisk::new(dir.path()).expect("made");
        first.lock().expect("locked");
        first.check_lock().expect("it is there");
        let path = dir.path().join("lock");
        fs::remove_file(&path).expect("removed");
        let gone = first.check_lock().expect_err("gone").to_string();
        assert!(gone.contains("lock: the file is gone"), "{gone}");
        let mut second = FsDisk::new(dir.path()).expect("made");
        assert_eq!(second.lock().expect_err("held").source.kind(), io::ErrorKind::WouldBlock);
        let replaced = first.check_lock().expect_err("the second made one").to_string();
        assert!(replaced.contains("lock: another file is in its place"), "{replaced}");
        assert!(first.another().check_lock().is_ok(), "other hands have no lock to lose");
        drop(first);
        second.lock().expect("free now");
        second.check_lock().expect("it has its own");
    }

    /// The story: a directory was closed while another thread started a program, and could not be opened again for a moment.
    #[test]
    fn a_copy_of_the_open_files_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut first = FsDisk::new(dir.path()).expect("made");
        first.lock().expect("locked");
        let lock = first.lock.as_ref().expect("it has the lock");
        let directory = lock._directory.as_ref().expect("this file system locks directories");
        // A child has such copies until it runs its program.
        let copies = [lock.file.try_clone(), directory.try_clone()];
        drop(first);
        FsDisk::new(dir.path()).expect("there").lock().expect("free now");
        drop(copies);
    }

    /// The story: one look at the lock failed for a moment, and a healthy server was read-only until its restart.
    #[test]
    fn a_look_that_cannot_tell_is_no_evidence_that_the_lock_is_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let (root, file) = (dir.path().join("data"), dir.path().join("file"));
        let mut disk = FsDisk::new(&root).expect("made");
        disk.lock().expect("locked");
        // A path that goes through a file fails with ENOTDIR for all users, and not with ENOENT.
        fs::rename(&root, dir.path().join("aside")).expect("renamed");
        fs::write(&root, "").expect("written");
        assert!(disk.lock_stands().is_err());
        disk.check_lock().expect("it cannot tell");
        fs::rename(&root, &file).expect("renamed");
        fs::rename(dir.path().join("aside"), &root).expect("renamed");
        disk.check_lock().expect("the error has passed");
        fs::remove_file(root.join("lock")).expect("removed");
        let gone = disk.check_lock().expect_err("gone").to_string();
        assert!(gone.contains("lock: the file is gone") && gone.contains("was moved"), "{gone}");
        let none = lock_directory(&dir.path().join("none")).expect_err("it cannot be opened");
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    /// The story: connections used up the descriptors, and the store could not open its next file. The limit and the descriptors belong to the
    /// whole process, so this test runs itself again in a new process.
    #[test]
    fn a_disk_opens_files_when_others_have_used_up_the_descriptors() {
        use rustix::process::{Resource, getrlimit};
        const NAME: &str = "fs_disk::tests::a_disk_opens_files_when_others_have_used_up_the_descriptors";
        const LIMIT: u64 = 96;
        if getrlimit(Resource::Nofile).current == Some(LIMIT) {
            return use_files_without_descriptors();
        }
        let program = std::env::current_exe().expect("this program");
        let script = format!("ulimit -n {LIMIT}; exec \"$0\" --exact {NAME}");
        let mut again = std::process::Command::new("sh");
        let run = again.args(["-c", &script]).arg(program).output().expect("a shell");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
    }

    fn use_files_without_descriptors() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut disk = FsDisk::new(dir.path()).expect("made");
        disk.lock().expect("locked");
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        let names: Vec<String> = (0..2 * OPEN_MAX).map(|n| format!("f{n}")).collect();
        for name in &names {
            disk.create(name).expect("one of those that are set aside");
            disk.write_at(name, 0, b"x").expect("written");
            disk.sync_dir("").expect("synced");
        }
        let mut other = disk.another();
        for name in &names {
            assert_eq!(other.read(name, 0, &mut [0; 2]).expect("read"), 1);
        }
        drop(other);
        // The store takes back what it gave up, before others can.
        taken.truncate(taken.len() / 2);
        disk.check_lock().expect("it is there");
        taken.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
        disk.close("f0");
        disk.open("f0").expect("one of those that are set aside");
        while disk.close_oldest() {}
        while descriptors::give_up() {}
        taken.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
        let none = disk.open("f0").expect_err("there is none at all");
        assert!(none.lacks_descriptor(), "{none}");
        let none = disk.sync_dir("").expect_err("there is none at all");
        assert!(none.lacks_descriptor(), "{none}");
        drop(taken);
        disk.open("f0").expect("there are some again");
    }

    #[test]
    fn a_second_owner_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut first = FsDisk::new(dir.path()).expect("made");
        first.lock().expect("locked");
        let mut second = FsDisk::new(dir.path()).expect("made");
        assert_eq!(second.lock().expect_err("held").source.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        second.lock().expect("free now");
    }
}
