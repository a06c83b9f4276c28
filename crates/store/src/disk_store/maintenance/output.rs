//! The bytes that a checkpoint writes into segments.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tickwheel_engine::{Task, Timestamp};

use super::context::Context;
use crate::catalog::{Catalog, Segment};
use crate::checksum::Use;
use crate::io::Call;
use crate::layout::HEADER_BYTES;
use crate::segment::{Bucket, RunWriter, SegmentHeader, Written, put_tombstones};

/// The runs and tombstones that a checkpoint adds, and the segments that get them.
#[derive(Debug)]
pub(super) struct Output {
    /// The wall clock at the checkpoint's start: it decides which bucket a task is in.
    now: Timestamp,
    /// Segments whose records are copied to others. They must not grow meanwhile.
    sources: Vec<u32>,
    touched: BTreeMap<u32, Touched>,
    open: Option<Open>,
    /// Runs that memory has not taken over yet, oldest first.
    pub(super) written: VecDeque<WrittenRun>,
}

/// Where the records of a run come from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The records are in the memtable.
    Memory,
    /// The records are copies of records of this segment.
    Segment(u32),
}

/// A run whose bytes are written.
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
    /// Whether the segment's header was handed out.
    begun: bool,
    /// Where the segment will end.
    pub(super) len: u64,
    runs: usize,
    /// How many records are added to the segment.
    pub(super) records: u64,
    /// Tombstones that count as unwritten again if the checkpoint is given up.
    tombstones: Vec<u64>,
}

impl Output {
    pub(super) fn new(now: Timestamp, sources: Vec<u32>) -> Self {
        Self { now, sources, touched: BTreeMap::new(), open: None, written: VecDeque::new() }
    }

    pub(super) fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// Segments in use that are no sources.
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

    /// Adds a task to the run of its bucket. Tasks come in the order of their places. Returns how many bytes the task took, without the
    /// bytes of runs that it ended.
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

    /// Hands out the bytes of the open run that are ready.
    pub(super) fn write_part(&mut self, context: &Context<'_>, calls: &mut Vec<Call>) {
        let Some(open) = self.open.as_mut().filter(|open| open.writer.waiting() > 0) else { return };
        begin_file(&mut self.touched, context, open.segment, calls);
        let file = Arc::clone(&context.catalog.segments.get(open.segment).name);
        let (offset, bytes) = open.writer.take();
        calls.push(Call::Write { file: Arc::clone(&file), offset, bytes });
        // This sync is not for safety: bytes that are left to the last sync would hold up the disk.
        calls.push(Call::Sync(file));
    }

    /// Ends the open run.
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

    /// Adds a segment's tombstones, if it has any.
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

    /// The checkpoint is durable: from now on the written bytes count.
    pub(super) fn accept(&self, catalog: &mut Catalog) {
        for (slot, touched) in &self.touched {
            catalog.segments.get_mut(*slot).len = touched.len;
        }
    }

    /// The checkpoint is given up: nothing of it counts. Returns the calls that remove the written bytes. Each is to be made separately.
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

/// Opens a run in a segment of the bucket that has space for another run, or in a new segment.
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
