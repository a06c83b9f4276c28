//! How many tasks are due when: counted from what memory knows of blocks, and by reading those that stand over an edge.

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::{Census, Place, Reply, Task};

use super::look::damage;
use super::reading::Next;
use crate::catalog::Catalog;
use crate::checksum::{Seeds, Use};
use crate::codec::Names;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{BadRecord, Block, Level, read_record};

/// So many bytes are read at once: their records take about a millisecond.
const BYTES_AT_ONCE: usize = 512 << 10;

/// A census under way.
#[derive(Debug)]
pub(super) struct Count {
    census: Census,
    counts: Vec<u64>,
    /// What has to be read: neighbouring blocks of one run.
    left: VecDeque<Blocks>,
    asked: Vec<Blocks>,
    reads: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Blocks {
    segment: u32,
    run: usize,
    blocks: Range<usize>,
}

impl Count {
    /// Counts all that memory can count.
    ///
    /// Of all queues together a block whose records are due in one bucket need not be read: memory knows how many of them are live. Of one
    /// queue every block in reach is read, for memory does not know which queues it has.
    pub(super) fn new(census: Census, catalog: &Catalog) -> Self {
        let counts = vec![0; census.buckets];
        let mut count = Self { census, counts, left: VecDeque::new(), asked: Vec::new(), reads: Vec::new() };
        for (place, task) in catalog.fresh.behind(count.census.start()) {
            if place.due_at > count.census.end() {
                break;
            }
            count.add(task);
        }
        for (slot, segment) in catalog.segments.iter().filter(|(_, one)| one.bucket.level != Level::Dead) {
            for (index, run) in segment.runs.iter().enumerate() {
                count.plan(slot, index, run.blocks(), run.last);
            }
        }
        count
    }

    fn plan(&mut self, segment: u32, run: usize, blocks: &[Block], last: Place) {
        let (start, end) = (self.census.start(), self.census.end());
        for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.records > 0) {
            let to = blocks.get(index + 1).map_or(last, |next| next.first);
            if to <= start || block.first.due_at > end {
                continue;
            }
            let same = self
                .census
                .bucket(block.first.due_at)
                .filter(|one| self.census.bucket(to.due_at) == Some(*one));
            match (same, &self.census.queue) {
                (Some(bucket), None) => self.counts[bucket] += u64::from(block.records),
                _ => self.leave_for_reading(segment, run, index),
            }
        }
    }

    fn leave_for_reading(&mut self, segment: u32, run: usize, block: usize) {
        match self.left.back_mut() {
            Some(last) if (last.segment, last.run, last.blocks.end) == (segment, run, block) => {
                last.blocks.end += 1
            }
            _ => self.left.push_back(Blocks { segment, run, blocks: block..block + 1 }),
        }
    }

    fn add(&mut self, task: &Task) {
        let meant = self.census.queue.as_ref().is_none_or(|queue| task.queue == *queue);
        if let Some(bucket) = self.census.bucket(task.due_at).filter(|_| meant && task.dead().is_none()) {
            self.counts[bucket] += 1;
        }
    }

    /// The reads that were asked for brought this.
    pub(super) fn take(&mut self, reads: Vec<Vec<u8>>) {
        self.reads = reads;
    }

    pub(super) fn advance(&mut self, catalog: &Catalog, seeds: &Seeds, names: &mut Names) -> Next {
        let reads = std::mem::take(&mut self.reads);
        for (blocks, bytes) in std::mem::take(&mut self.asked).iter().zip(reads) {
            if let Err(why) = self.decode(blocks, &bytes, catalog, seeds, names) {
                return Next::Damaged(why);
            }
        }
        let calls = self.calls(catalog);
        if calls.is_empty() {
            Next::Reply(Reply::Counts(std::mem::take(&mut self.counts)))
        } else {
            Next::Calls(calls)
        }
    }

    /// Asks for some of what is left.
    fn calls(&mut self, catalog: &Catalog) -> Vec<Call> {
        let (mut calls, mut all) = (Vec::new(), 0);
        while all < BYTES_AT_ONCE
            && let Some(mut blocks) = self.left.pop_front()
        {
            let segment = catalog.segments.get(blocks.segment);
            let run = &segment.runs[blocks.run];
            let mut taken = blocks.blocks.start..blocks.blocks.start;
            while taken.end < blocks.blocks.end && all < BYTES_AT_ONCE {
                all += run.range_of(taken.end..taken.end + 1).1;
                taken.end += 1;
            }
            let (offset, bytes) = run.range_of(taken.clone());
            calls.push(Call::Read { file: Arc::clone(&segment.name), offset, bytes });
            blocks.blocks.start = taken.end;
            self.asked.push(Blocks { blocks: taken, ..blocks });
            if !blocks.blocks.is_empty() {
                self.left.push_front(blocks);
            }
        }
        calls
    }

    fn decode(
        &mut self,
        blocks: &Blocks,
        bytes: &[u8],
        catalog: &Catalog,
        seeds: &Seeds,
        names: &mut Names,
    ) -> Result<(), String> {
        let segment = catalog.segments.get(blocks.segment);
        let (start, length) = segment.runs[blocks.run].range_of(blocks.blocks.clone());
        if bytes.len() < length {
            return Err(damage(&segment.name, start + bytes.len() as u64, "the file ends in a block"));
        }
        let seed = seeds.of(Use::Segment(segment.generation));
        let mut from = 0;
        while from < length {
            let offset = start + from as u64;
            let (task, length) =
                read_record(&bytes[from..], offset, seed, names).map_err(|bad| match bad {
                    BadRecord::Short(_) => damage(&segment.name, offset, "a record reaches beyond its block"),
                    BadRecord::Damaged(what) => damage(&segment.name, offset, &what),
                })?;
            if catalog.is_live(task.id, Spot { segment: blocks.segment, offset }) {
                self.add(&task);
            }
            from += length;
        }
        Ok(())
    }
}
