//! The due histogram: how many tasks fall due in each bucket of time. A block is counted without a read if memory has enough about it. All
//! other blocks are read.

use core::ops::Range;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use tickwheel_engine::{DueHistogram, DueKey, Reply, Task, Timestamp};

use super::super::merge::{Tools, read_blocks};
use super::Next;
use crate::bounds::Bounds;
use crate::catalog::Catalog;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{Level, Run, Skimmed};

/// One part of a due histogram. The caller asks for the part after it, if there is one.
///
/// First the blocks of the part are chosen, then the tasks of the memtable are counted. Both steps may end the part early. So the blocks
/// are counted last, when the end is certain. A task after the end is not counted, because the next part counts it.
#[derive(Debug)]
pub(super) struct Histogram {
    wanted: DueHistogram,
    /// `until` is the last instant of this part. `more` says whether another part follows.
    until: Timestamp,
    more: bool,
    counts: Vec<u64>,
    /// The blocks that are still to be read. Each entry has neighbouring blocks of one run.
    left: VecDeque<Blocks>,
    asked: Vec<Blocks>,
    read_bytes: usize,
}

#[derive(Debug)]
struct Blocks {
    segment: u32,
    run: usize,
    blocks: Range<usize>,
}

/// A block that was not looked at yet: the due key of its first record, the slot of its segment, the index of its run, and its own index.
type Ahead = Reverse<(DueKey, u32, usize, usize)>;

/// A block that may have records of this part.
#[derive(Debug)]
struct Met {
    /// When the first record is due, and the latest instant at which the last record can be due.
    first: Timestamp,
    last: Timestamp,
    segment: u32,
    run: usize,
    block: usize,
    /// The bucket in which all records of the block are due; `None` if the block has to be read.
    bucket: Option<usize>,
}

impl Histogram {
    /// Begins a part: decides where it ends, and counts everything that needs no read.
    ///
    /// For all queues together, a block is counted without a read if all its records are due in one bucket: memory has the number of its
    /// live records. While the catalog is taking a checkpoint over (`settling`), a record may be in two places, so all blocks of the part
    /// are read. For one queue, all blocks of the part are read as well, because memory does not have the queues of the records in a block.
    pub(super) fn new(wanted: DueHistogram, catalog: &Catalog, settling: bool, bounds: &Bounds) -> Self {
        let mut count = Self {
            until: wanted.end(),
            more: false,
            counts: vec![0; wanted.grid.buckets()],
            left: VecDeque::new(),
            asked: Vec::new(),
            read_bytes: bounds.histogram_read_bytes,
            wanted,
        };
        let met = count.blocks_in_reach(catalog, settling, bounds);
        count.count_memtable(catalog, bounds);
        count.count_blocks(met, catalog);
        count
    }

    /// Ends this part just before `instant`, and returns `true`. If the part would then be empty, changes nothing and returns `false`. Each
    /// part has to come further than the part before.
    fn ends_before(&mut self, instant: Timestamp) -> bool {
        let before = Timestamp::from_ms(instant.as_ms() - 1).filter(|before| *before > self.wanted.after);
        if let Some(before) = before {
            (self.until, self.more) = (before, true);
        }
        before.is_some()
    }

    /// Counts the tasks of the memtable in this part, in the order of their due keys. If there are many, the part ends early, between two
    /// instants.
    fn count_memtable(&mut self, catalog: &Catalog, bounds: &Bounds) {
        let mut last = self.wanted.after;
        for (looked, (place, task)) in catalog.memtable.behind(self.wanted.start()).enumerate() {
            if place.due_at > self.until {
                return;
            }
            if looked >= bounds.histogram_memtable && place.due_at > last && self.ends_before(place.due_at) {
                return;
            }
            last = place.due_at;
            self.add(task);
        }
    }

    /// Returns the blocks of this part, in the order of their first due keys. If there are many blocks, or many bytes to read, the part
    /// ends early.
    fn blocks_in_reach(&mut self, catalog: &Catalog, settling: bool, bounds: &Bounds) -> Vec<Met> {
        let start = self.wanted.start();
        let mut ahead: BinaryHeap<Ahead> = BinaryHeap::new();
        for (slot, segment) in catalog.segments.iter().filter(|(_, one)| one.bucket.level != Level::Dead) {
            for (index, run) in segment.runs.iter().enumerate() {
                ahead.extend(
                    live_from(run, run.first_block_behind(start))
                        .map(|(first, at)| Reverse((first, slot, index, at))),
                );
            }
        }
        let knows = !settling && self.wanted.queue.is_none();
        let (mut met, mut bytes) = (Vec::new(), 0);
        while let Some(Reverse((first, segment, run, block))) = ahead.pop() {
            let first = first.due_at;
            if first > self.until {
                break;
            }
            let many = bytes >= bounds.histogram_bytes || met.len() >= bounds.histogram_blocks;
            if many && self.ends_before(first) {
                break;
            }
            let of = &catalog.segments.get(segment).runs[run];
            ahead.extend(live_from(of, block + 1).map(|(first, at)| Reverse((first, segment, run, at))));
            let last = of.blocks().get(block + 1).map_or(of.last, |next| next.first).due_at;
            let bucket = self.wanted.bucket(first).filter(|_| knows);
            let bucket = bucket.filter(|bucket| self.wanted.bucket(last) == Some(*bucket));
            if bucket.is_none() {
                bytes += of.range_of(block..block + 1).1;
            }
            met.push(Met { first, last, segment, run, block, bucket });
        }
        met
    }

    /// Counts the blocks that need no read. Puts the other blocks into `left`.
    fn count_blocks(&mut self, met: Vec<Met>, catalog: &Catalog) {
        let mut to_read = Vec::new();
        // The part may end earlier than it did when these blocks were chosen. So some blocks may be after the end now.
        for Met { last, segment, run, block, bucket, .. } in
            met.into_iter().filter(|met| met.first <= self.until)
        {
            match bucket.filter(|_| last <= self.until) {
                Some(bucket) => {
                    let records = catalog.segments.get(segment).runs[run].blocks()[block].records;
                    self.counts[bucket] += u64::from(records);
                }
                // The buckets of the block's records are not in memory, or some records may be due in the next part.
                None => to_read.push((segment, run, block)),
            }
        }
        to_read.sort_unstable();
        for (segment, run, at) in to_read {
            match self.left.back_mut() {
                Some(last) if (last.segment, last.run, last.blocks.end) == (segment, run, at) => {
                    last.blocks.end += 1
                }
                _ => self.left.push_back(Blocks { segment, run, blocks: at..at + 1 }),
            }
        }
    }

    fn add(&mut self, task: &Task) {
        let meant = self.wanted.queue.as_ref().is_none_or(|queue| task.queue == *queue);
        let counts = meant && task.dead().is_none() && task.due_at <= self.until;
        if let Some(bucket) = self.wanted.bucket(task.due_at).filter(|_| counts) {
            self.counts[bucket] += 1;
        }
    }

    /// Takes the bytes of the reads that the histogram asked for. Returns the next reads, or the counts.
    pub(super) fn advance(&mut self, reads: Vec<Vec<u8>>, tools: &mut Tools<'_>) -> Result<Next, String> {
        for (blocks, bytes) in std::mem::take(&mut self.asked).iter().zip(reads) {
            self.decode(blocks, &bytes, tools)?;
        }
        let calls = self.calls(tools.catalog);
        if !calls.is_empty() {
            return Ok(Next::Calls(calls));
        }
        let counted = self.more.then_some(self.until);
        Ok(Next::Reply(Reply::Counts { counts: std::mem::take(&mut self.counts), counted }))
    }

    /// Returns the calls that read some of the blocks that are left.
    fn calls(&mut self, catalog: &Catalog) -> Vec<Call> {
        let (mut calls, mut all) = (Vec::new(), 0);
        while all < self.read_bytes
            && let Some(mut blocks) = self.left.pop_front()
        {
            let segment = catalog.segments.get(blocks.segment);
            let run = &segment.runs[blocks.run];
            let mut taken = blocks.blocks.start..blocks.blocks.start;
            while taken.end < blocks.blocks.end && all < self.read_bytes {
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

    fn decode(&mut self, blocks: &Blocks, bytes: &[u8], tools: &mut Tools<'_>) -> Result<(), String> {
        let catalog = tools.catalog;
        let segment = catalog.segments.get(blocks.segment);
        let place = segment.runs[blocks.run].range_of(blocks.blocks.clone());
        let wanted = self.wanted.queue.clone();
        read_blocks(segment, place, bytes, wanted.as_ref(), tools, |offset, skimmed| {
            let Skimmed::Task(task) = skimmed else { return };
            if catalog.is_live(task.id, Spot { segment: blocks.segment, offset }) {
                self.add(&task);
            }
        })
    }
}

/// Returns the first block with a live record, from the index `from` on: its first due key and its index.
fn live_from(run: &Run, from: usize) -> Option<(DueKey, usize)> {
    let blocks = run.blocks().get(from..)?;
    let skipped = blocks.iter().position(|block| block.records > 0)?;
    Some((blocks[skipped].first, from + skipped))
}
