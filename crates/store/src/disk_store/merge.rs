//! Runs of segments, merged: the live records of all of them in the order of their places.

use core::ops::Range;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use tickwheel_engine::{DueKey, Filter, QueueName, Seq, Task, Timestamp};

use crate::bounds::Bounds;
use crate::catalog::{Catalog, Segment};
use crate::checksum::{Seeds, Use};
use crate::codec::Names;
use crate::error::damage;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{BadRecord, Level, Skimmed, skim_record};

/// A block that was read weighs as much as this many records that were looked at.
const BLOCK_LOOKS: usize = 16;

/// The position of a merge. The merge reads nothing itself: it says which blocks are to be read, and is given their bytes. A step costs the
/// logarithm of the number of runs that the merge has reached. The choice of what to read costs that logarithm for each of these runs. Runs
/// behind them cost nothing yet.
#[derive(Debug)]
pub(super) struct Merge {
    /// The last place that was passed.
    at: DueKey,
    /// The place up to which the merge may go: runs that begin later have no cursor.
    end: DueKey,
    /// The cursors and segments that may be next, the least place first.
    line: BinaryHeap<Reverse<(DueKey, Stands)>>,
    cursors: Vec<Cursor>,
    /// Which cursors the reads under way are for, in their order. These cursors stand in no line meanwhile.
    asked: Vec<usize>,
    /// Bytes that may be read at once, beyond the block that is next.
    read_bytes: usize,
    /// The queue of the wanted tasks; `None`: tasks of all queues are wanted.
    wanted: Option<QueueName>,
}

/// The thing that stands at a place of the line. Nothing of it comes before that place.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stands {
    /// The runs of a segment that have no cursors yet.
    Segment(u32),
    /// A block of this cursor that is not read yet.
    Unread(usize),
    /// A record of this cursor that was read: it stands exactly at that place.
    Read(usize),
}

/// A run, from some block on.
#[derive(Debug)]
struct Cursor {
    segment: u32,
    run: usize,
    file: Arc<str>,
    next_block: usize,
    /// The blocks that are being read.
    reading: Range<usize>,
    /// Records that are read and not passed yet.
    ahead: VecDeque<(Spot, Skimmed)>,
}

/// A place of a cursor, and how many of its records are surely not behind that place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    place: DueKey,
    index: usize,
    records: usize,
    /// How many live records and bytes the block has that begins there.
    unread: Option<(usize, usize)>,
}

/// The tools that make records of bytes, and tell which of the records are live.
pub(super) struct Tools<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) seeds: &'a Seeds,
    pub(super) names: &'a mut Names,
}

/// The first in line.
pub(super) enum First {
    /// The task that is first.
    Task(Arc<Task>),
    /// A task of another queue, at this place.
    Other(DueKey),
    /// The calls that have to be made before the first in line is known.
    Reads(Vec<Call>),
    Nobody,
}

impl Merge {
    /// The runs of all segments, behind `after` and up to `end`.
    pub(super) fn of_all(after: DueKey, end: DueKey, catalog: &Catalog, bounds: &Bounds) -> Self {
        let mut merge = Self::new(after, end, bounds);
        for (slot, segment) in catalog.segments.iter() {
            merge.add(slot, segment);
        }
        merge
    }

    /// The runs of the segments that a filter needs: the segments of dead tasks, or the others. The records of other queues are read only
    /// as far as their places.
    pub(super) fn of_filter(
        after: DueKey,
        end: DueKey,
        catalog: &Catalog,
        filter: &Filter,
        bounds: &Bounds,
    ) -> Self {
        let mut merge = Self { wanted: Some(filter.queue.clone()), ..Self::new(after, end, bounds) };
        for (slot, segment) in catalog.segments.iter() {
            if (segment.bucket.level == Level::Dead) == filter.dead {
                merge.add(slot, segment);
            }
        }
        merge
    }

    /// The runs of one segment.
    pub(super) fn of_one(slot: u32, catalog: &Catalog, bounds: &Bounds) -> Self {
        let end = DueKey { due_at: Timestamp::MAX, put_seq: Seq(u64::MAX) };
        let mut merge = Self::new(DueKey::START, end, bounds);
        merge.add(slot, catalog.segments.get(slot));
        merge
    }

    fn new(at: DueKey, end: DueKey, bounds: &Bounds) -> Self {
        let read_bytes = bounds.merge_read_bytes;
        let (line, cursors, asked) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { at, end, line, cursors, asked, read_bytes, wanted: None }
    }

    fn add(&mut self, slot: u32, segment: &Segment) {
        if let Some(first) = segment.first_behind(self.at).filter(|first| *first <= self.end) {
            self.line.push(Reverse((first, Stands::Segment(slot))));
        }
    }

    fn open(&mut self, slot: u32, catalog: &Catalog) {
        let segment = catalog.segments.get(slot);
        for (index, run) in segment.runs.iter().enumerate() {
            let next_block = run.first_block_behind(self.at);
            if run.blocks().get(next_block).is_some_and(|block| block.first <= self.end) {
                self.cursors.push(Cursor {
                    segment: slot,
                    run: index,
                    file: Arc::clone(&segment.name),
                    next_block,
                    reading: next_block..next_block,
                    ahead: VecDeque::new(),
                });
                self.stand(self.cursors.len() - 1, catalog);
            }
        }
    }

    /// Puts a cursor in line, unless it is at its end.
    fn stand(&mut self, index: usize, catalog: &Catalog) {
        if let Some((place, stands)) = self.cursors[index].head(index, self.at, catalog) {
            self.line.push(Reverse((place, stands)));
        }
    }

    /// Fetches the memory that tells which of the records that were read are still live, after other tasks were changed.
    pub(super) fn touch(&self, catalog: &Catalog) {
        let ahead = self.cursors.iter().flat_map(|cursor| &cursor.ahead);
        ahead.for_each(|(_, found)| catalog.touch_id(found.id()));
    }

    /// The last place that was passed.
    pub(super) fn at(&self) -> DueKey {
        self.at
    }

    /// The place up to which the merge may go.
    pub(super) fn end(&self) -> DueKey {
        self.end
    }

    /// Takes the bytes of the reads that the merge asked for. Returns the work in looks: how many records that were looked at would weigh
    /// as much.
    ///
    /// # Errors
    /// The damage: file, offset, and what is wrong.
    pub(super) fn take(&mut self, reads: Vec<Vec<u8>>, tools: &mut Tools<'_>) -> Result<usize, String> {
        let asked = std::mem::take(&mut self.asked);
        let mut looks = 0;
        for (index, bytes) in asked.into_iter().zip(reads) {
            looks += self.cursors[index].reading.len() * BLOCK_LOOKS;
            self.cursors[index].decode(&bytes, self.at, self.wanted.as_ref(), tools)?;
            self.stand(index, tools.catalog);
        }
        Ok(looks)
    }

    /// The next in line, up to `end`, if it comes before `rival`. A rival is a task that the caller has from elsewhere, at this place. If
    /// blocks have to be read first, the reads cover about the next `wanted` tasks.
    pub(super) fn first(
        &mut self,
        end: DueKey,
        rival: Option<DueKey>,
        wanted: usize,
        catalog: &Catalog,
    ) -> First {
        let last = rival.map_or(end, |rival| rival.min(end));
        while let Some(&Reverse((place, stands))) = self.line.peek()
            && place <= last
        {
            match stands {
                Stands::Segment(slot) => {
                    self.line.pop();
                    self.open(slot, catalog);
                }
                // Since the cursor stood in line, its head may have been passed, or all records of the block may have ended.
                Stands::Unread(index) | Stands::Read(index)
                    if self.cursors[index].head(index, self.at, catalog) != Some((place, stands)) =>
                {
                    self.line.pop();
                    self.stand(index, catalog);
                }
                Stands::Unread(_) => return First::Reads(self.read(end, wanted, catalog)),
                Stands::Read(index) => match self.cursors[index].live_head(catalog) {
                    Some(Skimmed::Task(task)) => return First::Task(task),
                    Some(Skimmed::Other { place, .. }) => return First::Other(place),
                    // The task ended, or moved, since its record was read.
                    None => {
                        self.line.pop();
                        self.stand(index, catalog);
                    }
                },
            }
        }
        First::Nobody
    }

    /// Asks for the blocks that the next `wanted` tasks up to `end` stand in, and for hardly more. Takes the blocks of all runs in the
    /// order of their first places, until their records and the records that were read before are as many as `wanted`.
    fn read(&mut self, end: DueKey, wanted: usize, catalog: &Catalog) -> Vec<Call> {
        let (mut next, mut closed) = (BinaryHeap::new(), Vec::new());
        for Reverse((place, stands)) in &self.line {
            match *stands {
                Stands::Segment(slot) => closed.push((*place, slot)),
                Stands::Unread(index) | Stands::Read(index) => {
                    let cursor = &mut self.cursors[index];
                    cursor.reading = cursor.next_block..cursor.next_block;
                    next.push(Reverse(cursor.bound(index, cursor.ahead.len(), catalog)));
                }
            }
        }
        closed.sort_unstable_by(|a, b| b.cmp(a));
        let (mut sure, mut bytes) = (0, 0);
        loop {
            let reach = next.peek().map_or(end, |Reverse(bound): &Reverse<Bound>| bound.place.min(end));
            while let Some((_, slot)) = closed.pop_if(|(place, _)| *place <= reach) {
                let opened = self.cursors.len();
                self.open(slot, catalog);
                let bounds = (opened..).zip(&self.cursors[opened..]);
                next.extend(bounds.map(|(index, cursor)| Reverse(cursor.bound(index, 0, catalog))));
            }
            let Some(Reverse(Bound { place, index, records, unread })) = next.pop() else { break };
            sure += records;
            bytes += unread.map_or(0, |(_, length)| length);
            let enough = sure >= wanted || bytes > self.read_bytes;
            // The block at the head of the line is read in any case, also if a record stands at the very place where it begins.
            if place > end || (enough && !self.asked.is_empty()) {
                break;
            }
            if let Some((block, _)) = unread {
                let cursor = &mut self.cursors[index];
                if cursor.reading.is_empty() {
                    self.asked.push(index);
                }
                cursor.reading.end += 1;
                next.push(Reverse(cursor.bound(index, block, catalog)));
            }
        }
        let Self { line, cursors, asked, .. } = self;
        line.retain(|Reverse((_, stands))| match *stands {
            Stands::Unread(index) | Stands::Read(index) => cursors[index].reading.is_empty(),
            Stands::Segment(slot) => closed.iter().any(|(_, closed)| *closed == slot),
        });
        asked.iter().map(|index| cursors[*index].call(catalog)).collect()
    }

    /// Goes on behind the task at this place.
    pub(super) fn pass(&mut self, place: DueKey) {
        self.at = place;
    }
}

impl Cursor {
    /// The first block or record that the cursor has behind `after`, and its place; `None` at the cursor's end.
    fn head(&mut self, index: usize, after: DueKey, catalog: &Catalog) -> Option<(DueKey, Stands)> {
        while let Some((_, found)) = self.ahead.front() {
            let place = found.place();
            if place > after {
                return Some((place, Stands::Read(index)));
            }
            self.ahead.pop_front();
        }
        // Blocks without a live record are passed over unread: deleted records cost nothing.
        let blocks = catalog.segments.get(self.segment).runs[self.run].blocks();
        while blocks.get(self.next_block).is_some_and(|block| block.records == 0) {
            self.next_block += 1;
        }
        Some((blocks.get(self.next_block)?.first, Stands::Unread(index)))
    }

    /// The first task that was read. If it is not live any more, it is passed over, and the answer is `None`.
    fn live_head(&mut self, catalog: &Catalog) -> Option<Skimmed> {
        let (spot, found) = self.ahead.front()?;
        if catalog.is_live(found.id(), *spot) {
            return Some(found.clone());
        }
        self.ahead.pop_front();
        None
    }

    /// Which place bounds the `records` of the cursor that are known and not passed: the first place of the block behind those that are
    /// read or being read, or the end of the run.
    fn bound(&self, index: usize, records: usize, catalog: &Catalog) -> Bound {
        let run = &catalog.segments.get(self.segment).runs[self.run];
        // A block without a live record is not read on the way to others. It is passed over when its turn comes.
        match run.blocks().get(self.reading.end) {
            Some(block) if block.records > 0 => {
                let (_, length) = run.range_of(self.reading.end..self.reading.end + 1);
                let unread = Some((block.records as usize, length));
                Bound { place: block.first, index, records, unread }
            }
            _ => Bound { place: run.last, index, records, unread: None },
        }
    }

    /// Reads the blocks that were chosen.
    fn call(&self, catalog: &Catalog) -> Call {
        let run = &catalog.segments.get(self.segment).runs[self.run];
        let (offset, bytes) = run.range_of(self.reading.clone());
        Call::Read { file: Arc::clone(&self.file), offset, bytes }
    }

    /// Makes records of the blocks that were read.
    fn decode(
        &mut self,
        bytes: &[u8],
        after: DueKey,
        wanted: Option<&QueueName>,
        tools: &mut Tools<'_>,
    ) -> Result<(), String> {
        let catalog = tools.catalog;
        let segment = catalog.segments.get(self.segment);
        let place = segment.runs[self.run].range_of(self.reading.clone());
        read_blocks(segment, place, bytes, wanted, tools, |offset, found| {
            if found.place() > after {
                self.ahead.push_back((Spot { segment: self.segment, offset }, found));
            }
        })?;
        // The entries of all records are fetched first, so that they wait for memory together.
        self.ahead.iter().for_each(|(_, found)| catalog.touch_id(found.id()));
        self.ahead.retain(|(spot, found)| catalog.is_live(found.id(), *spot));
        self.next_block = self.reading.end;
        Ok(())
    }
}

/// Reads the records of some blocks. `(start, length)` says where the blocks begin and how many bytes they have. Tasks of queues that are
/// not wanted are skimmed.
///
/// # Errors
/// The damage: file, offset, and what is wrong.
pub(super) fn read_blocks(
    segment: &Segment,
    (start, length): (u64, usize),
    bytes: &[u8],
    wanted: Option<&QueueName>,
    tools: &mut Tools<'_>,
    mut each: impl FnMut(u64, Skimmed),
) -> Result<(), String> {
    if bytes.len() < length {
        return Err(damage(&segment.name, start + bytes.len() as u64, "the file ends in a block"));
    }
    let seed = tools.seeds.of(Use::Segment(segment.generation));
    let mut from = 0;
    while from < length {
        let offset = start + from as u64;
        let read = skim_record(&bytes[from..], offset, seed, tools.names, wanted);
        let (skimmed, bytes) = read.map_err(|bad| match bad {
            BadRecord::Short(_) => damage(&segment.name, offset, "a record reaches beyond its block"),
            BadRecord::Damaged(what) => damage(&segment.name, offset, &what),
        })?;
        each(offset, skimmed);
        from += bytes;
    }
    Ok(())
}
