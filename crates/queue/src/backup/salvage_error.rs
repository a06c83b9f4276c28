//! [`SalvageError`]: why nothing was salvaged.

use std::io;
use std::path::{Path, PathBuf};

use tickwheel_store::DiskError;
use tickwheel_store::doctor::Problem;
use tickwheel_store::salvage::WriteError;

use super::report::BackupError;

/// Why nothing was salvaged. Each text completes "failed to salvage: ...". After an error the target is absent, or as it was before. In one
/// case it is a whole directory: the last sync and the rename back both failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageError {
    /// The new directory cannot be made where it should be.
    #[error(transparent)]
    Target(#[from] BackupError),
    /// A running process has the damaged directory open.
    #[error("{} belongs to a running process; stop it first", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file in the damaged directory changed while it was read, so the records that were read may not belong together.
    #[error("{} changed while it was read: {file}; see that no server and no other tool writes to it, and salvage again", path.display())]
    Changed {
        /// The directory.
        path: PathBuf,
        /// A file that was changed, added or removed.
        file: String,
    },
    /// The directory is no data directory.
    #[error("{} is no data directory; give one, such as that of `serve --data`, damaged as it is", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the directory cannot be read, and the disk did not fail: the permissions forbid it, for example. The directory may be
    /// undamaged.
    #[error("{}: failed to {source}; nothing need be damaged: mend this, or run it as the user that the files belong to, and salvage again", path.display())]
    Refused {
        /// The directory.
        path: PathBuf,
        /// The file, and why it cannot be read.
        source: DiskError,
    },
    /// The salvage cannot begin. For example, the directory cannot be listed, is itself the rest of a killed salvage, or has a `meta` of
    /// another directory.
    #[error("{}: {source}", path.display())]
    Hopeless {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The new directory cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The new directory.
        path: PathBuf,
        /// The cause.
        source: WriteError,
    },
    /// The check found damage in the new directory. The new directory was removed.
    #[error("what was written to {} is damaged: {}", path.display(), problems.first().map_or_else(String::new, ToString::to_string))]
    BadCopy {
        /// The new directory.
        path: PathBuf,
        /// The damage in the new directory.
        problems: Vec<Problem>,
    },
}

/// Returns the error for a directory that cannot be listed.
pub(super) fn unlisted(path: &Path, error: DiskError) -> SalvageError {
    hopeless(path, io::Error::new(error.source.kind(), error.to_string()))
}

/// Returns the error for a file that cannot be read, although the disk did not fail.
pub(super) fn refused(path: &Path, source: DiskError) -> SalvageError {
    SalvageError::Refused { path: path.to_owned(), source }
}

pub(super) fn hopeless(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> SalvageError {
    SalvageError::Hopeless { path: path.to_owned(), source: Box::new(source) }
}
