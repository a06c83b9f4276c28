//! The result of a copy.

use std::io;
use std::path::{Path, PathBuf};

use tickwheel_engine::{Timestamp, Unavailable};
use tickwheel_store::Durability;
use tickwheel_store::doctor::{BACKUP_MANIFEST, Examination, Problem};

/// A copy that is whole and durable.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupReport {
    /// Files that were copied.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// The copy has everything that was acknowledged before this instant. `None`: the backup that was restored does not say.
    pub as_of: Option<Timestamp>,
    /// Which failures an acknowledged call survived in the queue that was copied while it ran. [`Durability::Memory`]: calls that were
    /// acknowledged in the last moments before `as_of` may be missing, because they were not written yet. `None`: no queue ran, or the
    /// backup does not say.
    pub ack: Option<Durability>,
    /// Tasks that are live, by the check of the copy; `None` if it was not checked.
    pub tasks: Option<u64>,
    /// Tasks that were given up and are kept; `None` if it was not checked.
    pub dead: Option<u64>,
    /// Queues that have tasks, live or dead; `None` if it was not checked.
    pub queues: Option<u64>,
    /// Ended tasks that are remembered; `None` if it was not checked.
    pub ended: Option<u64>,
    /// Bytes of records that were read and checked in the copy.
    pub checked_bytes: u64,
}

impl BackupReport {
    /// Adds what the check of the copy found.
    pub(super) fn checked(self, found: &Examination) -> Self {
        Self {
            tasks: found.tasks.zip(found.dead).map(|(tasks, dead)| tasks - dead),
            dead: found.dead,
            queues: found.tasks.map(|_| found.queues.len() as u64),
            ended: found.ended,
            checked_bytes: found.checked_bytes.unwrap_or_default(),
            ..self
        }
    }
}

/// Why there is no copy. Each text completes "failed to copy: ...". The target is then absent, or as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The target has something in it.
    #[error("{} is not empty; choose a directory that is not there yet, or an empty one", path.display())]
    NotEmpty {
        /// The target.
        path: PathBuf,
    },
    /// A copy that was killed left its part.
    #[error("{} is a part of a copy that did not finish; remove it first", path.display())]
    Unfinished {
        /// The part.
        path: PathBuf,
    },
    /// The target cannot be given a name at the end.
    #[error("{} has no name of its own; write out the name of the directory that is to be made", path.display())]
    NoName {
        /// The target.
        path: PathBuf,
    },
    /// The target is there and cannot be replaced by the copy at the end.
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
    /// A running process has the directory.
    #[error("{} belongs to a running process; stop it first, or have its server make a backup while it runs: `tickwheel backup --server URL`", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Another process keeps its backups in the same place.
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
        /// Everything that is wrong with the directory.
        problems: Vec<Problem>,
    },
    /// The written bytes did not come back as they were. The copy was removed.
    #[error(
        "what was written for {} does not read back as it was written: {}; it was removed, and its disk is not to be trusted",
        path.display(),
        summary(problems)
    )]
    BadCopy {
        /// Where the copy was to be.
        path: PathBuf,
        /// Everything that is wrong with the copy.
        problems: Vec<Problem>,
    },
    /// The copy of a directory in use does not check out. The copy was removed.
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
    /// The directory has something that no copy of ours has.
    #[error("{} has `{name}`, which {what}; take it away if you trust the rest", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The file's path, from the directory on.
        name: String,
        /// Why the file is not accepted.
        what: &'static str,
    },
    /// A file ended too early, so it is not the file that was to be copied.
    #[error("{} ends at byte {found}, and {wanted} bytes were to be copied", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// How many bytes the file has.
        found: u64,
        /// How many bytes the file should have.
        wanted: u64,
    },
    /// The file system failed.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The backup is not what it says of itself.
    #[error("{} is not what its `{}` says: {what}; take another backup, and keep this one as it is until then", path.display(), BACKUP_MANIFEST)]
    Differs {
        /// The backup.
        path: PathBuf,
        /// The difference, with both figures.
        what: String,
    },
    /// There is too little space where the copy is to be, or its source has too little left.
    #[error(
        "the disk of {} has {free} bytes free, and a backup needs {needed} there with those that it leaves free; make room, or choose \
         another disk",
        path.display()
    )]
    NoRoom {
        /// A folder on that file system.
        path: PathBuf,
        /// Bytes that are needed, with those that have to stay free.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The backup was told to stop.
    #[error("it was stopped")]
    Stopped,
    /// The system gives no thread to the backup.
    #[error("start the thread of the backup: {0}")]
    Thread(#[source] io::Error),
    /// The thread of the backup panicked. That is a defect of this program.
    #[error(
        "the thread of the backup panicked, which is a defect; the message is in the log of the process, or on its stderr"
    )]
    Panicked,
    /// There is no directory to copy.
    #[error("the tasks are kept in memory only")]
    InMemory,
    /// Another copy of the queue is under way; there is one at a time.
    #[error("another backup of this queue is under way; wait for its end")]
    Busy,
    /// The queue closed before the copy was whole.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The first of the problems, and how many more there are.
fn summary(problems: &[Problem]) -> String {
    match problems {
        [] => String::new(),
        [only] => only.to_string(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
    }
}

/// An error of the file system in an operation on this path.
pub(super) fn failed(op: &'static str, path: &Path, source: io::Error) -> BackupError {
    BackupError::Io { op, path: path.to_owned(), source }
}
