//! [`Problem`]: a problem that an examination found in a data directory.

use core::fmt;

use crate::error::{
    DELETE_IT, OTHER_STAMP, OTHER_VERSION, OpenError, PUT_META, PUT_SHARDS, UNFINISHED, other_stamp_text,
};

/// A problem of a data directory: the place, the description, and the advice to the user.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The file or folder with the problem, relative to the data directory. Empty if the problem is about the whole directory.
    pub file: String,
    /// The offset at which the problem begins (bytes); 0 if a whole file or folder is missing. `None` if the problem has no offset, such as
    /// a failed read.
    pub offset: Option<u64>,
    /// The description of the problem.
    pub what: String,
    /// The advice to the user, as text.
    pub to_do: &'static str,
}

/// The advice for data that was synced, and is damaged or missing now.
const RESTORE: &str = "restore the data directory from a copy, or save what can be read of it with `tickwheel salvage`; keep this one as it is \
                       until then";
/// The advice for a folder that has a shard of this data set in the wrong place.
const NAME_AGAIN: &str = "stop the server, and give each folder the number of its shard as its name again (`mv`); `tickwheel doctor FOLDER` tells which shard a folder has";
/// The advice for a folder that has no place in the data set.
const TAKE_AWAY: &str =
    "move the folder out of the directory; delete it when you know that nothing in it is needed";
/// The advice for a place that is no data directory.
const GIVE_ONE: &str = "give a data directory, such as that of `serve --data`, or a backup of one";
const DISK: &str = "look at the disk and at who may read the directory, then try again";

impl Problem {
    /// Returns a problem of synced data that is damaged or missing.
    pub(super) fn damage(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Self {
        Self { file: file.into(), offset: Some(offset), what: what.into(), to_do: RESTORE }
    }

    /// Returns a problem of the directory of a shard as a whole, whose data is missing.
    pub(super) fn of_shard(folder: impl Into<String>, what: impl Into<String>) -> Self {
        Self { file: folder.into(), offset: None, what: what.into(), to_do: RESTORE }
    }

    /// Whether the advice is to restore the data directory, because synced data is damaged or missing. `false` for a missing `meta` or
    /// `shards` and for a folder of another moment, which have an advice of their own. A server refuses a directory with such damage, or may stop when it reads the damage.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.to_do == RESTORE
    }

    /// Returns a problem of a damaged checkpoint that the log and an earlier checkpoint, if there is one, replace.
    pub(super) fn spared(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Self {
        let to_do = "nothing: what is beside it makes up for it, and the next checkpoint takes its place; look at the disk";
        Self { file: file.into(), offset: Some(offset), what: what.into(), to_do }
    }

    /// Returns the problem of a folder of a shard that has the place of another one.
    pub(super) fn moved(folder: &str, what: impl Into<String>) -> Self {
        Self { file: folder.to_owned(), offset: None, what: what.into(), to_do: NAME_AGAIN }
    }

    /// Returns the problem of a folder that belongs to no shard of the data set.
    pub(super) fn left_over(folder: &str, what: impl Into<String>) -> Self {
        Self { file: folder.to_owned(), offset: None, what: what.into(), to_do: TAKE_AWAY }
    }

    /// Returns the problem as one of a directory below: the file gets the folder in front.
    pub(super) fn below(self, folder: &str) -> Self {
        Self { file: below(folder, &self.file), ..self }
    }

    /// Returns the problem of a place that is no data directory.
    pub(super) fn no_directory(what: &str) -> Self {
        Self { file: String::new(), offset: None, what: what.to_owned(), to_do: GIVE_ONE }
    }

    /// Whether the place is no data directory.
    pub(super) fn is_no_directory(&self) -> bool {
        self.to_do == GIVE_ONE
    }
}

/// Returns the name of a file of a folder; the folder itself for an empty name.
pub(super) fn below(folder: &str, file: &str) -> String {
    if file.is_empty() { folder.to_owned() } else { format!("{folder}/{file}") }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Corrupt { file, offset, what, hint: hint @ (PUT_META | PUT_SHARDS | OTHER_STAMP) } => {
                Self { file, offset: Some(offset), what, to_do: hint }
            }
            OpenError::OtherStamp { folder, found, wanted } => {
                let what = other_stamp_text(found, wanted);
                Self { file: folder, offset: None, what, to_do: OTHER_STAMP }
            }
            OpenError::Corrupt { file, offset, what, .. } => Self::damage(file, offset, what),
            OpenError::NewerFormat { file, found, known } => {
                let what = format!("it has format {found}, and this version reads format {known}");
                Self { file, offset: Some(8), what, to_do: OTHER_VERSION }
            }
            OpenError::Unfinished => {
                Self { file: String::new(), offset: None, what: UNFINISHED.to_owned(), to_do: DELETE_IT }
            }
            OpenError::Io(error) => {
                let what = format!("failed to {} it: {}", error.op, error.source);
                Self { file: error.file, offset: None, what, to_do: DISK }
            }
            other @ (OpenError::OtherMeta
            | OpenError::Locked { .. }
            | OpenError::WrongClock { .. }
            | OpenError::WrongShard { .. }
            | OpenError::ManyShards
            | OpenError::OtherShards { .. }
            | OpenError::Foreign { .. }) => {
                Self { file: String::new(), offset: None, what: other.to_string(), to_do: DISK }
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, what, to_do } = self;
        match (file.as_str(), offset) {
            ("", _) => write!(f, "{what}; {to_do}"),
            (file, None) => write!(f, "{file}: {what}; {to_do}"),
            (file, Some(offset)) => write!(f, "{file} at byte {offset}: {what}; {to_do}"),
        }
    }
}
