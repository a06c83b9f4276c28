//! [`examine_dir`]: the examination of a directory of one shard, or of a root of several shards.

use std::path::Path;

use super::directory::Directory;
use super::examination::{Depth, Examination};
use super::examine::examine_one;
use super::members::examine_members;
use crate::disk::DiskError;
use crate::error::OpenError;
use crate::members::Members;

/// Examines a directory of the file system, or a root of several shards with all directories below it.
///
/// # Errors
/// If the directory does not exist, is no directory, or may not be looked at. Everything else that is wrong is a problem in the
/// examination.
pub fn examine_dir(path: impl AsRef<Path>, depth: Depth) -> Result<Examination, DiskError> {
    let path = path.as_ref();
    // A place that cannot be looked at is an error, and not a problem of a directory.
    let mut directory = Directory::new(path)?;
    match Members::find(path) {
        Ok(Some(members)) => examine_members(&mut directory, &members, depth),
        Ok(None) => examine_one(path, depth),
        // The examination of one directory tells that it is unfinished.
        Err(OpenError::Unfinished) => examine_one(path, depth),
        Err(error) => {
            let mut found = Examination { is_ours: true, ..Examination::default() };
            found.in_use = directory.is_in_use();
            found.add(error.into());
            Ok(found)
        }
    }
}
