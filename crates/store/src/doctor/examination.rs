//! The results of the examination of a directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Population, QueueName, ShardId, TargetRecord, Timestamp};

use super::problem::Problem;
use crate::options::ClockMode;
use crate::report::Torn;

/// How much an examination reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Depth {
    /// The parts that an opening reads: the headers and the indexes of the files, and the log.
    Opening,
    /// All that [`Depth::Opening`] reads, and every record.
    Records,
}

/// The findings in a data directory: its properties, its files, and every problem.
///
/// A value that cannot be found out because of damage is `None` or absent. Then `problems` names the damage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Examination {
    /// Whether the examined place is a data directory, damaged or not.
    pub is_ours: bool,
    /// Whether a running process owns the directory, or a member of it. Then the numbers may be changing, and the last frame of the log may be incomplete
    /// because the process is writing it.
    pub in_use: bool,
    /// The format of the directory.
    pub format: Option<u32>,
    /// How many shards the data set has that the directory belongs to.
    pub shards: Option<u32>,
    /// The shard that the directory has. `None` for the root of several shards.
    pub shard: Option<ShardId>,
    /// The findings in the directories of the shards below this root, in the order of their folders. Empty for a directory of one shard. The
    /// other members of a root count its members together, and name their files with the folder (`0001/meta`). It has no checkpoint.
    pub members: Vec<Member>,
    /// The clock that the tasks of the directory use.
    pub clock: Option<ClockMode>,
    /// The latest wall clock in the records; `None` if there are no records, or if it cannot be found out.
    pub last_written: Option<Timestamp>,
    /// The checkpoint that an opening starts from.
    pub checkpoint: Option<CheckpointFile>,
    /// The files of the log, in the order of their names.
    pub logs: Vec<LogFile>,
    /// The unfinished write at the end of the log, if there is one. An opening leaves it out. If commits are answered only once they are
    /// synced, the unfinished write was never acknowledged.
    pub torn: Option<Torn>,
    /// The segments that the checkpoint lists, in the order of their generations. If no checkpoint can be loaded, the segment files that
    /// end like a finished segment and have a valid header.
    pub segments: Vec<SegmentFile>,
    /// How many tasks are live: neither ended nor dead.
    pub tasks: Option<u64>,
    /// How many tasks are dead: not tried any more, but kept.
    pub dead: Option<u64>,
    /// How many live and dead tasks each queue has. Queues without tasks are absent.
    pub queues: BTreeMap<QueueName, Population>,
    /// The targets of queues.
    pub targets: BTreeMap<QueueName, Arc<TargetRecord>>,
    /// How many ended tasks the history has.
    pub ended: Option<u64>,
    /// The files that a copy needs to open as this directory does. Empty if the directory does not open.
    pub needed: Vec<Needed>,
    /// Files of the store that no opening needs. The next opening that succeeds removes those in the shard's folder. Spare log files are
    /// not in this list.
    pub not_needed: Vec<String>,
    /// Files and folders that do not belong to the store. The store does not touch them.
    pub not_ours: Vec<String>,
    /// Bytes of `meta`, of `stamp` and of the store's files in the shard's folder, as far as the lengths can be read.
    pub bytes: u64,
    /// Bytes of the segments' records that were read and checked; `None` if the caller did not ask for [`Depth::Records`], or if the
    /// examination ended before the segments.
    pub checked_bytes: Option<u64>,
    /// Every problem, in the order in which the examination found it.
    pub problems: Vec<Problem>,
}

/// The directory of a shard below a root.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Member {
    /// The name of the folder below the root.
    pub folder: String,
    /// The findings in the folder. Their files have no folder in front.
    pub found: Examination,
}

/// The checkpoint that an opening starts from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckpointFile {
    /// The name of the file, relative to the data directory.
    pub file: String,
    /// The length of the file (bytes).
    pub bytes: u64,
    /// The last frame of the log that the checkpoint covers.
    pub frame: u64,
    /// How many segments the checkpoint lists.
    pub segments: u64,
    /// How many ended tasks the checkpoint has.
    pub ended: u64,
}

/// A file of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LogFile {
    /// The name of the file, relative to the data directory.
    pub file: String,
    /// The length of the file (bytes).
    pub bytes: u64,
    /// The generation of the file, which is the number of its use; `None` if no valid header was read.
    pub generation: Option<u64>,
    /// How many frames of this generation the file has, up to the first bytes that are no such frame.
    pub frames: u64,
    /// The numbers of the first and the last frame that `frames` counts; `None` if there are no such frames.
    pub numbers: Option<(u64, u64)>,
    /// The offset at which the last frame that `frames` counts ends (bytes). Without such a frame: where the first frame should begin, or 0
    /// if no valid header was read.
    pub used_bytes: u64,
    /// Whether no recovery needs the file. Such a file may be used again for later frames, or removed.
    pub spare: bool,
}

/// A segment: a file of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SegmentFile {
    /// The name of the file, relative to the data directory.
    pub file: String,
    /// How many bytes of the file belong to the segment. The rest of the file has no meaning.
    pub bytes: u64,
    /// The number of the segment. No other segment file in the directory has the same number.
    pub generation: u64,
    /// The due times of the segment's tasks.
    pub span: Span,
    /// Whether the records were copied from other segments; `false` if no checkpoint lists the segment.
    pub moved: bool,
    /// How many runs the segment has. Each run was written by one checkpoint. `None` if the number cannot be found out.
    pub runs: Option<u64>,
    /// How many records the segment has, live or dead.
    pub records: u64,
    /// How many of the records are live; `None` if the number cannot be found out.
    pub live: Option<u64>,
}

/// The due times of the tasks of a segment. For a dead task, the time at which it is forgotten counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Span {
    /// The tasks were due when their records were written.
    Overdue,
    /// The tasks are due from the first instant on, and before the second one.
    Between(Timestamp, Timestamp),
}

/// A file, or the beginning of a file, that a copy needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needed {
    /// The name of the file, relative to the data directory.
    pub file: String,
    /// How many bytes the copy needs, from the beginning of the file on. For a log file these are all bytes, because an opening may refuse
    /// a log file that is shorter than its header says.
    pub bytes: u64,
    /// The content that the copy gets in place of the file's own bytes. It is given if the file names files that are not in the copy.
    pub content: Option<Vec<u8>>,
}

impl Examination {
    /// Whether the examined place is a data directory, and no problem was found.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.is_ours && self.problems.is_empty()
    }

    /// Adds a problem, unless a problem with the same file and offset was added before.
    pub(super) fn add(&mut self, problem: Problem) {
        let known = |known: &Problem| known.file == problem.file && known.offset == problem.offset;
        if !self.problems.iter().any(known) {
            self.problems.push(problem);
        }
    }
}
