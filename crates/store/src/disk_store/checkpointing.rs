//! A checkpoint on its way: what is fresh goes into segments, segments that are worth it are written anew, what died in the others is
//! written down, then the list of segments gets its name; only then memory lets go of what it had of it, and the log of what is in it.

use std::sync::Arc;

use tickwheel_engine::{Place, Timestamp};

use super::moving::{Moved, Moving};
use super::output::{Origin, Output};
use super::store::DiskStore;
use crate::bounds::Bounds;
use crate::catalog::Catalog;
use crate::checkpoint::{Listed, LogEnd, Source, Start, Writer};
use crate::checksum::Seeds;
use crate::disk::Disk;
use crate::index::Spot;
use crate::io::{Call, Io};
use crate::layout::SHARD;
use crate::segment::Entry;

/// A checkpoint that is being made.
#[derive(Debug)]
pub(super) struct Checkpoint {
    start: Start,
    number: u64,
    /// Bytes of log that count again if it is given up.
    log_bytes: u64,
    stage: Stage,
    output: Output,
    /// Segments that are written anew elsewhere: they are not listed, and go once memory has taken over.
    sources: Vec<u32>,
    /// Segments without a live record: they are not listed, and go once it is durable.
    dropped: Vec<u32>,
}

#[derive(Debug)]
enum Stage {
    /// Fresh tasks are being written: those that were there when it began, and of these the ones from this one on.
    Flush {
        tasks: Vec<(Place, u32)>,
        next: usize,
        /// Of these, the dead that were passed: they go to segments of their own, so they are written when all others are.
        dead: Vec<(Place, u32)>,
        /// Whether the dead are being written.
        last: bool,
    },
    /// Records are copied from segment to segment.
    Move(Moving),
    /// The tombstones of these segments are still to be written.
    Tombstones(Vec<u32>),
    /// The list is being written.
    List(Writer),
    /// It is durable. Memory takes it over, from this entry of the oldest run on.
    Settle {
        entry: usize,
    },
    Done,
}

/// What the checkpoint came to.
#[derive(Debug)]
pub(super) enum Came {
    /// There is more to do.
    Further,
    /// It is durable under this name, and it begins at this place of the log. What it makes up for can go, and so can the segments in these
    /// slots.
    Durable { name: Arc<str>, start: Start, dropped: Vec<u32> },
    /// Memory has taken it over, and the segments in these slots can go.
    Settled { sources: Vec<u32> },
}

/// What a step of a checkpoint needs of its store.
pub(super) struct Room<'a> {
    pub(super) catalog: &'a mut Catalog,
    pub(super) seeds: &'a Seeds,
    pub(super) log: LogEnd,
    /// The last generation of a segment that was given out.
    pub(super) generation: &'a mut u64,
    /// Segments that are copied from.
    pub(super) sources: &'a [u32],
    pub(super) step_bytes: usize,
    pub(super) block_bytes: u64,
    pub(super) segment_bytes: u64,
    pub(super) bounds: &'a Bounds,
}

impl Checkpoint {
    /// One that begins now and writes these fresh tasks. `sources` are written anew elsewhere.
    pub(super) fn new(
        start: Start,
        number: u64,
        now: Timestamp,
        log_bytes: u64,
        tasks: Vec<(Place, u32)>,
        sources: Vec<u32>,
    ) -> Self {
        Self {
            start,
            number,
            log_bytes,
            stage: Stage::Flush { tasks, next: 0, dead: Vec::new(), last: false },
            output: Output::new(now),
            sources,
            dropped: Vec::new(),
        }
    }

    /// Bytes of log that it makes up for.
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Whether it waits for nothing but memory.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.stage, Stage::Settle { .. })
    }

    /// Whether its last step gives it its name. If that fails, nobody knows which checkpoint stands.
    pub(super) fn is_named(&self) -> bool {
        matches!(&self.stage, Stage::List(writer) if writer.is_done())
    }

    /// The next calls. Each step's calls are to be made before the next step is asked for. `Err` says what is damaged.
    fn step(&mut self, room: &mut Room<'_>) -> Result<Vec<Call>, String> {
        let mut calls = Vec::new();
        while calls.is_empty() {
            match &mut self.stage {
                Stage::Flush { .. } => self.flush(room, &mut calls),
                Stage::Move(moving) => match moving.step(room, &mut self.output, &mut calls) {
                    Moved::Calls => {}
                    Moved::All => {
                        let slots = room.catalog.segments.iter().map(|(slot, _)| slot);
                        let stay = slots.filter(|slot| !self.sources.contains(slot)).collect();
                        self.stage = Stage::Tombstones(stay);
                    }
                    Moved::Damaged(why) => return Err(why),
                },
                Stage::Tombstones(slots) => match slots.pop() {
                    Some(slot) => self.put_tombstones(slot, room, &mut calls),
                    None => {
                        if self.output.has_new_files() && !crate::planted::is("no-dir-sync") {
                            calls.push(Call::SyncDir(SHARD.into()));
                        }
                        let list = self.list(room.catalog);
                        self.stage = Stage::List(Writer::new(self.start, self.number, list, room.seeds));
                    }
                },
                Stage::List(writer) => {
                    let source = Source {
                        histories: room.catalog.histories(),
                        rules: room.catalog.rules().by_name(),
                        state: room.catalog.state(),
                        log: room.log,
                    };
                    calls = writer.step(source, room.seeds, room.step_bytes);
                }
                Stage::Settle { .. } | Stage::Done => break,
            }
        }
        Ok(calls)
    }

    fn flush(&mut self, room: &mut Room<'_>, calls: &mut Vec<Call>) {
        let Stage::Flush { tasks, next, dead, last } = &mut self.stage else { return };
        let mut bytes = 0;
        while bytes < room.step_bytes && calls.len() < room.bounds.checkpoint_calls {
            let ahead = room.bounds.tasks_ahead;
            if *next % ahead == 0 {
                room.catalog.fresh.touch_records(&tasks[*next..tasks.len().min(*next + ahead)]);
            }
            let Some(entry) = tasks.get(*next).copied() else {
                if !dead.is_empty() {
                    *tasks = core::mem::take(dead);
                    (*next, *last) = (0, true);
                    continue;
                }
                self.output.close(room, calls);
                self.stage = Stage::Move(Moving::new(&self.sources));
                return;
            };
            *next += 1;
            // What was changed since the start is for the next one; the log still has it.
            let task = room.catalog.fresh.at(entry, self.start.seq).cloned();
            if let Some(task) = task {
                if task.dead().is_some() && !*last {
                    dead.push(entry);
                    // It takes time, too.
                    bytes += size_of::<(Place, u32)>();
                    continue;
                }
                bytes += self.output.put(room, &task, Origin::Memory, calls);
            }
        }
        self.output.write_part(room, calls);
    }

    /// Writes down what died in a segment. One without a live record needs no tombstones, for it goes.
    fn put_tombstones(&mut self, slot: u32, room: &mut Room<'_>, calls: &mut Vec<Call>) {
        let grows = self.output.touched(slot).is_some_and(|touched| touched.records > 0);
        if room.catalog.segments.get(slot).live == 0 && !grows {
            self.dropped.push(slot);
            if crate::planted::is("segment-deleted-too-early") {
                calls.push(Call::Remove(Arc::clone(&room.catalog.segments.get(slot).name)));
            }
            return;
        }
        self.output.put_tombstones(room, slot, calls);
    }

    fn list(&self, catalog: &Catalog) -> Vec<Listed> {
        let listed = |slot: &u32| !self.dropped.contains(slot) && !self.sources.contains(slot);
        catalog
            .segments
            .iter()
            .filter(|(slot, _)| listed(slot))
            .map(|(slot, segment)| {
                let touched = self.output.touched(slot);
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

    /// The last step's calls were made, and read this.
    pub(super) fn step_done(&mut self, reads: Vec<Vec<u8>>, catalog: &mut Catalog) -> Came {
        match &mut self.stage {
            Stage::Move(moving) => {
                moving.take(reads);
                Came::Further
            }
            Stage::List(writer) if writer.is_done() => {
                let name = Arc::clone(writer.name());
                self.output.accept(catalog);
                self.stage = Stage::Settle { entry: 0 };
                Came::Durable { name, start: self.start, dropped: std::mem::take(&mut self.dropped) }
            }
            Stage::Flush { .. }
            | Stage::Tombstones(_)
            | Stage::List(_)
            | Stage::Settle { .. }
            | Stage::Done => Came::Further,
        }
    }

    /// Memory takes over what was written, a part at a time. No page is being read meanwhile.
    pub(super) fn settle(&mut self, catalog: &mut Catalog, bounds: &Bounds) -> Came {
        let Stage::Settle { entry } = &mut self.stage else { return Came::Further };
        let mut left = bounds.settled_at_once;
        while left > 0 {
            let Some(run) = self.output.written.front() else {
                self.stage = Stage::Done;
                return Came::Settled { sources: std::mem::take(&mut self.sources) };
            };
            let entries = &run.written.entries;
            if *entry == 0 {
                catalog.segments.get_mut(run.segment).add_run(run.written.run.clone(), entries.len() as u64);
            }
            let part = entries.len().min(*entry + left);
            for some in entries[*entry..part].chunks(bounds.tasks_ahead) {
                catalog.touch(some.iter().map(|entry| entry.id));
                for Entry { id, at, .. } in some {
                    let spot = Spot { segment: run.segment, offset: run.written.run.start + u64::from(*at) };
                    match run.origin {
                        Origin::Memory => catalog.settle(*id, self.start.seq, spot),
                        Origin::Segment(source) => catalog.move_record(*id, source, spot),
                    }
                }
            }
            left -= part - *entry;
            *entry = part;
            if part == entries.len() {
                *entry = 0;
                self.output.written.pop_front();
            }
        }
        Came::Further
    }

    /// Gives it up before it is durable, for want of space: nothing of it counts. Returns the bytes of log that count again, and
    /// the calls, each to be made for itself, that take away what it wrote.
    pub(super) fn give_up(self, catalog: &mut Catalog) -> (u64, Vec<Call>) {
        let mut calls = self.output.undo(catalog);
        if let Stage::List(writer) = &self.stage {
            calls.push(Call::Remove(Arc::clone(writer.written_as())));
        }
        (self.log_bytes, calls)
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// The next calls of the checkpoint under way. None, if what it has to copy is damaged: the store has failed then.
    pub(super) fn checkpoint_step(&mut self) -> Vec<Call> {
        let Some(checkpoint) = &mut self.upkeep.checkpoint else { return Vec::new() };
        let sources = checkpoint.sources.clone();
        let mut room = Room {
            catalog: &mut self.catalog,
            seeds: &self.seeds,
            log: LogEnd { frame: self.unsynced.synced(), wall: self.end.wall },
            generation: &mut self.segment_generation,
            sources: &sources,
            step_bytes: self.options.background_step_bytes,
            block_bytes: self.options.block_bytes,
            segment_bytes: self.options.segment_bytes,
            bounds: &self.options.bounds,
        };
        let generation = checkpoint.start.generation;
        match checkpoint.step(&mut room) {
            Ok(calls) => {
                if crate::planted::is("log-freed-before-checkpoint-durable") {
                    self.let_go_of_log(generation);
                }
                calls
            }
            Err(why) => {
                self.fail_because(why);
                Vec::new()
            }
        }
    }
}
