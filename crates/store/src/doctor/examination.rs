//! What was found in a directory.

use std::collections::BTreeMap;

use tickwheel_engine::{QueueName, Timestamp};

use super::problem::Problem;
use crate::options::ClockMode;
use crate::report::Torn;

/// How much is read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Depth {
    /// What an opening reads: what each file says of itself, and the log.
    Opening,
    /// Every record too.
    Records,
}

/// What a data directory is and has, and all that was found to be wrong with it.
///
/// What cannot be told because something else is damaged is `None` or absent; `problems` says why then.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Examination {
    /// Whether it is a data directory at all, whole or not.
    pub is_ours: bool,
    /// A running process has it: the figures may be in motion, and the log may end in what is just being written.
    pub in_use: bool,
    /// The format of the directory.
    pub format: Option<u32>,
    /// Which clock its tasks live by.
    pub clock: Option<ClockMode>,
    /// The wall clock of the last thing that was written; `None` if nothing was, or it cannot be told.
    pub last_written: Option<Timestamp>,
    /// The checkpoint that an opening starts from.
    pub checkpoint: Option<CheckpointFile>,
    /// The files of the log, by their names.
    pub logs: Vec<LogFile>,
    /// The unfinished write at the end of the log, if there is one: nobody was told that it was done, and an opening leaves it out.
    pub torn: Option<Torn>,
    /// The segments that the checkpoint lists, by their names.
    pub segments: Vec<SegmentFile>,
    /// Live tasks.
    pub tasks: Option<u64>,
    /// Those of them that were given up and are kept.
    pub dead: Option<u64>,
    /// Live tasks of each queue that has any.
    pub queues: BTreeMap<QueueName, u64>,
    /// Ended tasks that are remembered.
    pub ended: Option<u64>,
    /// What a copy has to have to open as this directory does. Empty if it does not open.
    pub needed: Vec<Needed>,
    /// Files of ours that no opening needs; the next one removes them. Spare log files are not among them.
    pub not_needed: Vec<String>,
    /// Files and folders that are not ours. They are left alone.
    pub not_ours: Vec<String>,
    /// Bytes of all files of ours.
    pub bytes: u64,
    /// Bytes of records that were read and checked; `None` unless that was asked for.
    pub checked_bytes: Option<u64>,
    /// All that is wrong, first what an opening would stumble over first.
    pub problems: Vec<Problem>,
}

/// The checkpoint that an opening starts from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckpointFile {
    /// Its name, from the data directory on.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// The last frame of the log that is in it.
    pub frame: u64,
    /// Segments that it lists.
    pub segments: u64,
    /// Ended tasks in it.
    pub ended: u64,
}

/// A file of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LogFile {
    /// Its name, from the data directory on.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Which use of a log file it is in; `None` if its header does not check out.
    pub generation: Option<u64>,
    /// Frames of this use.
    pub frames: u64,
    /// The number of the first and of the last of them.
    pub numbers: Option<(u64, u64)>,
    /// Bytes up to the end of the last of them.
    pub used_bytes: u64,
    /// Nothing in it is needed: it is there to be used again.
    pub spare: bool,
}

/// A file of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SegmentFile {
    /// Its name, from the data directory on.
    pub file: String,
    /// Bytes that count.
    pub bytes: u64,
    /// Which one it is, over the life of the directory.
    pub generation: u64,
    /// When its tasks are due.
    pub span: Span,
    /// Whether its records were in another segment before.
    pub moved: bool,
    /// Parts, each written by one checkpoint; `None` if that cannot be told.
    pub runs: Option<u64>,
    /// Records in all.
    pub records: u64,
    /// Records that are live; `None` if that cannot be told.
    pub live: Option<u64>,
}

/// When the tasks of a segment are due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Span {
    /// They were due when they were written.
    Overdue,
    /// From the one instant on, before the other.
    Between(Timestamp, Timestamp),
}

/// A part of a file that a copy has to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needed {
    /// Its name, from the data directory on.
    pub file: String,
    /// How many bytes from its begin on: of a log file all, for it is taken for half of one if it is shorter than it was made.
    pub bytes: u64,
    /// The copy has these bytes instead, for the file speaks of files that are not in the copy.
    pub content: Option<Vec<u8>>,
}

impl Examination {
    /// Whether it is a data directory, and nothing is wrong with it.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.is_ours && self.problems.is_empty()
    }

    /// Notes a problem, unless one of the same place is known.
    pub(super) fn add(&mut self, problem: Problem) {
        let known = |known: &Problem| known.file == problem.file && known.offset == problem.offset;
        if !self.problems.iter().any(known) {
            self.problems.push(problem);
        }
    }
}
