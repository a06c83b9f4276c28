//! The findings of the first pass of a salvage.

use std::sync::Arc;

use tickwheel_engine::{Ended, EngineState, Epoch, Outcome, Seq, Timestamp};

use super::index::Index;
use super::report::Report;
use super::rules::RuleTraces;
use super::segments::Suspect;
use crate::checksum::Seeds;
use crate::codec::{Names, Op};
use crate::history::{Histories, HistoryLimits};
use crate::index::Naming;
use crate::meta::Meta;
use crate::rules::Rules;

/// How far a salvage has come.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Bytes of log files and segments that were read so far, and bytes of all files of the store, also of those that are not read.
    Read(u64, u64),
    /// How many tasks were written or given up so far, and how many tasks there are to write.
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
    /// Whether an unknown number of frames may be missing. Then earlier owners may have used change numbers and epochs that no record
    /// shows.
    pub(super) log_is_torn: bool,
}

impl Found {
    /// Returns the findings before anything is read.
    pub(super) fn nothing(meta: Meta) -> Self {
        Self {
            files: Vec::new(),
            index: Index::new(Naming::new(meta.secret)),
            rules: Rules::default(),
            histories: Histories::new(meta.secret, HistoryLimits::last(usize::MAX)),
            state: EngineState::default(),
            epoch: Epoch(0),
            seq: Seq::ZERO,
            wall: Timestamp::EPOCH,
            report: Report::default(),
            log_is_torn: false,
            meta,
        }
    }
}

/// A file with records.
#[derive(Clone, Debug)]
pub(super) struct RecordFile {
    pub(super) name: Arc<str>,
    /// The seed of the checksums of the records in a segment. `None`: a log file, where a frame has one checksum for all its records.
    pub(super) seed: Option<u32>,
}

/// The state of the first pass while it runs.
pub(super) struct Reading {
    /// The findings so far.
    pub(super) found: Found,
    pub(super) seeds: Seeds,
    pub(super) naming: Naming,
    pub(super) names: Names,
    /// Damaged records of segments, with their files. The footer of the segment names the task of each record.
    pub(super) suspects: Vec<(Arc<str>, Suspect)>,
    pub(super) said: Vec<Said>,
    pub(super) traces: RuleTraces,
    pub(super) done: u64,
    pub(super) total: u64,
    /// Whether the note of the newest log file, a log file or the checkpoint checks out with the secret in `meta`.
    pub(super) fits: bool,
}

/// One record that damaged bytes seem to have. The record only helps to name what is lost; nothing of it is saved.
pub(super) struct Said {
    /// The index of the loss in the list of losses.
    pub(super) loss: usize,
    /// The frames with a higher number than this one are later than the record.
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

    /// Adds a file to the list of files, and returns its index in the list.
    pub(super) fn file(&mut self, name: &Arc<str>, seed: Option<u32>) -> u32 {
        self.found.files.push(RecordFile { name: Arc::clone(name), seed });
        u32::try_from(self.found.files.len() - 1).expect("a directory has fewer files than that")
    }
}
