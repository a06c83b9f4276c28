//! The findings in a directory.

use std::collections::BTreeMap;

use tickwheel_engine::{QueueName, Timestamp};

use super::problem::Problem;
use crate::options::ClockMode;
use crate::report::Torn;

/// How much an examination reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Depth {
    /// The parts that an opening reads: the headers and the indexes of the files, and the log.
    Opening,
    /// Every record as well.
    Records,
}

/// The properties and the content of a data directory, and every problem that was found.
///
/// A value that cannot be told because of other damage is `None` or absent. Then `problems` names the cause.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Examination {
    /// Whether the place is a data directory at all, whole or not.
    pub is_ours: bool,
    /// Whether a running process has it. Then the figures may be in motion, and the log may end in a frame that is just being written.
    pub in_use: bool,
    /// The format of the directory.
    pub format: Option<u32>,
    /// The clock that its tasks live by.
    pub clock: Option<ClockMode>,
    /// The wall clock of the last write; `None` if there was none, or it cannot be told.
    pub last_written: Option<Timestamp>,
    /// The checkpoint that an opening starts from.
    pub checkpoint: Option<CheckpointFile>,
    /// The files of the log, by their names.
    pub logs: Vec<LogFile>,
    /// The unfinished write at the end of the log, if there is one. It was never acknowledged, and an opening leaves it out.
    pub torn: Option<Torn>,
    /// The segments that the checkpoint lists, by their names.
    pub segments: Vec<SegmentFile>,
    /// Live tasks.
    pub tasks: Option<u64>,
    /// Live tasks that were given up and are kept (dead tasks).
    pub dead: Option<u64>,
    /// Live tasks of each queue that has any.
    pub queues: BTreeMap<QueueName, u64>,
    /// Ended tasks that are remembered.
    pub ended: Option<u64>,
    /// The files that a copy has to have to open as this directory does. Empty if the directory does not open.
    pub needed: Vec<Needed>,
    /// Files of the store that no opening needs; the next opening removes them. Spare log files are not among them.
    pub not_needed: Vec<String>,
    /// Files and folders that are not the store's. They are left alone.
    pub not_ours: Vec<String>,
    /// Bytes of all files of the store.
    pub bytes: u64,
    /// Bytes of records that were read and checked; `None` unless the caller asked for the check.
    pub checked_bytes: Option<u64>,
    /// Every problem, in the order in which an opening would meet them.
    pub problems: Vec<Problem>,
}

/// The checkpoint that an opening starts from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckpointFile {
    /// The name of the file, from the data directory on.
    pub file: String,
    /// The length of the file (bytes).
    pub bytes: u64,
    /// The last frame of the log that the checkpoint covers.
    pub frame: u64,
    /// Segments that the checkpoint lists.
    pub segments: u64,
    /// Ended tasks in the checkpoint.
    pub ended: u64,
}

/// A file of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LogFile {
    /// The name of the file, from the data directory on.
    pub file: String,
    /// The length of the file (bytes).
    pub bytes: u64,
    /// The number of the use that the file is in; `None` if its header does not check out.
    pub generation: Option<u64>,
    /// Frames of this use.
    pub frames: u64,
    /// The numbers of the first and of the last of these frames.
    pub numbers: Option<(u64, u64)>,
    /// Bytes up to the end of the last of these frames.
    pub used_bytes: u64,
    /// Whether the file is not needed, and is there to be used again.
    pub spare: bool,
}

/// A file of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SegmentFile {
    /// The name of the file, from the data directory on.
    pub file: String,
    /// Bytes that count.
    pub bytes: u64,
    /// The number of the segment. It is unique over the life of the directory.
    pub generation: u64,
    /// The due times of its tasks.
    pub span: Span,
    /// Whether its records were in another segment before.
    pub moved: bool,
    /// Runs, each written by one checkpoint; `None` if that cannot be told.
    pub runs: Option<u64>,
    /// Records in total.
    pub records: u64,
    /// Records that are live; `None` if that cannot be told.
    pub live: Option<u64>,
}

/// The due times of the tasks of a segment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Span {
    /// The tasks were due when they were written.
    Overdue,
    /// From the first instant on, and before the second one.
    Between(Timestamp, Timestamp),
}

/// A part of a file that a copy has to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needed {
    /// The name of the file, from the data directory on.
    pub file: String,
    /// The number of needed bytes from the beginning of the file. For a log file these are all bytes: a log file that is shorter than it
    /// was made is taken for a damaged one.
    pub bytes: u64,
    /// The copy has these bytes instead, because the file names files that are not in the copy.
    pub content: Option<Vec<u8>>,
}

impl Examination {
    /// Whether the place is a data directory without a problem.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.is_ours && self.problems.is_empty()
    }

    /// Notes a problem, unless a problem of the same place is known.
    pub(super) fn add(&mut self, problem: Problem) {
        let known = |known: &Problem| known.file == problem.file && known.offset == problem.offset;
        if !self.problems.iter().any(known) {
            self.problems.push(problem);
        }
    }
}
