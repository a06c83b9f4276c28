//! How much the store does at once.

use crate::acquired::ACQUIRED_PAGE;
use crate::log::HEAD_BYTES;

/// How much the store does at once, before others have their turn. Each number is at least 1; a smaller one is taken for 1.
///
/// A bound changes when something is done. It never changes an answer. The bounds are no settings for users: the simulator makes them
/// small, because a few hundred tasks never meet a bound that is made for millions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Bytes of blocks that a due histogram reads at once. The records of these blocks take about a millisecond.
    pub histogram_read_bytes: usize,
    /// A part of a due histogram ends at a block once it has this many bytes to read. The caller asks for the next part. Between the two parts,
    /// the work that waits for the end of the reads has its turn.
    pub histogram_bytes: usize,
    /// A part of a due histogram also ends once it has looked at this many blocks: a millisecond or two.
    pub histogram_blocks: usize,
    /// A part of a due histogram also ends once it has looked at this many tasks of the memtable.
    pub histogram_memtable: usize,
    /// A filter looks at no more than this many records before it answers, even if the page is empty then. A block that the filter reads
    /// counts as several records: it has a megabyte and more, and takes some milliseconds.
    pub page_looks: usize,
    /// A filter passes at least this many records. The first record costs the first blocks of all runs in reach, and the next page reads
    /// these blocks again.
    pub page_passes: usize,
    /// A page ends once its payloads have this many bytes: a thousand payloads of a megabyte each are too much for one answer.
    pub page_bytes: usize,
    /// Bytes (some pages) that a merge of runs reads at once, beyond the block that is next.
    pub merge_read_bytes: usize,
    /// Bytes of segments that one checkpoint reads to copy them: the log is kept until they are copied.
    pub moved_bytes: u64,
    /// Tasks that are read at once to be copied, about. The bound keeps their time in one step short.
    pub moved_at_once: usize,
    /// Tasks of a checkpoint that memory takes over in one step: some milliseconds.
    pub settled_at_once: usize,
    /// Calls in one step of a checkpoint. Some runs are short, and each is a file of its own.
    pub checkpoint_calls: usize,
    /// A segment takes no more runs once it has this many, because each run has to be read separately.
    pub segment_runs: usize,
    /// The newest tasks in the memtable, up to this many, are in no order yet.
    pub memtable_tail: usize,
    /// Spare log files that are kept; more are removed. A checkpoint of the usual size frees two or three at once. A file that is removed
    /// then would have to be filled with zeroes again later.
    pub spare_files: usize,
    /// The entries of this many tasks in memory are fetched together.
    pub tasks_ahead: usize,
    /// Bytes of a record that are read at first, when its length is not known yet. Most records are shorter.
    pub record_read_bytes: usize,
    /// Bytes of a log file that an opening reads at first, to learn the number of its first frame. Most first frames are shorter. The
    /// number is at least the head of a frame: without the head no frame is seen at all.
    pub log_read_bytes: usize,
    /// Entries in one page of what a new owner has to know.
    pub acquired_page: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            histogram_read_bytes: 512 << 10,
            histogram_bytes: 8 << 20,
            histogram_blocks: 16_384,
            histogram_memtable: 16_384,
            page_looks: 4_096,
            page_passes: 1_024,
            page_bytes: 4 << 20,
            merge_read_bytes: 2 << 20,
            moved_bytes: 128 << 20,
            moved_at_once: 1_024,
            settled_at_once: 8_192,
            checkpoint_calls: 8,
            segment_runs: 64,
            memtable_tail: 512,
            spare_files: 4,
            tasks_ahead: 64,
            record_read_bytes: 1 << 10,
            log_read_bytes: 64 << 10,
            acquired_page: ACQUIRED_PAGE,
        }
    }
}

impl Bounds {
    /// Returns the bounds, with every one at least 1. With a bound of 0 the store would make no progress.
    pub(crate) fn in_range(self) -> Self {
        Self {
            histogram_read_bytes: self.histogram_read_bytes.max(1),
            histogram_bytes: self.histogram_bytes.max(1),
            histogram_blocks: self.histogram_blocks.max(1),
            histogram_memtable: self.histogram_memtable.max(1),
            page_looks: self.page_looks.max(1),
            page_passes: self.page_passes.max(1),
            page_bytes: self.page_bytes.max(1),
            merge_read_bytes: self.merge_read_bytes.max(1),
            moved_bytes: self.moved_bytes.max(1),
            moved_at_once: self.moved_at_once.max(1),
            settled_at_once: self.settled_at_once.max(1),
            checkpoint_calls: self.checkpoint_calls.max(1),
            segment_runs: self.segment_runs.max(1),
            memtable_tail: self.memtable_tail.max(1),
            spare_files: self.spare_files.max(1),
            tasks_ahead: self.tasks_ahead.max(1),
            record_read_bytes: self.record_read_bytes.max(1),
            log_read_bytes: self.log_read_bytes.max(HEAD_BYTES),
            acquired_page: self.acquired_page.max(1),
        }
    }
}
