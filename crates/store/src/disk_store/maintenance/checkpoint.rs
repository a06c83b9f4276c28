//! A checkpoint that is being made. Tasks of the memtable go into segments, segments that are worth it are written anew, and the deaths in the other
//! segments are written down. Then the list of segments gets its name. After that, memory lets go of the tasks that are in segments now,
//! and the log that the checkpoint covers may go.

use std::sync::Arc;

use tickwheel_engine::{DueKey, Timestamp};

use super::context::Context;
use super::moving::{Moved, Moving};
use super::output::{Origin, Output};
use crate::bounds::Bounds;
use crate::catalog::Catalog;
use crate::checkpoint::{Listed, Source, Start, Writer};
use crate::index::Spot;
use crate::io::Call;
use crate::layout::SHARD;
use crate::segment::Entry;

/// A checkpoint that is being made.
#[derive(Debug)]
pub(super) struct Checkpoint {
    start: Start,
    number: u64,
    /// Bytes of log that count again if the checkpoint is given up.
    log_bytes: u64,
    stage: Stage,
    output: Output,
    /// Segments without a live record. They are not listed, and they go once the checkpoint is durable.
    dropped: Vec<u32>,
}

#[derive(Debug)]
enum Stage {
    /// Tasks of the memtable are being written: the tasks that were there when the checkpoint began, from index `next` on.
    Flush {
        tasks: Vec<(DueKey, u32)>,
        next: usize,
        /// The dead tasks that were passed. They go to segments of their own, so they are written after all others.
        dead: Vec<(DueKey, u32)>,
        /// Whether the dead are being written.
        last: bool,
    },
    /// Records are copied from segment to segment.
    Move(Moving),
    /// The tombstones of these segments are still to be written.
    Tombstones(Vec<u32>),
    /// The list is being written.
    List(Writer),
    /// The checkpoint is durable. Memory takes it over, from this entry of the oldest run on.
    Settle {
        entry: usize,
    },
    Done,
}

/// The result of a step of the checkpoint.
#[derive(Debug)]
pub(super) enum Came {
    /// There is more to do.
    Further,
    /// The checkpoint is durable under this name, and it begins at this place of the log. The log before that place can go, and so can the
    /// segments in these slots.
    Durable { name: Arc<str>, start: Start, dropped: Vec<u32> },
    /// Memory has taken the checkpoint over, and the segments in these slots can go.
    Settled { sources: Vec<u32> },
}

impl Checkpoint {
    /// A checkpoint that begins now and writes these tasks of the memtable. The records of `sources` are copied to other segments.
    pub(super) fn new(
        start: Start,
        number: u64,
        now: Timestamp,
        log_bytes: u64,
        tasks: Vec<(DueKey, u32)>,
        sources: Vec<u32>,
    ) -> Self {
        Self {
            start,
            number,
            log_bytes,
            stage: Stage::Flush { tasks, next: 0, dead: Vec::new(), last: false },
            output: Output::new(now, sources),
            dropped: Vec::new(),
        }
    }

    /// Bytes of log that the checkpoint covers.
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Whether the checkpoint waits for nothing but memory.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.stage, Stage::Settle { .. })
    }

    /// Whether the checkpoint's last step gives it its name. If that step fails, it is unknown which checkpoint stands.
    pub(super) fn is_named(&self) -> bool {
        matches!(&self.stage, Stage::List(writer) if writer.is_done())
    }

    /// The next calls. Each step's calls are to be made before the next step is asked for. `Err` says what is damaged.
    pub(super) fn step(&mut self, context: &mut Context<'_>) -> Result<Vec<Call>, String> {
        let mut calls = Vec::new();
        while calls.is_empty() {
            match &mut self.stage {
                Stage::Flush { .. } => self.flush(context, &mut calls),
                Stage::Move(moving) => match moving.step(context, &mut self.output, &mut calls)? {
                    Moved::Calls => {}
                    Moved::All => {
                        let kept = self.output.kept_segments(context.catalog);
                        self.stage = Stage::Tombstones(kept.map(|(slot, _)| slot).collect());
                    }
                },
                Stage::Tombstones(slots) => match slots.pop() {
                    Some(slot) => self.put_tombstones(slot, context, &mut calls),
                    None => {
                        if self.output.has_new_files() {
                            calls.push(Call::SyncDir(SHARD.into()));
                        }
                        let list = self.list(context.catalog);
                        self.stage = Stage::List(Writer::new(self.start, self.number, list, context.seeds));
                    }
                },
                Stage::List(writer) => {
                    let source = Source {
                        histories: context.catalog.histories(),
                        rules: context.catalog.rules().by_name(),
                        state: context.catalog.state(),
                        log: context.log,
                    };
                    calls = writer.step(source, context.seeds, context.options.background_step_bytes);
                }
                Stage::Settle { .. } | Stage::Done => break,
            }
        }
        Ok(calls)
    }

    fn flush(&mut self, context: &mut Context<'_>, calls: &mut Vec<Call>) {
        let Stage::Flush { tasks, next, dead, last } = &mut self.stage else { return };
        let mut bytes = 0;
        while bytes < context.options.background_step_bytes
            && calls.len() < context.options.bounds.checkpoint_calls
        {
            let ahead = context.options.bounds.tasks_ahead;
            if *next % ahead == 0 {
                context.catalog.memtable.touch_records(&tasks[*next..tasks.len().min(*next + ahead)]);
            }
            let Some(entry) = tasks.get(*next).copied() else {
                if !dead.is_empty() {
                    *tasks = core::mem::take(dead);
                    (*next, *last) = (0, true);
                    continue;
                }
                self.output.close(context, calls);
                self.stage = Stage::Move(Moving::new(self.output.sources()));
                return;
            };
            *next += 1;
            // A task that was changed since the start is left to the next checkpoint. The log still has it.
            let task = context.catalog.memtable.at(entry, self.start.seq).cloned();
            if let Some(task) = task {
                if task.dead().is_some() && !*last {
                    dead.push(entry);
                    // A dead task that is passed takes time, too.
                    bytes += size_of::<(DueKey, u32)>();
                    continue;
                }
                bytes += self.output.put(context, &task, Origin::Memory, calls);
            }
        }
        self.output.write_part(context, calls);
    }

    /// Writes down the deaths in a segment. A segment without a live record needs no tombstones, because its file goes.
    fn put_tombstones(&mut self, slot: u32, context: &mut Context<'_>, calls: &mut Vec<Call>) {
        let grows = self.output.touched(slot).is_some_and(|touched| touched.records > 0);
        if context.catalog.segments.get(slot).live == 0 && !grows {
            self.dropped.push(slot);
            return;
        }
        self.output.put_tombstones(context, slot, calls);
    }

    fn list(&self, catalog: &Catalog) -> Vec<Listed> {
        self.output
            .kept_segments(catalog)
            .filter(|(slot, _)| !self.dropped.contains(slot))
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

    /// Takes in that the last step's calls were made, and the bytes that they read.
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

    /// Memory takes over the written records, a part at a time. No page is being read meanwhile.
    pub(super) fn settle(&mut self, catalog: &mut Catalog, bounds: &Bounds) -> Came {
        let Stage::Settle { entry } = &mut self.stage else { return Came::Further };
        let mut left = bounds.settled_at_once;
        while left > 0 {
            let Some(run) = self.output.written.front() else {
                self.stage = Stage::Done;
                return Came::Settled { sources: self.output.sources().to_vec() };
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

    /// Gives the checkpoint up before it is durable, for want of space: nothing of it counts. Returns the bytes of log that count again,
    /// and the calls that remove the written bytes. Each of these calls is to be made separately.
    pub(super) fn give_up(self, catalog: &mut Catalog) -> (u64, Vec<Call>) {
        let mut calls = self.output.undo(catalog);
        if let Stage::List(writer) = &self.stage {
            calls.push(Call::Remove(Arc::clone(writer.written_as())));
        }
        (self.log_bytes, calls)
    }
}
