//! [`BackupReport`] and [`BackupError`]: the result of a copy.

use std::io;
use std::path::{Path, PathBuf};

use tickwheel_engine::{Timestamp, Unavailable};
use tickwheel_store::Durability;
use tickwheel_store::doctor::{BACKUP_MANIFEST, Examination, Problem};

/// The figures of a copy that is whole and durable.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of files that were copied.
    pub files: u64,
    /// The size of all these files (bytes).
    pub bytes: u64,
    /// The copy has everything that was acknowledged before this instant, with the exception that `ack` names. `None`: the backup that was
    /// restored has no manifest with the instant.
    pub as_of: Option<Timestamp>,
    /// Which failures an acknowledged call survived in the queue that was copied while it ran. [`Durability::Memory`]: the copy may lack
    /// calls that were acknowledged in the last moments before `as_of`, because they were not written yet. `None`: no queue ran, or the
    /// backup that was restored does not tell.
    pub ack: Option<Durability>,
    /// The number of live tasks in the copy; `None` if the copy was not checked.
    pub tasks: Option<u64>,
    /// The number of dead tasks in the copy; `None` if the copy was not checked.
    pub dead: Option<u64>,
    /// The number of queues that have tasks, live or dead; `None` if the copy was not checked.
    pub queues: Option<u64>,
    /// The number of ended tasks that the copy remembers; `None` if the copy was not checked.
    pub ended: Option<u64>,
    /// The size of the records that were read and checked in the copy (bytes); 0 if the copy was not checked.
    pub checked_bytes: u64,
}

impl BackupReport {
    /// Adds the copy of another shard.
    pub(super) fn with(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one + other);
        Self {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            // Both copies have everything that was acknowledged before the earlier instant.
            as_of: self.as_of.zip(other.as_of).map(|(one, other)| one.min(other)),
            ack: self.ack.or(other.ack),
            tasks: sum(self.tasks, other.tasks),
            dead: sum(self.dead, other.dead),
            queues: sum(self.queues, other.queues),
            ended: sum(self.ended, other.ended),
            checked_bytes: self.checked_bytes + other.checked_bytes,
        }
    }

    /// Returns this report with the figures that the check of the copy found.
    pub(super) fn checked(self, found: &Examination) -> Self {
        Self {
            tasks: found.tasks,
            dead: found.dead,
            queues: found.tasks.map(|_| found.queues.len() as u64),
            ended: found.ended,
            checked_bytes: found.checked_bytes.unwrap_or_default(),
            ..self
        }
    }
}

/// Why there is no copy. Each text completes "failed to copy: ...". After an error the target is absent, or as it was before the copy. In
/// one case it is a whole copy: the last sync and the rename back both failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The target directory is not empty.
    #[error("{} is not empty; choose a directory that is not there yet, or an empty one", path.display())]
    NotEmpty {
        /// The target.
        path: PathBuf,
    },
    /// The path is the directory of an unfinished copy, such as one of a backup that was killed.
    #[error("{} is a part of a copy that did not finish; remove it first", path.display())]
    Unfinished {
        /// The unfinished copy.
        path: PathBuf,
    },
    /// The directory of a copy under way was removed or replaced by another program, or by hand.
    #[error(
        "{} was removed or replaced while the copy was made, so the copy is not whole; start it again, and remove no directory of a backup that runs",
        path.display()
    )]
    Replaced {
        /// The directory of the copy until it has its final name.
        path: PathBuf,
    },
    /// The path of the target does not end with a name (such as `/`, `.` or a path that ends with `..`), so the copy cannot be renamed to
    /// it.
    #[error("{} has no name of its own; write out the name of the directory that is to be made", path.display())]
    NoName {
        /// The target.
        path: PathBuf,
    },
    /// The target is a symbolic link or a mount point, so the rename at the end of the copy cannot replace it.
    #[error("{} is {what}, and a copy cannot take its place; name a directory inside of it that is not there yet", path.display())]
    NotPlain {
        /// The target.
        path: PathBuf,
        /// The kind of the target, such as a link.
        what: &'static str,
    },
    /// The target is in the directory that is to be copied.
    #[error("{} lies in the directory that is to be copied; choose a place outside", path.display())]
    Inside {
        /// The target.
        path: PathBuf,
    },
    /// A running process has the directory open.
    #[error("{} belongs to a running process; stop it first, or have its server make a backup while it runs: `tickwheel backup --server URL`", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Another process keeps its backups in the same directory.
    #[error("another running server keeps its backups in {}; give each server a directory of its own", path.display())]
    PlaceInUse {
        /// The directory of backups.
        path: PathBuf,
    },
    /// The directory that is to be copied is no data directory, or it is damaged.
    #[error("{} is not in order: {}", path.display(), summary(problems))]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// The problems that the examination found in the directory.
        problems: Vec<Problem>,
    },
    /// The check found damage in the copy, although the copied directory is in order. The copy was removed.
    #[error(
        "what was written for {} does not read back as it was written: {}; it was removed, and its disk is not to be trusted",
        path.display(),
        summary(problems)
    )]
    BadCopy {
        /// The target of the copy.
        path: PathBuf,
        /// Everything that is wrong with the copy.
        problems: Vec<Problem>,
    },
    /// The check found damage in the copy of a directory in use. The copy was removed. The error does not tell whether the directory is
    /// damaged too.
    #[error(
        "what was copied of {} is not in order: {}; the copy was removed. `tickwheel doctor --deep` of the directory says whether it is \
         damaged itself; if it is not, the disk of the copy is not to be trusted",
        path.display(),
        summary(problems)
    )]
    BadRunningCopy {
        /// The directory in use.
        path: PathBuf,
        /// Everything that is wrong with the copy.
        problems: Vec<Problem>,
    },
    /// The backup has a link, or a file that no backup of Tickwheel has.
    #[error("{} has `{name}`, which {what}; take it away if you trust the rest", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The path of the file, relative to the directory.
        name: String,
        /// Why the file is not accepted.
        what: &'static str,
    },
    /// A file is shorter than the part of it that was to be copied.
    #[error("{} ends at byte {found}, and {wanted} bytes were to be copied", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// The length of the file (bytes).
        found: u64,
        /// The length of the part that was to be copied (bytes).
        wanted: u64,
    },
    /// The file system failed.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The backup differs from its manifest, or the manifest cannot be used.
    #[error("{} is not what its `{}` says: {what}; take another backup, and keep this one as it is until then", path.display(), BACKUP_MANIFEST)]
    Differs {
        /// The backup.
        path: PathBuf,
        /// The difference, or the reason why the manifest cannot be used.
        what: String,
    },
    /// The disk of the copy, or the disk of the data directory, has too few free bytes.
    #[error(
        "the disk of {} has {free} bytes free, and a backup needs {needed} there with those that it leaves free; make room, or choose \
         another disk",
        path.display()
    )]
    NoRoom {
        /// A folder on the disk.
        path: PathBuf,
        /// The needed free space, with the space that has to stay free (bytes).
        needed: u64,
        /// The free space (bytes).
        free: u64,
    },
    /// The backup was told to stop.
    #[error("it was stopped")]
    Stopped,
    /// The operating system refuses to start the thread of the backup.
    #[error("start the thread of the backup: {0}")]
    Thread(#[source] io::Error),
    /// The thread of the backup panicked. That is a defect of this program.
    #[error(
        "the thread of the backup panicked, which is a defect; the message is in the log of the process, or on its stderr"
    )]
    Panicked,
    /// The store of the queue has no directory that could be copied.
    #[error("the tasks are kept in memory only")]
    InMemory,
    /// Another copy of the queue is under way. A queue makes one copy at a time.
    #[error("another backup of this queue is under way; wait for its end")]
    Busy,
    /// The queue closed before the copy was whole.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Returns the text of the first problem, and how many more problems there are.
fn summary(problems: &[Problem]) -> String {
    match problems {
        [] => String::new(),
        [only] => only.to_string(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
    }
}

/// Returns the error of an operation of the file system that failed on this path.
pub(super) fn failed(op: &'static str, path: &Path, source: io::Error) -> BackupError {
    BackupError::Io { op, path: path.to_owned(), source }
}
