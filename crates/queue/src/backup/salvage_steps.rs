//! The steps of a salvage of one directory, which is a data directory or the member of a root.

use std::collections::BTreeMap;
use std::path::Path;

use tickwheel_engine::ShardId;
use tickwheel_store::FsDisk;
use tickwheel_store::doctor::{Depth, Directory, DirectoryPin, Problem, examine, examine_stamps};
use tickwheel_store::salvage::{Found, Progress, Report, WriteError, write};

use super::salvage_error::{SalvageError, refused, unlisted};

/// Keeps other processes from taking the directory.
pub(super) fn pinned(directory: &Directory) -> Result<DirectoryPin, SalvageError> {
    directory.pin().ok_or_else(|| SalvageError::InUse { path: directory.root().to_owned() })
}

/// Writes what was found in a directory into the new directory `made_as`, which gets the name `to` later.
pub(super) fn written(
    found: Found,
    (directory, from): (&mut Directory, &Path),
    (made_as, to): (&Path, &Path),
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, SalvageError> {
    let failed = |source: WriteError| SalvageError::Write { path: to.to_owned(), source };
    let target = FsDisk::new(made_as).map_err(|error| failed(WriteError::Failed(error.to_string())))?;
    write(found, directory, target.of_maker(), progress).map_err(|error| match error {
        WriteError::Read(source) => refused(from, source),
        error => failed(error),
    })
}

/// Reads and checks every record of the new directory `made_as`, which is the folder `folder` of the directory that gets the name `to`.
/// Returns the shard that it has.
pub(super) fn check_written(
    made_as: &Path,
    folder: &str,
    to: &Path,
) -> Result<Option<ShardId>, SalvageError> {
    let mut directory = Directory::new(made_as).map_err(|error| unlisted(to, error))?.of_maker();
    let checked = examine(&mut directory, Depth::Records);
    if checked.is_in_order() {
        return Ok(checked.shard);
    }
    let mut problems = checked.problems;
    problems
        .iter_mut()
        .for_each(|problem| problem.file = Path::new(folder).join(&problem.file).display().to_string());
    Err(SalvageError::BadCopy { path: to.to_owned(), problems })
}

/// Returns a file that was changed, added or removed between the two lists; `None` if there is no such file.
pub(super) fn changed<V: PartialEq>(
    before: &BTreeMap<String, V>,
    after: &BTreeMap<String, V>,
) -> Option<String> {
    let differs = |(name, stamp): &(&String, &V)| before.get(*name) != Some(*stamp);
    let gone = before.keys().find(|name| !after.contains_key(*name));
    after.iter().find(differs).map(|(name, _)| name).or(gone).cloned()
}

/// Returns a note for each folder of a shard that is a copy of another moment than the data directory.
pub(super) fn of_another_moment(root: &mut Directory, shards: impl Iterator<Item = ShardId>) -> Vec<String> {
    let told = |Problem { file, what, .. }: Problem| {
        format!(
            "{file}: {what}; tasks that were put later may be missing, and tasks that ended later may be there"
        )
    };
    examine_stamps(root, shards).into_iter().map(told).collect()
}
