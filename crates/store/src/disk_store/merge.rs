//! The merge of runs of segments: gives the live records of the runs in the order of their due keys.

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

/// Reading one block counts as much work as looking at this many records.
const BLOCK_LOOKS: usize = 16;

/// A merge of runs, and how far it has come. The merge makes no calls itself: it returns the reads that it needs, and is given their bytes.
/// A step costs the logarithm of the number of runs that the merge has reached. The choice of what to read costs that logarithm for each of
/// these runs. A segment that begins further on is only one entry in `line`.
#[derive(Debug)]
pub(super) struct Merge {
    /// The due key of the last task that was passed. At first, the due key after which the merge begins.
    at: DueKey,
    /// The last due key that the merge may reach. A run that begins after this due key gets no cursor.
    end: DueKey,
    /// The cursors and segments that may have the next record, each with its least due key. The least due key comes first.
    line: BinaryHeap<Reverse<(DueKey, Stands)>>,
    cursors: Vec<Cursor>,
    /// The indexes of the cursors that the reads under way are for, in the order of the reads. These cursors are not in `line` meanwhile.
    asked: Vec<usize>,
    /// The most bytes of blocks that are read at once. A single longer block is read alone.
    read_bytes: usize,
    /// The queue of the wanted tasks; `None`: tasks of all queues are wanted.
    wanted: Option<QueueName>,
}

/// The source of an entry of `line`. The source has no live record that is still to be passed before the due key of the entry.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stands {
    /// The segment in this slot, whose runs have no cursors yet.
    Segment(u32),
    /// The cursor with this index. Its next block is not read yet.
    Unread(usize),
    /// The cursor with this index. Its next record was read, and has exactly the due key of the entry.
    Read(usize),
}

/// A run, and how far the merge has come in it.
#[derive(Debug)]
struct Cursor {
    segment: u32,
    run: usize,
    file: Arc<str>,
    next_block: usize,
    /// The indexes of the blocks that are being read.
    reading: Range<usize>,
    /// Records that were read and not passed yet, each with its offset in the segment.
    ahead: VecDeque<(Spot, Skimmed)>,
}

/// A due key, and how many records of a cursor certainly do not come after it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    place: DueKey,
    index: usize,
    records: usize,
    /// The number of live records and the length (bytes) of the unread block that begins at `place`; `None` if no such block is to be read.
    unread: Option<(usize, usize)>,
}

/// The parts of the store that turn bytes into records, and tell which records are live.
pub(super) struct Tools<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) seeds: &'a Seeds,
    pub(super) names: &'a mut Names,
}

/// The next record of a merge, or the reads that have to be made to find it. `Nobody`: no record is left up to the end that the caller
/// gave.
pub(super) enum First {
    /// The next task.
    Task(Arc<Task>),
    /// The next task has this due key, and is in a queue that is not wanted.
    Other(DueKey),
    /// The calls that have to be made to find the next record.
    Reads(Vec<Call>),
    Nobody,
}

impl Merge {
    /// Begins a merge of the runs of all segments, after `after` and up to `end`.
    pub(super) fn of_all(after: DueKey, end: DueKey, catalog: &Catalog, bounds: &Bounds) -> Self {
        let mut merge = Self::new(after, end, bounds);
        for (slot, segment) in catalog.segments.iter() {
            merge.add(slot, segment);
        }
        merge
    }

    /// Begins a merge of the runs that a filter needs, after `after` and up to `end`: those in the segments of dead tasks, or those in all
    /// other segments. Of a record of another queue, only the head is decoded.
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

    /// Begins a merge of the runs of one segment.
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

    /// Puts a cursor into the line at its next block or record. A cursor at the end of its run is left out.
    fn stand(&mut self, index: usize, catalog: &Catalog) {
        if let Some((place, stands)) = self.cursors[index].head(index, self.at, catalog) {
            self.line.push(Reverse((place, stands)));
        }
    }

    /// Reads the catalog entries of the records that wait in the cursors, so that they are in the processor's cache. Other work may have
    /// displaced these entries since the records were read.
    pub(super) fn touch(&self, catalog: &Catalog) {
        let ahead = self.cursors.iter().flat_map(|cursor| &cursor.ahead);
        ahead.for_each(|(_, found)| catalog.touch_id(found.id()));
    }

    /// Returns the due key of the last task that was passed. At first, the due key after which the merge begins.
    pub(super) fn at(&self) -> DueKey {
        self.at
    }

    /// Returns the last due key that the merge may reach.
    pub(super) fn end(&self) -> DueKey {
        self.end
    }

    /// Takes the bytes of the reads that the merge asked for. Returns the work as a number of looked-at records: [`BLOCK_LOOKS`] for each
    /// block.
    ///
    /// # Errors
    /// If a record is damaged. The text names the file, the offset and the damage.
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

    /// Returns the next record up to `end`, if it does not come after `rival`. `rival` is the due key of a task that the caller has from
    /// the memtable. If blocks have to be read first, returns reads that cover about the next `wanted` tasks. Returns `Nobody` if no such
    /// record is left.
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
                // Since the cursor was put into the line, its next record may have been passed, or no record of its next block may be live
                // any more.
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
                    // The task ended or was changed or moved after its record was read.
                    None => {
                        self.line.pop();
                        self.stand(index, catalog);
                    }
                },
            }
        }
        First::Nobody
    }

    /// Chooses the blocks that have the next `wanted` tasks up to `end`, and few blocks more. Returns the reads. Goes through the blocks of
    /// the runs in the order of their first due keys. Ends when the chosen blocks have `wanted` records, together with the records that
    /// were read before, or when the next block would exceed `read_bytes`.
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
            // At least one block is read, even if enough records were read before: the merge cannot go on without the block that is next.
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

    /// Takes in that the task with this due key was passed. The merge goes on after it.
    pub(super) fn pass(&mut self, place: DueKey) {
        self.at = place;
    }
}

impl Cursor {
    /// Returns the next block or record of the cursor, and its due key; `None` at the end of the run. Drops the records up to `after`, and
    /// skips blocks without a live record.
    fn head(&mut self, index: usize, after: DueKey, catalog: &Catalog) -> Option<(DueKey, Stands)> {
        while let Some((_, found)) = self.ahead.front() {
            let place = found.place();
            if place > after {
                return Some((place, Stands::Read(index)));
            }
            self.ahead.pop_front();
        }
        // A block without a live record is skipped and never read.
        let blocks = catalog.segments.get(self.segment).runs[self.run].blocks();
        while blocks.get(self.next_block).is_some_and(|block| block.records == 0) {
            self.next_block += 1;
        }
        Some((blocks.get(self.next_block)?.first, Stands::Unread(index)))
    }

    /// Returns the next record that was read. If the record is not live any more, drops it and returns `None`.
    fn live_head(&mut self, catalog: &Catalog) -> Option<Skimmed> {
        let (spot, found) = self.ahead.front()?;
        if catalog.is_live(found.id(), *spot) {
            return Some(found.clone());
        }
        self.ahead.pop_front();
        None
    }

    /// Returns the due key that the next `records` records of the cursor certainly do not come after. This is the first due key of the next
    /// block that is neither read nor chosen, or the last due key of the run.
    fn bound(&self, index: usize, records: usize, catalog: &Catalog) -> Bound {
        let run = &catalog.segments.get(self.segment).runs[self.run];
        // If the next block has no live record, no further block of this run is chosen now. `head` skips the block later.
        match run.blocks().get(self.reading.end) {
            Some(block) if block.records > 0 => {
                let (_, length) = run.range_of(self.reading.end..self.reading.end + 1);
                let unread = Some((block.records as usize, length));
                Bound { place: block.first, index, records, unread }
            }
            _ => Bound { place: run.last, index, records, unread: None },
        }
    }

    /// Returns the call that reads the chosen blocks.
    fn call(&self, catalog: &Catalog) -> Call {
        let run = &catalog.segments.get(self.segment).runs[self.run];
        let (offset, bytes) = run.range_of(self.reading.clone());
        Call::Read { file: Arc::clone(&self.file), offset, bytes }
    }

    /// Decodes the blocks that were read. Keeps the live records that come after `after`.
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
        // The catalog entries of all records are touched first, so that the processor fetches them at the same time.
        self.ahead.iter().for_each(|(_, found)| catalog.touch_id(found.id()));
        self.ahead.retain(|(spot, found)| catalog.is_live(found.id(), *spot));
        self.next_block = self.reading.end;
        Ok(())
    }
}

/// Decodes the records of some blocks, and hands each one to `each` with its offset. `(start, length)` are the offset of the first block
/// and the length of all blocks (bytes). If a queue is `wanted`, only the head is decoded of records of other queues.
///
/// # Errors
/// If a record is damaged. The text names the file, the offset and the damage.
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
