//! The chain of the log: the note names the newest file, and the header of each file names the file before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::found::LogFile;
use crate::checkpoint::Damage;
use crate::error::OpenError;
use crate::layout::{SHARD, log_file};
use crate::log::LogUse;
use crate::newest::{self, Newest};

/// The log files that were found, each with the file before it. `newest.rs` says why a file of the chain is never missing in a whole
/// directory.
#[derive(Debug)]
pub(super) struct Chain {
    /// The files whose header is valid, by generation: the name, and the file before.
    files: BTreeMap<u64, (Arc<str>, Option<LogUse>)>,
    /// The names of all files and their generations. `None` is for a file whose header is not valid.
    names: Vec<(Arc<str>, Option<u64>)>,
    /// The checkpoint covers all files of lower generations.
    floor: u64,
    /// Whether the folder has no checkpoint, not even a damaged one.
    without_checkpoint: bool,
}

impl Chain {
    /// Returns the chain of these files. The checkpoint covers the files of generations below `floor`.
    pub(super) fn new(logs: &[LogFile], floor: u64, without_checkpoint: bool) -> Self {
        let generation = |file: &LogFile| file.header.map(|header| header.generation);
        let names = logs.iter().map(|file| (Arc::clone(&file.name), generation(file))).collect();
        let headers = logs.iter().filter_map(|file| file.header.map(|header| (file, header)));
        let files =
            headers.map(|(file, header)| (header.generation, (Arc::clone(&file.name), header.before)));
        Self { files: files.collect(), names, floor, without_checkpoint }
    }

    /// Checks that no file is missing, from the noted file back to the file in which the checkpoint begins. `damage` is of a newer
    /// checkpoint that cannot be used, so that the log must replace it.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`] with the name of the file that is missing, of the damaged checkpoint, or of the shard's folder if the
    /// checkpoint is missing.
    pub(super) fn check(&self, newest: Option<Newest>, damage: Option<&Damage>) -> Result<(), OpenError> {
        let mut wanted = newest.and_then(|newest| newest.file);
        let mut after: Option<&Arc<str>> = None;
        while let Some(file) = wanted.filter(|file| file.generation >= self.floor) {
            let Some((name, before)) = self.files.get(&file.generation) else {
                return Err(self.missing(file, after, damage));
            };
            (wanted, after) = (*before, Some(name));
        }
        Ok(())
    }

    /// Returns the generations of the chain, from this file back. Files of generations below `floor` are left out.
    pub(super) fn back_from(&self, file: Option<LogUse>) -> Vec<u64> {
        let known = |generation| self.files.get(&generation).map(|(_, before)| *before);
        newest::back_from(file, |generation| known(generation).filter(|_| generation >= self.floor)).collect()
    }

    fn missing(&self, wanted: LogUse, after: Option<&Arc<str>>, damage: Option<&Damage>) -> OpenError {
        let LogUse { generation, number } = wanted;
        let file = log_file(number);
        if let Some(Damage { file: checkpoint, offset, what }) = damage.filter(|_| after.is_some()) {
            let what = format!(
                "{what}, and {file} (generation {generation}) does not make up for it: it is missing"
            );
            return OpenError::corrupt(checkpoint.clone(), *offset, what);
        }
        let place = match after {
            None => "the newest log file".to_owned(),
            Some(after) => format!("the log file before {after}"),
        };
        if let Some(after) =
            after.filter(|_| self.without_checkpoint && self.was_used_again(&file, generation))
        {
            return no_checkpoint(&file, generation, after);
        }
        let mut what = if self.names.iter().any(|(name, _)| *name == file) {
            format!("it is {place} (generation {generation}), and its header does not say so")
        } else {
            format!("the file is missing, and it is {place} (generation {generation})")
        };
        if self.without_checkpoint && after.is_some() {
            what += OR_CHECKPOINT;
        }
        OpenError::corrupt(&*file, 0, what)
    }

    /// Whether the file is in a later use than `generation`. If so, a durable checkpoint had the content of the earlier use.
    fn was_used_again(&self, file: &Arc<str>, generation: u64) -> bool {
        let of_file =
            self.names.iter().find(|(name, _)| name == file).and_then(|(_, generation)| *generation);
        let with_same = |known: u64| self.names.iter().filter(|(_, other)| *other == Some(known)).count();
        // If another file has the same generation, one of the two files is a copy. A copy is no later use.
        of_file.is_some_and(|known| known > generation && with_same(known) == 1)
    }
}

/// The end of an error text about a missing log file or missing frames: another possible cause, if there is no checkpoint.
pub(super) const OR_CHECKPOINT: &str =
    "; or there was a checkpoint that has what was in it, and that is what is missing";

/// Returns the error for a log file that was used again although there is no checkpoint. A file is used again only when a durable
/// checkpoint has its content. So the checkpoint is missing, and the file is right.
fn no_checkpoint(file: &str, generation: u64, after: &str) -> OpenError {
    let what = format!(
        "its checkpoint is missing: the log begins in {after}, and {file}, which came before that (generation {generation}), was used again, \
         which happens only when a checkpoint has what was in it"
    );
    OpenError::corrupt(SHARD, 0, what)
}
