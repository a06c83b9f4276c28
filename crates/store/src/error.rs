//! [`OpenError`]: why a data directory was not opened.

use tickwheel_engine::ShardId;

use crate::disk::DiskError;
use crate::layout::{META, SHARD, SHARDS};
use crate::options::ClockMode;

/// The reason why [`DiskStore::open`](crate::DiskStore::open), an examination or a salvage refused a directory. Each text completes "failed
/// to open the store: ...".
///
/// Except for [`OpenError::Io`], no file of the directory was changed; the file `lock` may be new.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has locked the directory, or this one has it open already.
    #[error(
        "{place} is open in another process, or in this one; close it there, or choose another data directory"
    )]
    Locked {
        /// The path that is locked: the lock file, or the directory itself if the lock file was replaced.
        place: String,
    },
    /// The directory has files of other programs in it, and is no data directory.
    #[error(
        "the directory has `{name}` in it and is no data directory; choose one that is empty or not there yet"
    )]
    Foreign {
        /// The name of one file or folder that does not belong in a data directory.
        name: String,
    },
    /// A salvage found no file whose checksum fits the secret in `meta`.
    #[error(
        "no frame of the log and no other file fits the secret in `meta`; it may be of another directory: copy the directory, put the `meta` \
         of a backup of this one into the copy, and salvage that"
    )]
    OtherMeta,
    /// The directory has the mark of an unfinished directory. The process that makes it still runs, or ended before the directory was
    /// complete.
    #[error("{UNFINISHED}; {DELETE_IT}")]
    Unfinished,
    /// Another version, mostly a later one, wrote a file of the directory.
    #[error("{file} has format {found}, and this version reads format {known}; {OTHER_VERSION}")]
    NewerFormat {
        /// The file with the other format.
        file: String,
        /// The format of the file.
        found: u32,
        /// The format that this version reads.
        known: u32,
    },
    /// The directory was made for another clock than the caller asked for.
    #[error(
        "the directory lives by the {found} clock and was to be opened with the {wanted} one; choose another data directory"
    )]
    WrongClock {
        /// The clock that the directory has.
        found: ClockMode,
        /// The clock that the caller asked for.
        wanted: ClockMode,
    },
    /// The directory has another shard than the caller asked for.
    #[error(
        "the directory has {found}, and was to be opened as {wanted}; open the directory above it, which has the file `shards`"
    )]
    WrongShard {
        /// The shard that the directory has.
        found: ShardId,
        /// The shard that the caller asked for.
        wanted: ShardId,
    },
    /// The directory is the root of several shards, and the caller can work with one shard only.
    #[error(
        "the directory has several shards (file `shards`), each in a folder of its own (`0000` and so on); name one of these folders"
    )]
    ManyShards,
    /// The directory has another number of shards than the caller asked for.
    #[error(
        "the directory was made with {found} shards, and was to be opened with {wanted}; the number never changes: leave the option out, or \
         `tickwheel export` the tasks and import them into a new directory"
    )]
    OtherShards {
        /// The number of shards that the directory has.
        found: u32,
        /// The number of shards that the caller asked for.
        wanted: u32,
    },
    /// The folder of a shard is a copy of another moment than the rest of the data directory.
    #[error("{folder}: {}; {OTHER_STAMP}", other_stamp_text(*found, *wanted))]
    OtherStamp {
        /// The folder, as a name below the data directory.
        folder: String,
        /// The number in the `stamp` of the folder; `None` if the folder has no such file.
        found: Option<u64>,
        /// The number in the `stamp` of the data directory.
        wanted: u64,
    },
    /// Synced data is damaged or missing. The store does not guess the data, and refuses the directory.
    #[error("{file} is damaged at byte {offset}: {what}; {hint}")]
    Corrupt {
        /// The damaged or missing file or folder.
        file: String,
        /// The offset at which the damage begins (bytes); 0 if the file or folder is missing.
        offset: u64,
        /// The description of the damage.
        what: String,
        /// The advice to the user.
        hint: &'static str,
    },
    /// A call to the disk failed.
    #[error(transparent)]
    Io(#[from] DiskError),
}

/// Returns the error text for a part of a file that was synced and is damaged now.
pub(crate) fn damage(file: &str, offset: u64, what: &str) -> String {
    format!("read {file}: damaged at byte {offset}: {what}")
}

/// The error text for a directory with the mark of an unfinished directory.
pub(crate) const UNFINISHED: &str = "the directory has the file `unfinished`: a salvage, a restore or a backup that made it did not finish, and tasks may be missing in it";
/// The advice to the user for a directory with the mark of an unfinished directory.
pub(crate) const DELETE_IT: &str = "delete the directory, and run that command again";

/// The advice if `meta` is missing: every other file needs the secret in `meta`.
pub(crate) const PUT_META: &str = "every backup of this directory has the same `meta`: copy the directory, put the `meta` of a backup into the copy \
                                   (`cp BACKUP/meta COPY/meta`), and start from the copy or `tickwheel salvage` it";

/// The advice if the file `shards` is missing.
pub(crate) const PUT_SHARDS: &str = "every backup of this directory has the same file `shards`: copy it from one (`cp BACKUP/shards DIR/`), or save the data without it with \
                                     `tickwheel salvage`";

/// The advice if the folder of a shard has another stamp than its data directory.
pub(crate) const OTHER_STAMP: &str = "put back the folder that was here, or restore all folders from one backup (`tickwheel restore`); if you know that all folders are of one \
                                      moment, remove the stamp of the data directory (`rm DIR/stamp`), and the next start takes the folders as they are";

/// The advice if another version wrote a file.
pub(crate) const OTHER_VERSION: &str = "open it with the version that wrote it, or export it with that version (`tickwheel export`) and import the file with this one";

/// Returns how a folder differs from its data directory.
pub(crate) fn other_stamp_text(found: Option<u64>, wanted: u64) -> String {
    let found = found.map_or("no stamp".to_owned(), |found| format!("the stamp {found:016x}"));
    format!(
        "the folder has {found}, and the data directory has {wanted:016x}: the folder is a copy of another moment, and tasks would be lost or come again"
    )
}

impl OpenError {
    /// Returns the error for a directory that has data and no `meta`.
    pub(crate) fn no_meta() -> Self {
        let what = "it is missing, and the shard has data".to_owned();
        Self::Corrupt { file: META.to_owned(), offset: 0, what, hint: PUT_META }
    }

    /// Returns the error for a directory that has folders of shards and no file `shards`.
    pub(crate) fn no_shards() -> Self {
        let what = "it is missing, and there are folders of shards".to_owned();
        Self::Corrupt { file: SHARDS.to_owned(), offset: 0, what, hint: PUT_SHARDS }
    }

    /// Returns the error for a folder whose stamp is not that of its data directory. `folder`: the folder with the data of the shard.
    pub(crate) fn other_stamp(folder: &str, found: Option<u64>, wanted: u64) -> Self {
        // A member of several shards is replaced as a whole, so its own folder is named.
        let folder = folder.strip_suffix(SHARD).and_then(|above| above.strip_suffix('/')).unwrap_or(folder);
        Self::OtherStamp { folder: folder.to_owned(), found, wanted }
    }

    /// Returns the error for a damaged stamp.
    pub(crate) fn bad_stamp(file: &str) -> Self {
        let what = "its checksum does not match".to_owned();
        Self::Corrupt { file: file.to_owned(), offset: 0, what, hint: OTHER_STAMP }
    }

    /// Returns the error for a file that another version wrote.
    pub(crate) fn other_format(file: &str, found: u32, known: u32) -> Self {
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
