//! Why a data directory was not opened.

use crate::disk::DiskError;
use crate::layout::META;
use crate::options::ClockMode;

/// Why [`DiskStore::open`](crate::DiskStore::open) refused. Each text completes "failed to open the store: ...".
///
/// Except for [`OpenError::Io`] the directory is as it was, byte for byte.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("{place} belongs to another process; stop that one, or choose another data directory")]
    Locked {
        /// The lock file.
        place: String,
    },
    /// It has something in it, and is no data directory.
    #[error(
        "the directory has `{name}` in it and is no data directory; choose one that is empty or not there yet"
    )]
    Foreign {
        /// One of the files.
        name: String,
    },
    /// To salvage it: no file has a right checksum.
    #[error(
        "no frame of the log and no other file fits the secret in `meta`; it may be of another directory: copy the directory, put the `meta` \
         of a backup of this one into the copy, and salvage that"
    )]
    OtherMeta,
    /// A process that made it was killed before it was whole.
    #[error("{UNFINISHED}; {DELETE_IT}")]
    Unfinished,
    /// A later version wrote it.
    #[error(
        "{file} has format {found}, and this version reads up to {known}; use the version that wrote it, or a later one"
    )]
    NewerFormat {
        /// The file that says so.
        file: String,
        /// Its format.
        found: u32,
        /// The highest format known here.
        known: u32,
    },
    /// A version before the first release wrote it.
    #[error(
        "{file} has format {found} of a version before the first release, and this version reads from {oldest} on; \
         work it off with the version that wrote it, or begin with an empty directory"
    )]
    OlderFormat {
        /// The file that says so.
        file: String,
        /// Its format.
        found: u32,
        /// The lowest format known here.
        oldest: u32,
    },
    /// It was made for the other clock.
    #[error(
        "the directory lives by the {found} clock and was to be opened with the {wanted} one; choose another data directory"
    )]
    WrongClock {
        /// What the directory says.
        found: ClockMode,
        /// What was asked for.
        wanted: ClockMode,
    },
    /// Data that had been synced is damaged or missing. Nothing is guessed.
    #[error("{file} is damaged at byte {offset}: {what}; {hint}")]
    Corrupt {
        /// Where.
        file: String,
        /// From which byte on.
        offset: u64,
        /// What is wrong there.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] DiskError),
}

/// What is said of a part of a file that had been synced and does not check out.
pub(crate) fn damage(file: &str, offset: u64, what: &str) -> String {
    format!("read {file}: damaged at byte {offset}: {what}")
}

/// What a directory with the mark is.
pub(crate) const UNFINISHED: &str = "the directory has the file `unfinished`: a salvage, a restore or a backup that made it did not finish, and tasks may be missing in it";
/// What to do about it.
pub(crate) const DELETE_IT: &str = "delete the directory, and run that command again";

/// What to do where `meta` is lost: every other file needs the secret in it.
pub(crate) const PUT_META: &str = "every backup of this directory has the same `meta`: copy the directory, put the `meta` of a backup into the copy \
                                   (`cp BACKUP/meta COPY/meta`), and start from the copy or `tickwheel salvage` it";

impl OpenError {
    /// `meta` is not there, and it was.
    pub(crate) fn no_meta() -> Self {
        let what = "it is missing, and the shard has data".to_owned();
        Self::Corrupt { file: META.to_owned(), offset: 0, what, hint: PUT_META }
    }

    pub(crate) fn corrupt(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            file: file.into(),
            offset,
            what: what.into(),
            hint: "restore the data directory from a copy, or save what can be read of it with `tickwheel salvage`; it was left untouched",
        }
    }
}
