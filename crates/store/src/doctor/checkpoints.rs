//! The checkpoint that an opening starts from, and the later checkpoints that it cannot use.

use super::examination::{CheckpointFile, Examination};
use super::problem::Problem;
use crate::checkpoint::{Damage, Loaded, load};
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::layout::checkpoint_file;

/// The latest checkpoint that can be loaded. Both fields are `None` if there is none.
pub(super) struct Found {
    pub(super) file: Option<CheckpointFile>,
    pub(super) loaded: Option<Loaded>,
}

/// Loads the checkpoints with these numbers, the latest first, until one can be loaded, and returns that one. Adds a problem to `found` for
/// each checkpoint that the search failed to load. If an opening succeeds with the files of the directory (`opens`), the problem of a
/// damaged checkpoint says that no data is lost.
pub(super) fn find_checkpoint<D: Disk>(
    disk: &mut D,
    numbers: &[u64],
    seeds: &Seeds,
    opens: bool,
    found: &mut Examination,
) -> Found {
    for number in numbers.iter().rev() {
        match load(disk, *number, seeds) {
            Ok(Ok(loaded)) => {
                let file = checkpoint_file(*number).to_string();
                let bytes = disk.len(&file).unwrap_or(0);
                disk.close(&file);
                let file = CheckpointFile {
                    file,
                    bytes,
                    frame: loaded.start.frame,
                    segments: loaded.segments.len() as u64,
                    ended: loaded.ended.len() as u64,
                };
                return Found { file: Some(file), loaded: Some(loaded) };
            }
            Ok(Err(Damage { file, offset, what })) => {
                found.add(if opens {
                    Problem::spared(file, offset, what)
                } else {
                    Problem::damage(file, offset, what)
                });
            }
            Err(error) => found.add(error.into()),
        }
    }
    Found { file: None, loaded: None }
}
