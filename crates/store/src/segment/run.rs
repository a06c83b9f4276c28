//! The facts about a run that memory keeps.

use core::ops::Range;

use tickwheel_engine::DueKey;

use super::footer::Block;

/// Records of one segment in the order of their places, as memory knows them: where each block begins and how many of its
/// records are live. About 24 bytes for each 16 KiB of records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// The run's first byte in the file.
    pub(crate) start: u64,
    /// Where the run's records end.
    pub(crate) end: u64,
    /// The place of the run's last record.
    pub(crate) last: DueKey,
    blocks: Vec<Block>,
}

impl Run {
    /// `blocks` as the footer has them: all records are live.
    pub(crate) fn new(start: u64, end: u64, last: DueKey, mut blocks: Vec<Block>) -> Self {
        blocks.shrink_to_fit();
        Self { start, end, last, blocks }
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Where some blocks begin and how many bytes they have.
    pub(crate) fn range_of(&self, blocks: Range<usize>) -> (u64, usize) {
        let from = self.start + u64::from(self.blocks[blocks.start].at);
        let to = self.blocks.get(blocks.end).map_or(self.end, |next| self.start + u64::from(next.at));
        (from, usize::try_from(to - from).expect("blocks are some kilobytes, or one task"))
    }

    /// The block in which reading begins for what stands behind `after`.
    pub(crate) fn first_block_behind(&self, after: DueKey) -> usize {
        if after >= self.last {
            return self.blocks.len();
        }
        self.blocks.partition_point(|block| block.first <= after).saturating_sub(1)
    }

    /// Takes in that the record at this byte of the file is live no more.
    pub(crate) fn bury(&mut self, offset: u64) {
        let at = u32::try_from(offset - self.start).expect("a run is shorter than 4 GiB");
        let index = self.blocks.partition_point(|block| block.at <= at) - 1;
        let live = &mut self.blocks[index].records;
        *live = live.checked_sub(1).expect("a block has no more dead than it has records");
    }
}
