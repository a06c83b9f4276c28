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
    /// Another process has the directory.
    #[error("{place} belongs to another process; stop that one, or choose another data directory")]
    Locked {
        /// The lock file.
        place: String,
    },
    /// The directory has other content, and is no data directory.
    #[error(
        "the directory has `{name}` in it and is no data directory; choose one that is empty or not there yet"
    )]
    Foreign {
        /// A file of that content.
        name: String,
    },
    /// For a salvage: no file has a right checksum.
    #[error(
        "no frame of the log and no other file fits the secret in `meta`; it may be of another directory: copy the directory, put the `meta` \
         of a backup of this one into the copy, and salvage that"
    )]
    OtherMeta,
    /// A process made the directory, and was killed before the directory was complete.
    #[error("{UNFINISHED}; {DELETE_IT}")]
    Unfinished,
    /// A later version wrote the directory.
    #[error(
        "{file} has format {found}, and this version reads up to {known}; use the version that wrote it, or a later one"
    )]
    NewerFormat {
        /// The file that says so.
        file: String,
        /// The format of the directory.
        found: u32,
        /// The highest format known here.
        known: u32,
    },
    /// A version before the first release wrote the directory.
    #[error(
        "{file} has format {found} of a version before the first release, and this version reads from {oldest} on; \
         work it off with the version that wrote it, or begin with an empty directory"
    )]
    OlderFormat {
        /// The file that says so.
        file: String,
        /// The format of the directory.
        found: u32,
        /// The lowest format known here.
        oldest: u32,
    },
    /// The directory was made for the other clock.
    #[error(
        "the directory lives by the {found} clock and was to be opened with the {wanted} one; choose another data directory"
    )]
    WrongClock {
        /// The clock that the directory has.
        found: ClockMode,
        /// The clock that the caller asked for.
        wanted: ClockMode,
    },
    /// Data that had been synced is damaged or missing. The store guesses nothing.
    #[error("{file} is damaged at byte {offset}: {what}; {hint}")]
    Corrupt {
        /// The file.
        file: String,
        /// The byte from which on it is damaged.
        offset: u64,
        /// The damage, in words.
        what: String,
        /// The advice to the user.
        hint: &'static str,
    },
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] DiskError),
}

/// The text for a part of a file that had been synced and does not check out.
pub(crate) fn damage(file: &str, offset: u64, what: &str) -> String {
    format!("read {file}: damaged at byte {offset}: {what}")
}

/// The text for a directory with the mark of an unfinished one.
pub(crate) const UNFINISHED: &str = "the directory has the file `unfinished`: a salvage, a restore or a backup that made it did not finish, and tasks may be missing in it";
/// The advice for a directory with the mark.
pub(crate) const DELETE_IT: &str = "delete the directory, and run that command again";

/// The advice where `meta` is lost: every other file needs the secret in it.
pub(crate) const PUT_META: &str = "every backup of this directory has the same `meta`: copy the directory, put the `meta` of a backup into the copy \
                                   (`cp BACKUP/meta COPY/meta`), and start from the copy or `tickwheel salvage` it";

impl OpenError {
    /// `meta` was there, and is missing now.
    pub(crate) fn no_meta() -> Self {
        let what = "it is missing, and the shard has data".to_owned();
        Self::Corrupt { file: META.to_owned(), offset: 0, what, hint: PUT_META }
    }

    /// A later version wrote a file.
    pub(crate) fn newer(file: &str, found: u32, known: u32) -> Self {
        Self::NewerFormat { file: file.to_owned(), found, known }
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
