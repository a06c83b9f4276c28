//! A checkpoint on its way: what is fresh goes into segments, then what died in them is written down, then the list of segments
//! gets its name; only then memory lets go of what it had of it, and the log of what is in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Place, Timestamp};

use super::store::DiskStore;
use crate::catalog::{Catalog, Segment};
use crate::checkpoint::{Listed, LogEnd, Source, Start, Writer};
use crate::checksum::{Seeds, Use};
use crate::disk::Disk;
use crate::index::Spot;
use crate::io::{Call, Io};
use crate::layout::{HEADER_BYTES, SHARD};
use crate::segment::{Bucket, Entry, RunWriter, SegmentHeader, Written, put_tombstones};

/// Tasks that memory lets go of in one step: about a millisecond.
const SETTLED_AT_ONCE: usize = 4_096;

/// A segment takes no more runs once it has so many: each has to be read for itself.
const RUNS_MAX: usize = 64;

/// Runs of one step that are synced: each is a file of its own, most of the time.
const RUNS_AT_ONCE: usize = 4;

/// A checkpoint that is being made.
#[derive(Debug)]
pub(super) struct Checkpoint {
    start: Start,
    number: u64,
    /// The wall clock at its start: it decides which bucket a task is in.
    now: Timestamp,
    /// Bytes of log that count again if it is given up.
    log_bytes: u64,
    stage: Stage,
    /// Segments that are written to, by their slots.
    touched: BTreeMap<u32, Touched>,
    /// Runs that memory has not taken over yet.
    written: Vec<(u32, Written)>,
    /// Segments without a live record: they are not listed, and removed in the end.
    dropped: Vec<u32>,
}

#[derive(Debug)]
enum Stage {
    /// Fresh tasks behind this place are still to be written.
    Flush {
        behind: Place,
        open: Option<Open>,
    },
    /// The tombstones of these segments are still to be written.
    Tombstones(Vec<u32>),
    /// The names of new files are to be made durable.
    Names,
    /// The list is being written.
    List(Writer),
    /// It is durable. Memory takes it over, from this entry of the last run on.
    Settle {
        entry: usize,
    },
    Done,
}

/// The run that is being written.
#[derive(Debug)]
struct Open {
    segment: u32,
    writer: RunWriter,
}

/// What the checkpoint did to a segment.
#[derive(Debug)]
struct Touched {
    /// The checkpoint made it.
    new: bool,
    /// Whether its header was handed out.
    begun: bool,
    /// Where it will end.
    len: u64,
    /// Records it will have more.
    records: u64,
    /// Tombstones that count as unwritten again if it is given up.
    tombstones: Vec<u64>,
}

/// What the checkpoint came to with its last step.
pub(super) enum Came {
    /// There is more to do.
    Further,
    /// It is durable: the log up to this frame can go, and so can the segments in these slots and the checkpoint before it.
    Durable { frame: u64, dropped: Vec<u32>, name: Arc<str> },
    /// Memory has taken it over.
    Settled,
}

impl Checkpoint {
    pub(super) fn new(start: Start, number: u64, now: Timestamp, log_bytes: u64) -> Self {
        Self {
            start,
            number,
            now,
            log_bytes,
            stage: Stage::Flush { behind: Place::START, open: None },
            touched: BTreeMap::new(),
            written: Vec::new(),
            dropped: Vec::new(),
        }
    }

    pub(super) fn start_frame(&self) -> u64 {
        self.start.frame
    }

    /// Whether it waits for nothing but memory.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.stage, Stage::Settle { .. })
    }
}

/// What a step of a checkpoint needs of its store.
pub(super) struct Room<'a> {
    pub(super) catalog: &'a mut Catalog,
    pub(super) seeds: &'a Seeds,
    pub(super) log: LogEnd,
    /// The last generation of a segment that was given out.
    pub(super) generation: &'a mut u64,
    pub(super) step_bytes: usize,
    pub(super) block_bytes: u64,
    pub(super) segment_bytes: u64,
}

impl Checkpoint {
    /// The next calls. Each step's calls are to be made before the next step is asked for.
    pub(super) fn step(&mut self, room: &mut Room<'_>) -> Vec<Call> {
        let mut calls = Vec::new();
        while calls.is_empty() {
            match &mut self.stage {
                Stage::Flush { .. } => self.flush(room, &mut calls),
                Stage::Tombstones(_) => self.write_tombstones(room, &mut calls),
                Stage::Names => {
                    let new = self.touched.values().any(|touched| touched.new);
                    if new && !crate::planted::is("no-dir-sync") {
                        calls.push(Call::SyncDir(SHARD.into()));
                    }
                    let list = self.list(room.catalog);
                    self.stage = Stage::List(Writer::new(self.start, self.number, list, room.seeds));
                }
                Stage::List(writer) => {
                    let source = Source {
                        histories: room.catalog.histories(),
                        counters: room.catalog.counters(),
                        log: room.log,
                    };
                    calls = writer.step(source, room.seeds, room.step_bytes);
                }
                Stage::Settle { .. } | Stage::Done => return calls,
            }
        }
        calls
    }

    fn flush(&mut self, room: &mut Room<'_>, calls: &mut Vec<Call>) {
        let Stage::Flush { behind, open } = &mut self.stage else { return };
        let (mut behind, mut open) = (*behind, open.take());
        let (mut bytes, mut runs) = (0, 0);
        while bytes < room.step_bytes && runs < RUNS_AT_ONCE {
            let next = room.catalog.fresh.behind(behind).find(|task| task.seq <= self.start.seq).cloned();
            let bucket = next.as_ref().map(|task| Bucket::of(task.due_at, self.now));
            let full = |open: &Open| open.writer.len() >= room.segment_bytes;
            let fits =
                |open: &Open| Some(room.catalog.segments.get(open.segment).bucket) == bucket && !full(open);
            if let Some(done) = open.take_if(|open| !fits(open)) {
                self.finish_run(room, done, calls);
                runs += 1;
                continue;
            }
            let Some(task) = next else {
                let slots = room.catalog.segments.iter().map(|(slot, _)| slot).collect();
                self.stage = Stage::Tombstones(slots);
                return;
            };
            let run = match &mut open {
                Some(open) => open,
                none => none.insert(self.open_run(room, Bucket::of(task.due_at, self.now))),
            };
            behind = Place::of(&task);
            let before = run.writer.len();
            run.writer.push(&task, room.catalog.key_of(&task));
            bytes += usize::try_from(run.writer.len() - before).unwrap_or(usize::MAX);
        }
        if let Some(open) = &mut open {
            self.write_part(room, open, calls);
        }
        self.stage = Stage::Flush { behind, open };
    }

    /// A segment for the bucket that takes another run, or a new one.
    fn open_run(&mut self, room: &mut Room<'_>, bucket: Bucket) -> Open {
        let takes = |segment: &Segment| {
            let space = segment.len < room.segment_bytes && segment.runs.len() < RUNS_MAX;
            segment.bucket == bucket && space && !segment.moved
        };
        let known = room.catalog.segments.iter().find(|(slot, segment)| {
            // One that this checkpoint has filled is full, though memory has not taken it over.
            let filled = self.touched.get(slot).is_some_and(|touched| touched.len >= room.segment_bytes);
            takes(segment) && !filled
        });
        let segment = match known.map(|(slot, _)| slot) {
            Some(slot) => slot,
            None => {
                *room.generation += 1;
                room.catalog.segments.add(Segment::new(*room.generation, bucket, false))
            }
        };
        let found = room.catalog.segments.get(segment);
        let touched = self.touched.entry(segment).or_insert_with(|| Touched {
            new: found.len == 0,
            begun: found.len > 0,
            len: found.len.max(HEADER_BYTES as u64),
            records: 0,
            tombstones: Vec::new(),
        });
        let seed = room.seeds.of(Use::Segment(found.generation));
        Open { segment, writer: RunWriter::new(seed, touched.len, room.block_bytes) }
    }

    fn write_part(&mut self, room: &Room<'_>, open: &mut Open, calls: &mut Vec<Call>) {
        self.begin_file(room, open.segment, calls);
        if open.writer.waiting() > 0 {
            let file = Arc::clone(&room.catalog.segments.get(open.segment).name);
            let (offset, bytes) = open.writer.take();
            calls.push(Call::Write { file: Arc::clone(&file), offset, bytes });
            // Not for safety: what is left to the last sync would hold up the disk.
            calls.push(Call::Sync(file));
        }
    }

    fn begin_file(&mut self, room: &Room<'_>, slot: u32, calls: &mut Vec<Call>) {
        let Some(touched) = self.touched.get_mut(&slot).filter(|touched| !touched.begun) else { return };
        touched.begun = true;
        let segment = room.catalog.segments.get(slot);
        let header = SegmentHeader { generation: segment.generation, bucket: segment.bucket };
        calls.push(Call::Create(Arc::clone(&segment.name)));
        let bytes = header.to_bytes(room.seeds).to_vec();
        calls.push(Call::Write { file: Arc::clone(&segment.name), offset: 0, bytes });
    }

    fn finish_run(&mut self, room: &Room<'_>, open: Open, calls: &mut Vec<Call>) {
        self.begin_file(room, open.segment, calls);
        let file = Arc::clone(&room.catalog.segments.get(open.segment).name);
        let (offset, bytes, written) = open.writer.finish();
        calls.push(Call::Write { file: Arc::clone(&file), offset, bytes });
        calls.push(Call::Sync(file));
        if let Some(touched) = self.touched.get_mut(&open.segment) {
            touched.len = written.end;
            touched.records += written.entries.len() as u64;
        }
        self.written.push((open.segment, written));
    }

    /// One segment's tombstones, if it has any; a segment without a live record needs none, for it goes.
    fn write_tombstones(&mut self, room: &mut Room<'_>, calls: &mut Vec<Call>) {
        let Stage::Tombstones(slots) = &mut self.stage else { return };
        let Some(slot) = slots.pop() else {
            self.stage = Stage::Names;
            return;
        };
        let segment = room.catalog.segments.get_mut(slot);
        let gets_more = self.touched.get(&slot).is_some_and(|touched| touched.records > 0);
        if segment.live == 0 && !gets_more {
            self.dropped.push(slot);
            return;
        }
        if segment.tombstones.is_empty() {
            return;
        }
        let touched = self.touched.entry(slot).or_insert_with(|| Touched {
            new: false,
            begun: true,
            len: segment.len,
            records: 0,
            tombstones: Vec::new(),
        });
        touched.tombstones = std::mem::take(&mut segment.tombstones);
        let mut bytes = Vec::new();
        let seed = room.seeds.of(Use::Segment(segment.generation));
        put_tombstones(&mut bytes, &mut touched.tombstones, touched.len, seed);
        let offset = touched.len;
        touched.len += bytes.len() as u64;
        calls.push(Call::Write { file: Arc::clone(&segment.name), offset, bytes });
        calls.push(Call::Sync(Arc::clone(&segment.name)));
    }

    fn list(&self, catalog: &Catalog) -> Vec<Listed> {
        let listed = catalog.segments.iter().filter(|(slot, _)| !self.dropped.contains(slot));
        listed
            .map(|(slot, segment)| {
                let touched = self.touched.get(&slot);
                Listed {
                    generation: segment.generation,
                    bucket: segment.bucket,
                    moved: segment.moved,
                    len: touched.map_or(segment.len, |touched| touched.len),
                    records: segment.records + touched.map_or(0, |touched| touched.records),
                }
            })
            .collect()
    }

    /// The last step's calls were made.
    pub(super) fn step_done(&mut self, catalog: &mut Catalog) -> Came {
        let Stage::List(writer) = &self.stage else { return Came::Further };
        if !writer.is_done() {
            return Came::Further;
        }
        for (slot, touched) in &self.touched {
            let segment = catalog.segments.get_mut(*slot);
            segment.len = touched.len;
        }
        let name = Arc::clone(writer.name());
        self.stage = Stage::Settle { entry: 0 };
        Came::Durable { frame: self.start.frame, dropped: std::mem::take(&mut self.dropped), name }
    }

    /// Whether its last step gives it its name. If that fails, nobody knows which checkpoint stands.
    pub(super) fn is_named(&self) -> bool {
        matches!(&self.stage, Stage::List(writer) if writer.is_done())
    }

    /// Memory takes over what was written, a part at a time. No page is being read meanwhile.
    pub(super) fn settle(&mut self, catalog: &mut Catalog) -> Came {
        let Stage::Settle { entry } = &mut self.stage else { return Came::Further };
        let Some((slot, written)) = self.written.last_mut() else {
            self.stage = Stage::Done;
            return Came::Settled;
        };
        if *entry == 0 {
            catalog.segments.get_mut(*slot).add_run(written.run.clone(), written.entries.len() as u64);
        }
        let part = written.entries.get(*entry..).unwrap_or_default();
        for Entry { id, at, .. } in part.iter().take(SETTLED_AT_ONCE) {
            let spot = Spot { segment: *slot, offset: written.run.start + u64::from(*at) };
            catalog.settle(*id, self.start.seq, spot);
        }
        *entry += SETTLED_AT_ONCE;
        if *entry >= written.entries.len() {
            *entry = 0;
            self.written.pop();
        }
        Came::Further
    }

    /// Gives it up before it is durable, for want of space: nothing of it counts. Returns the bytes of log that count again, and
    /// the calls, each to be made for itself, that take away what it wrote.
    pub(super) fn give_up(mut self, catalog: &mut Catalog) -> (u64, Vec<Call>) {
        let mut calls = Vec::new();
        if let Stage::List(writer) = &self.stage {
            calls.push(Call::Remove(Arc::clone(writer.written_as())));
        }
        for (slot, touched) in std::mem::take(&mut self.touched) {
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
        (self.log_bytes, calls)
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// The next calls of the checkpoint under way.
    pub(super) fn checkpoint_step(&mut self) -> Vec<Call> {
        let Some(checkpoint) = &mut self.upkeep.checkpoint else { return Vec::new() };
        let mut room = Room {
            catalog: &mut self.catalog,
            seeds: &self.seeds,
            log: LogEnd { frame: self.end.frame, wall: self.end.wall },
            generation: &mut self.segment_generation,
            step_bytes: self.options.background_step_bytes,
            block_bytes: self.options.block_bytes,
            segment_bytes: self.options.segment_bytes,
        };
        let calls = checkpoint.step(&mut room);
        if crate::planted::is("log-freed-before-checkpoint-durable") {
            let frame = checkpoint.start_frame();
            self.let_go_of_log(frame);
        }
        calls
    }
}
