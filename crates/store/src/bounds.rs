//! Limits of the work that the store does in one step.

use crate::acquired::ACQUIRED_PAGE;
use crate::log::HEAD_BYTES;

/// Limits of the work that the store does in one step, before other work has its turn. A limit of 0 counts as 1.
///
/// A bound changes only when work is done and how large a part or a page is, and never makes an answer wrong. Users cannot set the bounds.
/// The simulator makes the bounds small, because a few hundred tasks never reach a bound that is made for millions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Bytes of blocks that a due histogram reads at once. The store needs about a millisecond for the records of these blocks.
    pub histogram_read_bytes: usize,
    /// A part of a due histogram ends between two instants once its blocks have this many bytes to read. The caller asks for the next part.
    /// Between two parts, other work that waits for the end of the reads has its turn.
    pub histogram_bytes: usize,
    /// A part of a due histogram also ends between two instants once it has looked at this many blocks, which takes one or two
    /// milliseconds.
    pub histogram_blocks: usize,
    /// A part of a due histogram also ends between two instants once it has looked at this many tasks of the memtable.
    pub histogram_memtable: usize,
    /// A filter ends its page once it has looked at this many records, even if the page is empty then. If the page may have more tasks than
    /// this number, the filter looks at as many records as the page may have tasks. A block that the filter reads counts as 16 records,
    /// because the read takes some milliseconds.
    pub page_looks: usize,
    /// A filter passes at least this many records before `page_looks` ends its page. The first record costs the reading of the first blocks
    /// of all runs in reach, and the next page reads these blocks again.
    pub page_passes: usize,
    /// A page ends once its payloads have this many bytes, because a thousand payloads of a megabyte each are too much for one answer.
    pub page_bytes: usize,
    /// A merge of runs reads several blocks at once. No block is added once the chosen blocks have more bytes than this.
    pub merge_read_bytes: usize,
    /// Bytes of segments that one checkpoint reads to copy their live records. A single larger segment is still read. The log is kept until
    /// the records are copied.
    pub moved_bytes: u64,
    /// About how many tasks are read at once to be copied. The bound keeps the time of one step short.
    pub moved_at_once: usize,
    /// Number of records of a checkpoint that the catalog takes over in one step, which takes some milliseconds.
    pub settled_at_once: usize,
    /// A step of a checkpoint ends once it has this many disk calls. Some runs are short, and each run is in a file of its own, so a step
    /// without this bound could have very many calls.
    pub checkpoint_calls: usize,
    /// A segment takes no more runs once it has this many, because each run has to be read separately.
    pub segment_runs: usize,
    /// At any time, fewer than this many of the newest entries of the memtable are unsorted.
    pub memtable_tail: usize,
    /// Number of spare log files that are kept; more are removed. A checkpoint of the usual size frees two or three files at once. If these
    /// files were removed, later files would have to be filled with zeroes.
    pub spare_files: usize,
    /// Number of tasks whose entries are fetched from memory together, so that their waits for memory overlap.
    pub tasks_ahead: usize,
    /// Bytes of a record that are read at first, while its length is not known. Most records are shorter.
    pub record_read_bytes: usize,
    /// Bytes of a log file that an opening reads at first, to learn the number of its first frame. Most first frames are shorter. A smaller
    /// bound is raised to the length of a frame's head, because no frame is found without its head.
    pub log_read_bytes: usize,
    /// Number of entries in one page of the `Acquired` reply.
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
    /// Returns the bounds with each of them at least 1, and `log_read_bytes` at least the head of a frame. With a bound of 0 the store
    /// would make no progress.
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
