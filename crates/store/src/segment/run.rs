//! The facts of a run that are in memory.

use core::ops::Range;

use tickwheel_engine::DueKey;

use super::footer::Block;

/// A run of a segment, as it is in memory: for each block its offset, its first due key and how many of its records are live. A block takes
/// about 24 bytes of memory for 16 KiB of records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// The offset of the run's first byte in the file.
    pub(crate) start: u64,
    /// The offset in the file where the run's records end.
    pub(crate) end: u64,
    /// The due key of the run's last record.
    pub(crate) last: DueKey,
    blocks: Vec<Block>,
}

impl Run {
    /// Makes a run with the `blocks` of its footer: all records are live at first.
    pub(crate) fn new(start: u64, end: u64, last: DueKey, mut blocks: Vec<Block>) -> Self {
        blocks.shrink_to_fit();
        Self { start, end, last, blocks }
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the offset in the file where these blocks begin, and how many bytes they have.
    pub(crate) fn range_of(&self, blocks: Range<usize>) -> (u64, usize) {
        let from = self.start + u64::from(self.blocks[blocks.start].at);
        let to = self.blocks.get(blocks.end).map_or(self.end, |next| self.start + u64::from(next.at));
        (from, usize::try_from(to - from).expect("blocks are some kilobytes, or one task"))
    }

    /// Returns the index of the first block to read for the records behind `after`. If no record is behind `after`, returns the number of
    /// blocks.
    pub(crate) fn first_block_behind(&self, after: DueKey) -> usize {
        if after >= self.last {
            return self.blocks.len();
        }
        self.blocks.partition_point(|block| block.first <= after).saturating_sub(1)
    }

    /// Counts the record at this offset of the file as dead.
    pub(crate) fn bury(&mut self, offset: u64) {
        let at = u32::try_from(offset - self.start).expect("a run is shorter than 4 GiB");
        let index = self.blocks.partition_point(|block| block.at <= at) - 1;
        let live = &mut self.blocks[index].records;
        *live = live.checked_sub(1).expect("a block has no more dead than it has records");
    }
}
