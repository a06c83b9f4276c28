//! A checkpoint that is being made, in steps. First, tasks of the memtable are written to segments. Then the live records of some segments
//! are copied to other segments. Then tombstones are added to the segments that stay. Then the file of the checkpoint is written, with the
//! list of segments, and gets its name. Now the checkpoint is durable, and the log that it covers may be removed. At last the catalog takes
//! the written records over: the tasks that were written leave the memtable.

use std::sync::Arc;

use tickwheel_engine::{DueKey, Timestamp};

use super::Context;
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
    /// Bytes of log that this checkpoint covers and no earlier checkpoint covers. If the checkpoint is given up, the bytes count again for
    /// the start of the next one.
    log_bytes: u64,
    stage: Stage,
    output: Output,
    /// The slots of segments without a live record. The checkpoint does not list these segments. Their files are removed once the
    /// checkpoint is durable.
    dropped: Vec<u32>,
}

#[derive(Debug)]
enum Stage {
    /// The tasks that were in the memtable when the checkpoint began are being written. `next` is the index of the next task.
    Flush {
        tasks: Vec<(DueKey, u32)>,
        next: usize,
        /// The dead tasks that were skipped. Dead tasks have segments of their own, so they are written after all other tasks.
        dead: Vec<(DueKey, u32)>,
        /// Whether `tasks` are the dead tasks.
        last: bool,
    },
    /// Live records are copied from segment to segment.
    Move(Moving),
    /// The tombstones of the segments in these slots are not written yet.
    Tombstones(Vec<u32>),
    /// The file of the checkpoint is being written, with the list of segments.
    List(Writer),
    /// The checkpoint is durable. The catalog takes over the written records. `entry` is the next entry of the oldest run that is left.
    Settle {
        entry: usize,
    },
    Done,
}

/// The result of a step of the checkpoint.
#[derive(Debug)]
pub(super) enum Came {
    /// The checkpoint needs more steps.
    Further,
    /// The checkpoint is durable under `name`, and begins at `start` in the log. The log before `start` may be removed, and so may the
    /// segments in the slots `dropped`.
    Durable { name: Arc<str>, start: Start, dropped: Vec<u32> },
    /// The catalog has taken over all written records. The segments in the slots `sources` may be removed.
    Settled { sources: Vec<u32> },
}

impl Checkpoint {
    /// Begins a checkpoint that writes `tasks` of the memtable. The live records of the segments in the slots `sources` are copied to other
    /// segments.
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

    /// Returns how many bytes of log this checkpoint covers and no earlier checkpoint covers.
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Whether the checkpoint is durable and the catalog is taking over its records.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.stage, Stage::Settle { .. })
    }

    /// Whether the step that gives the checkpoint its name was handed out. If that step fails, the checkpoint may have its name or not.
    pub(super) fn is_named(&self) -> bool {
        matches!(&self.stage, Stage::List(writer) if writer.is_done())
    }

    /// Returns the calls of the next step. The caller has to make them before it asks for another step. `Err` says what is damaged.
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
            // A task that was changed since the checkpoint began is left to the next checkpoint. The log still has the task.
            let task = context.catalog.memtable.at(entry, self.start.seq).cloned();
            if let Some(task) = task {
                if task.dead().is_some() && !*last {
                    dead.push(entry);
                    // Skipping a dead task takes time as well, so a skipped task counts as some bytes of the step.
                    bytes += size_of::<(DueKey, u32)>();
                    continue;
                }
                bytes += self.output.put(context, &task, Origin::Memory, calls);
            }
        }
        self.output.write_part(context, calls);
    }

    /// Adds the calls that write the tombstones of a segment. A segment without any live record, to which the checkpoint adds none, gets no
    /// tombstones: its file will be removed.
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

    /// Takes in that the calls of the last step were made, and the bytes that the calls read. Returns whether the checkpoint is durable
    /// now.
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

    /// Lets the catalog take over the next part of the written records. The caller makes sure that no page and no histogram is being read
    /// meanwhile.
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

    /// Gives the checkpoint up before it is durable, because the disk is full. The catalog is as if the checkpoint had not begun. Returns
    /// the bytes of log that this checkpoint would have covered, and the calls that remove the written bytes. Each of these calls has to be
    /// made in a job of its own.
    pub(super) fn give_up(self, catalog: &mut Catalog) -> (u64, Vec<Call>) {
        let mut calls = self.output.undo(catalog);
        if let Stage::List(writer) = &self.stage {
            calls.push(Call::Remove(Arc::clone(writer.written_as())));
        }
        (self.log_bytes, calls)
    }
}
