//! A new directory of what can still be read of a damaged one.

use std::io;
use std::path::{Path, PathBuf};

use tickwheel_store::doctor::{Depth, Directory, Problem, examine};
use tickwheel_store::salvage::{Progress, Report, WriteError, read, write};
use tickwheel_store::{Disk, DiskError, FsDisk};

use super::copy::Copy;
use super::report::BackupError;

/// Why nothing was salvaged. Each text completes "failed to salvage: ...". Nothing is at the target then, or what was there before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageError {
    /// The new directory cannot be made where it should be.
    #[error(transparent)]
    Target(#[from] BackupError),
    /// A running process has the damaged directory.
    #[error("{} belongs to a running process; stop it first", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// It is no data directory.
    #[error("{} is no data directory; give one, such as that of `serve --data`, damaged as it is", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// Nothing in it can be read, or it cannot be looked at.
    #[error("{}: {source}", path.display())]
    Hopeless {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The new directory cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The new directory.
        path: PathBuf,
        /// Why.
        source: WriteError,
    },
    /// The new directory is not in order.
    #[error("what was written to {} is damaged: {}", path.display(), problems.first().map_or_else(String::new, ToString::to_string))]
    BadCopy {
        /// The new directory.
        path: PathBuf,
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
}

/// Makes `to`, which must be absent or empty, a data directory with everything that can still be read of `from`, and tells what is lost.
///
/// `from` is not changed in any way, and nobody may have it open. The new directory is synced, every record of it is read and checked, and
/// only then it gets its name: until then it is called `<to>.unfinished`. Ids, versions, attempts, dead tasks, settings, schedules and what
/// is remembered of ended tasks are kept.
///
/// ```no_run
/// use tickwheel_queue::backup::salvage;
///
/// let report = salvage("data".as_ref(), "data-salvaged".as_ref(), &mut |_| {})?;
/// for loss in &report.losses {
///     eprintln!("{} from byte {} on: {}", loss.file, loss.from, loss.what);
/// }
/// # Ok::<(), tickwheel_queue::backup::SalvageError>(())
/// ```
///
/// # Errors
/// [`SalvageError`].
pub fn salvage(from: &Path, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, SalvageError> {
    let look = |error: DiskError| hopeless(from, io::Error::new(error.source.kind(), error.to_string()));
    let mut directory = Directory::new(from).map_err(look)?;
    if directory.is_in_use() {
        return Err(SalvageError::InUse { path: from.to_owned() });
    }
    let names = directory.list("").map_err(look)?;
    if !names.iter().any(|name| name == "meta" || name == "shard-0000") {
        return Err(SalvageError::NotOurs { path: from.to_owned() });
    }
    let copy = Copy::begin(from, to)?;
    let found = read(&mut directory, progress).map_err(|error| hopeless(from, error))?;
    let failed = |source: WriteError| SalvageError::Write { path: to.to_owned(), source };
    let target = FsDisk::new(copy.path()).map_err(|error| failed(WriteError::Failed(error.to_string())))?;
    let report = write(found, &mut directory, target, progress).map_err(failed)?;
    progress(Progress::Checking);
    let mut written = Directory::new(copy.path()).map_err(look)?;
    let checked = examine(&mut written, Depth::Records);
    if !checked.is_in_order() {
        return Err(SalvageError::BadCopy { path: to.to_owned(), problems: checked.problems });
    }
    copy.finish()?;
    Ok(report)
}

fn hopeless(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> SalvageError {
    SalvageError::Hopeless { path: path.to_owned(), source: Box::new(source) }
}
