//! How many tasks are due when: counted from what memory knows of blocks, and by reading those that stand over an edge.

use core::ops::Range;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use tickwheel_engine::{Census, Place, Reply, Task, Timestamp};

use super::merge::read_blocks;
use super::reading::Next;
use crate::catalog::Catalog;
use crate::checksum::Seeds;
use crate::codec::Names;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{Level, Run};

/// So many bytes are read at once: their records take about a millisecond.
const BYTES_AT_ONCE: usize = 512 << 10;
/// Once so many are to be read for one part of a census it ends, and whoever asked asks for the next: what waits for reads to be over has its turn
/// in between.
const BYTES_MAX: usize = 8 << 20;
/// A part ends, too, once it has looked at so many blocks, or at so many fresh tasks: a millisecond or two.
const BLOCKS_MAX: usize = 16_384;
const FRESH_MAX: usize = 16_384;

/// One part of a census.
#[derive(Debug)]
pub(super) struct Count {
    census: Census,
    /// The last instant of this part, and whether there is another behind it.
    until: Timestamp,
    more: bool,
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

/// A block of a run, by the place of its first record.
type Ahead = Reverse<(Place, u32, usize, usize)>;

impl Count {
    /// Counts all that memory can count, as far as one part goes.
    ///
    /// Of all queues together a block whose records are due in one bucket need not be read: memory knows how many of them are live, unless it is taking
    /// a checkpoint over (`settling`): then a record may stand in two places. Of one queue every block in reach is read, for memory does not know
    /// which queues it has.
    pub(super) fn new(census: Census, catalog: &Catalog, settling: bool) -> Self {
        let mut count = Self {
            until: census.end(),
            more: false,
            counts: vec![0; census.buckets],
            left: VecDeque::new(),
            asked: Vec::new(),
            reads: Vec::new(),
            census,
        };
        count.count_fresh(catalog);
        count.plan(catalog, settling);
        count
    }

    /// Ends this part in front of an instant.
    fn end_before(&mut self, instant: Timestamp) {
        self.until = Timestamp::from_ms(instant.as_ms() - 1).expect("it is later than another");
        self.more = true;
    }

    fn count_fresh(&mut self, catalog: &Catalog) {
        let mut last = self.census.after;
        for (looked, (place, task)) in catalog.fresh.behind(self.census.start()).enumerate() {
            if place.due_at > self.until {
                break;
            }
            // A part ends between two instants, never inside of one.
            if looked >= FRESH_MAX && place.due_at > last {
                return self.end_before(place.due_at);
            }
            last = place.due_at;
            self.add(task);
        }
    }

    fn plan(&mut self, catalog: &Catalog, settling: bool) {
        let start = self.census.start();
        let mut ahead: BinaryHeap<Ahead> = BinaryHeap::new();
        let run_of = |segment: u32, run: usize| &catalog.segments.get(segment).runs[run];
        for (slot, segment) in catalog.segments.iter().filter(|(_, one)| one.bucket.level != Level::Dead) {
            for (index, run) in segment.runs.iter().enumerate() {
                ahead.extend(
                    live_from(run, run.first_block_behind(start))
                        .map(|(first, at)| Reverse((first, slot, index, at))),
                );
            }
        }
        let (mut sure, mut to_read, mut bytes, mut looked) = (Vec::new(), Vec::new(), 0, 0);
        while let Some(Reverse((first, segment, run, at))) = ahead.pop() {
            if first.due_at > self.until {
                break;
            }
            if (bytes >= BYTES_MAX || looked >= BLOCKS_MAX) && first.due_at > self.census.after {
                self.end_before(first.due_at);
                break;
            }
            looked += 1;
            let of = run_of(segment, run);
            ahead.extend(live_from(of, at + 1).map(|(first, at)| Reverse((first, segment, run, at))));
            let to = of.blocks().get(at + 1).map_or(of.last, |next| next.first);
            let bucket = self.census.bucket(first.due_at);
            let known = bucket.filter(|_| !settling && self.census.queue.is_none());
            match known.filter(|bucket| self.census.bucket(to.due_at) == Some(*bucket)) {
                Some(bucket) => sure.push((bucket, to.due_at, (segment, run, at))),
                None => {
                    bytes += of.range_of(at..at + 1).1;
                    to_read.push((segment, run, at));
                }
            }
        }
        for (bucket, last, place) in sure {
            // It reaches into the next part.
            if last > self.until {
                to_read.push(place);
                continue;
            }
            let (segment, run, at) = place;
            self.counts[bucket] += u64::from(run_of(segment, run).blocks()[at].records);
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
        let meant = self.census.queue.as_ref().is_none_or(|queue| task.queue == *queue);
        let counts = meant && task.dead().is_none() && task.due_at <= self.until;
        if let Some(bucket) = self.census.bucket(task.due_at).filter(|_| counts) {
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
        if !calls.is_empty() {
            return Next::Calls(calls);
        }
        let counted = self.more.then_some(self.until);
        Next::Reply(Reply::Counts { counts: std::mem::take(&mut self.counts), counted })
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
        let place = segment.runs[blocks.run].range_of(blocks.blocks.clone());
        read_blocks(segment, place, bytes, seeds, names, |offset, task| {
            if catalog.is_live(task.id, Spot { segment: blocks.segment, offset }) {
                self.add(&task);
            }
        })
    }
}

/// The first block from this one on that has a live record, and where it begins.
fn live_from(run: &Run, from: usize) -> Option<(Place, usize)> {
    let blocks = run.blocks().get(from..)?;
    let skipped = blocks.iter().position(|block| block.records > 0)?;
    Some((blocks[skipped].first, from + skipped))
}
