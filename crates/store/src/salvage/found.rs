//! The findings of the first pass of a salvage.

use std::sync::Arc;

use tickwheel_engine::{Ended, EngineState, Epoch, Outcome, Seq, Timestamp};

use super::index::Index;
use super::report::Report;
use super::rules::RuleTraces;
use super::segments::Suspect;
use crate::checksum::Seeds;
use crate::codec::{Names, Op};
use crate::history::Histories;
use crate::index::Naming;
use crate::meta::Meta;
use crate::rules::Rules;

/// How far a salvage has come.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Bytes of the damaged directory that were read, and its bytes in all.
    Read(u64, u64),
    /// Tasks that were written, and the tasks in all.
    Written(u64, u64),
    /// The check of the new directory runs.
    Checking,
}

/// All that was found in a damaged directory: where the newest record of each task is, and what is lost.
pub struct Found {
    pub(super) meta: Meta,
    pub(super) files: Vec<RecordFile>,
    pub(super) index: Index,
    pub(super) rules: Rules,
    pub(super) histories: Histories,
    pub(super) state: EngineState,
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    pub(super) wall: Timestamp,
    pub(super) report: Report,
    /// Whether frames are missing. Then numbers may have been given out that no record tells of.
    pub(super) log_is_torn: bool,
}

/// A file with records.
#[derive(Clone, Debug)]
pub(super) struct RecordFile {
    pub(super) name: Arc<str>,
    /// The seed of the checksums of its records; `None`: the file is of the log, where a frame is checked as a whole.
    pub(super) seed: Option<u32>,
}

/// The first pass under way.
pub(super) struct Reading {
    /// The findings so far.
    pub(super) found: Found,
    pub(super) seeds: Seeds,
    pub(super) naming: Naming,
    pub(super) names: Names,
    /// Damaged records of known tasks, with their files.
    pub(super) suspects: Vec<(Arc<str>, Suspect)>,
    pub(super) said: Vec<Said>,
    pub(super) traces: RuleTraces,
    pub(super) done: u64,
    pub(super) total: u64,
    /// Whether any file checks out by the secret in `meta`.
    pub(super) fits: bool,
}

/// The records that damaged bytes seem to have.
pub(super) struct Said {
    /// The index of the loss in the list of losses.
    pub(super) loss: usize,
    /// Frames behind this one are later.
    pub(super) frame: u64,
    pub(super) op: Op,
}

impl Reading {
    pub(super) fn advance(&mut self, bytes: u64, progress: &mut dyn FnMut(Progress)) {
        self.done = self.done.saturating_add(bytes);
        progress(Progress::Read(self.done.min(self.total), self.total));
    }

    pub(super) fn take_ended(&mut self, ended: &Ended) {
        self.found.index.end(ended);
        if ended.outcome != Outcome::Forgotten {
            self.found.histories.add(ended);
        }
    }

    /// The number of a file in the list of files.
    pub(super) fn file(&mut self, name: &Arc<str>, seed: Option<u32>) -> u32 {
        self.found.files.push(RecordFile { name: Arc::clone(name), seed });
        u32::try_from(self.found.files.len() - 1).expect("a directory has fewer files than that")
    }
}
