//! The bytes that a checkpoint writes into segments.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tickwheel_engine::{Task, Timestamp};

use super::Context;
use crate::catalog::{Catalog, Segment};
use crate::checksum::Use;
use crate::io::Call;
use crate::layout::HEADER_BYTES;
use crate::segment::{Bucket, RunWriter, SegmentHeader, Written, put_tombstones};

/// The runs and tombstones that a checkpoint adds, and the segments that get them.
#[derive(Debug)]
pub(super) struct Output {
    /// The wall clock at the checkpoint's start, by which a task belongs to a bucket.
    now: Timestamp,
    /// The slots of the segments whose records are copied to others. No record is added to these segments.
    sources: Vec<u32>,
    touched: BTreeMap<u32, Touched>,
    open: Option<Open>,
    /// Runs that the catalog has not taken over yet, oldest first.
    pub(super) written: VecDeque<WrittenRun>,
}

/// Where the records of a run come from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The records are in the memtable.
    Memory,
    /// The records are copies of records of the segment in this slot.
    Segment(u32),
}

/// A run that is complete: all calls that write its bytes were given out.
#[derive(Debug)]
pub(super) struct WrittenRun {
    pub(super) segment: u32,
    pub(super) origin: Origin,
    pub(super) written: Written,
}

/// The run that is being written.
#[derive(Debug)]
struct Open {
    segment: u32,
    bucket: Bucket,
    origin: Origin,
    writer: RunWriter,
}

/// The changes that a checkpoint made to a segment.
#[derive(Debug)]
pub(super) struct Touched {
    /// Whether the checkpoint made the segment.
    new: bool,
    /// Whether the file has its header, or the calls that make the file were given out.
    begun: bool,
    /// The offset at which the segment will end (bytes).
    pub(super) len: u64,
    runs: usize,
    /// How many records the checkpoint has added to the segment.
    pub(super) records: u64,
    /// The tombstones that the checkpoint writes. If the checkpoint is given up, they are still to be written.
    tombstones: Vec<u64>,
}

impl Output {
    pub(super) fn new(now: Timestamp, sources: Vec<u32>) -> Self {
        Self { now, sources, touched: BTreeMap::new(), open: None, written: VecDeque::new() }
    }

    pub(super) fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// Returns the segments in use that are not among the sources.
    pub(super) fn kept_segments<'a>(
        &'a self,
        catalog: &'a Catalog,
    ) -> impl Iterator<Item = (u32, &'a Segment)> {
        catalog.segments.iter().filter(|(slot, _)| !self.sources.contains(slot))
    }

    pub(super) fn touched(&self, segment: u32) -> Option<&Touched> {
        self.touched.get(&segment)
    }

    pub(super) fn has_new_files(&self) -> bool {
        self.touched.values().any(|touched| touched.new)
    }

    /// Adds a task to the run of its bucket. Ends the open run before if the task does not belong to it, or if that run is long enough. The
    /// tasks of one bucket and origin have to come in the order of their due keys. Returns how many bytes the task took. Bytes that the end
    /// of another run takes are not counted.
    pub(super) fn put(
        &mut self,
        context: &mut Context<'_>,
        task: &Task,
        origin: Origin,
        calls: &mut Vec<Call>,
    ) -> usize {
        let bucket = Bucket::of(task, self.now);
        let fits = self.open.as_ref().is_some_and(|open| {
            open.bucket == bucket
                && open.origin == origin
                && open.writer.len() < context.options.segment_bytes
        });
        if !fits {
            self.close(context, calls);
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(open_run(&mut self.touched, &self.sources, context, bucket, origin)),
        };
        let before = open.writer.len();
        open.writer.push(task, context.catalog.key_of(task));
        usize::try_from(open.writer.len() - before).expect("a task fits the memory's addresses")
    }

    /// Adds the calls that write the bytes of the open run that are ready.
    pub(super) fn write_part(&mut self, context: &Context<'_>, calls: &mut Vec<Call>) {
        let Some(open) = self.open.as_mut().filter(|open| open.writer.waiting() > 0) else { return };
        begin_file(&mut self.touched, context, open.segment, calls);
        let file = Arc::clone(&context.catalog.segments.get(open.segment).name);
        let (offset, bytes) = open.writer.take();
        calls.push(Call::Write { file: Arc::clone(&file), offset, bytes });
        // The sync of a part is not needed for safety, because `close` syncs the file again. But without it, `close` would have many bytes
        // to sync, and would hold up the other work of the disk.
        calls.push(Call::Sync(file));
    }

    /// Ends the open run, if there is one: adds the calls that write its last bytes.
    pub(super) fn close(&mut self, context: &Context<'_>, calls: &mut Vec<Call>) {
        let Some(Open { segment, origin, writer, .. }) = self.open.take() else { return };
        begin_file(&mut self.touched, context, segment, calls);
        let file = Arc::clone(&context.catalog.segments.get(segment).name);
        let (offset, bytes, written) = writer.finish();
        calls.push(Call::Write { file: Arc::clone(&file), offset, bytes });
        calls.push(Call::Sync(file));
        if let Some(touched) = self.touched.get_mut(&segment) {
            touched.len = written.end;
            touched.runs += 1;
            touched.records += written.entries.len() as u64;
        }
        self.written.push_back(WrittenRun { segment, origin, written });
    }

    /// Adds the calls that write a segment's tombstones, if it has any that are not written.
    pub(super) fn put_tombstones(&mut self, context: &mut Context<'_>, slot: u32, calls: &mut Vec<Call>) {
        let segment = context.catalog.segments.get_mut(slot);
        if segment.tombstones.is_empty() {
            return;
        }
        let touched = self.touched.entry(slot).or_insert_with(|| Touched::of(segment));
        touched.tombstones = std::mem::take(&mut segment.tombstones);
        let mut bytes = Vec::new();
        let seed = context.seeds.of(Use::Segment(segment.generation));
        put_tombstones(&mut bytes, &mut touched.tombstones, touched.len, seed);
        let offset = touched.len;
        touched.len += bytes.len() as u64;
        calls.push(Call::Write { file: Arc::clone(&segment.name), offset, bytes });
        calls.push(Call::Sync(Arc::clone(&segment.name)));
    }

    /// Takes in that the checkpoint is durable: gives the catalog's segments their new lengths.
    pub(super) fn accept(&self, catalog: &mut Catalog) {
        for (slot, touched) in &self.touched {
            catalog.segments.get_mut(*slot).len = touched.len;
        }
    }

    /// Takes in that the checkpoint is given up: puts the catalog's segments back as they were. Returns the calls that remove the written
    /// bytes. Each of these calls has to be made in a job of its own.
    pub(super) fn undo(self, catalog: &mut Catalog) -> Vec<Call> {
        let mut calls = Vec::new();
        for (slot, touched) in self.touched {
            let segment = catalog.segments.get_mut(slot);
            segment.tombstones.extend(touched.tombstones);
            let name = Arc::clone(&segment.name);
            if !touched.new {
                calls.push(Call::SetLen { file: name, bytes: segment.len });
                continue;
            }
            if touched.begun {
                calls.push(Call::Remove(name));
            }
            catalog.segments.remove(slot);
        }
        calls
    }
}

impl Touched {
    fn of(segment: &Segment) -> Self {
        Self {
            new: segment.len == 0,
            begun: segment.len > 0,
            len: segment.len.max(HEADER_BYTES as u64),
            runs: segment.runs.len(),
            records: 0,
            tombstones: Vec::new(),
        }
    }
}

/// Opens a run in a segment of the bucket that has space for another run. Copied records go to other segments than records of the memtable.
/// If there is no such segment, adds a new one.
fn open_run(
    touched: &mut BTreeMap<u32, Touched>,
    sources: &[u32],
    context: &mut Context<'_>,
    bucket: Bucket,
    origin: Origin,
) -> Open {
    let moved = origin != Origin::Memory;
    let takes = |slot: &u32, segment: &Segment| {
        let (len, runs) = touched
            .get(slot)
            .map_or((segment.len, segment.runs.len()), |touched| (touched.len, touched.runs));
        segment.bucket == bucket
            && segment.moved == moved
            && len < context.options.segment_bytes
            && runs < context.options.bounds.segment_runs
            && !sources.contains(slot)
    };
    let known = context.catalog.segments.iter().find(|(slot, segment)| takes(slot, segment));
    let segment = match known.map(|(slot, _)| slot) {
        Some(slot) => slot,
        None => context.catalog.segments.add_new(bucket, moved),
    };
    let found = context.catalog.segments.get(segment);
    let touched = touched.entry(segment).or_insert_with(|| Touched::of(found));
    let seed = context.seeds.of(Use::Segment(found.generation));
    Open { segment, bucket, origin, writer: RunWriter::new(seed, touched.len, context.options.block_bytes) }
}

fn begin_file(touched: &mut BTreeMap<u32, Touched>, context: &Context<'_>, slot: u32, calls: &mut Vec<Call>) {
    let Some(touched) = touched.get_mut(&slot).filter(|touched| !touched.begun) else { return };
    touched.begun = true;
    let segment = context.catalog.segments.get(slot);
    let header = SegmentHeader { generation: segment.generation, bucket: segment.bucket };
    calls.push(Call::Create(Arc::clone(&segment.name)));
    let bytes = header.to_bytes(context.seeds).to_vec();
    calls.push(Call::Write { file: Arc::clone(&segment.name), offset: 0, bytes });
}
