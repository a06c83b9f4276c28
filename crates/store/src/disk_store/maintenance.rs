//! Maintenance of the files: the next log file, checkpoints with the moves of records between segments, and removals.

mod checkpoint;
mod context;
mod moving;
mod output;

use std::collections::VecDeque;
use std::sync::Arc;

use self::checkpoint::{Came, Checkpoint};
use self::context::Context;
use self::moving::{Moving, dead_bytes};
use super::jobs::Jobs;
use super::log_writer::LogWriter;
use super::reader::Reader;
use super::setup::Setup;
use crate::catalog::Catalog;
use crate::disk::{DiskError, DiskOp};
use crate::io::{Call, Completion, JobId, Lane};
use crate::layout::SHARD;
use crate::options::{AckLevel, StoreOptions};

/// The work in the background, one step at a time. No request waits for it unless the log has no file or a checkpoint is far behind.
#[derive(Debug)]
pub(super) struct Maintenance {
    /// The step under way.
    step: Option<(JobId, Step)>,
    checkpoint: Option<Checkpoint>,
    /// The latest durable checkpoint. It is removed once the next one is durable.
    standing: Option<Arc<str>>,
    /// The number of the last checkpoint that was begun.
    number: u64,
    /// Calls that take away the bytes of a checkpoint that was given up. Nothing else begins before they are made.
    undo: VecDeque<Call>,
    removals: VecDeque<Removal>,
    /// Whether a backup copies files: then no listed file may go.
    pinned: bool,
    /// Log files of generations below this one could go, if they were not pinned.
    free_below: u64,
    /// Whether the disk was full when a file was made ready.
    full: bool,
    /// Whether the last try on a full disk was for the checkpoint.
    checkpoint_had_turn: bool,
    /// Polls without an event since the last try.
    idle_polls: u32,
    /// Steps since the last commit began.
    steps_since_commit: u32,
    /// Whether the owner releases the shard: then a step begins only for its last frame.
    stopped: bool,
}

/// A file that is to be removed.
#[derive(Debug)]
struct Removal {
    file: Arc<str>,
    /// Reads with numbers up to this one may still need the file.
    reads: u64,
    /// The slot of a segment, which is free after the removal.
    slot: Option<u32>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Step {
    Prepare,
    /// Writes the note that the prepared file is the newest.
    Note,
    Checkpoint,
    Remove,
    /// An empty job: it asks for the free space of the disk.
    Look,
    /// An empty job: memory took over a part of a checkpoint. Requests that came meanwhile go before the next part.
    Settle,
}

/// The parts of the store that maintenance uses.
pub(super) struct Shop<'a> {
    pub(super) catalog: &'a mut Catalog,
    pub(super) writer: &'a mut LogWriter,
    pub(super) reader: &'a Reader,
    pub(super) jobs: &'a mut Jobs,
    pub(super) setup: &'a Setup,
    /// Free bytes of the disk.
    pub(super) free_bytes: u64,
}

/// While the disk is full, this many idle polls pass between two tries: each costs calls that will most likely fail.
const IDLE_POLLS_PER_TRY: u32 = 8;

/// A checkpoint is late when this many times as much log waits for it as starts one.
const CHECKPOINT_LATE: u64 = 4;

/// Bytes of the disk that growth leaves free: a checkpoint of all tasks of the memtable, and two log files for the commits until it begins and while
/// it is written.
pub(super) fn disk_reserve(catalog: &Catalog, options: &StoreOptions) -> u64 {
    catalog.checkpoint_bytes() + 2 * options.log_file_bytes
}

impl Maintenance {
    pub(super) fn new(standing: Option<Arc<str>>, number: u64) -> Self {
        Self {
            step: None,
            checkpoint: None,
            standing,
            number,
            undo: VecDeque::new(),
            removals: VecDeque::new(),
            pinned: false,
            free_below: 0,
            full: false,
            checkpoint_had_turn: false,
            idle_polls: 0,
            steps_since_commit: 0,
            stopped: false,
        }
    }

    /// The number of the last checkpoint that was begun.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The latest durable checkpoint.
    pub(super) fn standing(&self) -> Option<&Arc<str>> {
        self.standing.as_ref()
    }

    /// Whether a step is under way.
    pub(super) fn is_working(&self) -> bool {
        self.step.is_some()
    }

    pub(super) fn is_checkpointing(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// Whether memory has still to take over the records of a checkpoint.
    pub(super) fn is_settling(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(Checkpoint::is_settling)
    }

    /// Whether the disk was full when a file was made ready.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes of log that no durable checkpoint covers, if there are enough of them for a checkpoint to be late.
    pub(super) fn checkpoint_late(&self, writer: &LogWriter, options: &StoreOptions) -> Option<u64> {
        let under_way = self.checkpoint.as_ref().map_or(0, Checkpoint::log_bytes);
        let bytes = writer.files().since_checkpoint() + under_way;
        (bytes >= CHECKPOINT_LATE.saturating_mul(options.checkpoint_after_bytes)).then_some(bytes)
    }

    /// Keeps all listed files.
    pub(super) fn pin(&mut self) {
        self.pinned = true;
    }

    /// Pinned files may go again.
    pub(super) fn unpin(&mut self, writer: &mut LogWriter) {
        self.pinned = false;
        self.free_log(self.free_below, writer);
    }

    /// The owner releases the shard.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// There is a new owner.
    pub(super) fn resume(&mut self) {
        self.stopped = false;
    }

    pub(super) fn commit_begins(&mut self) {
        self.steps_since_commit = 0;
    }

    /// Whether the checkpoint under way does not keep up. A checkpoint is given one step for each commit once a quarter as much log has
    /// come as it covers, two steps at half as much, and so on. Otherwise memory would grow with the tasks that wait to be written.
    pub(super) fn is_behind(&self, writer: &LogWriter, options: &StoreOptions) -> bool {
        let behind = writer.files().since_checkpoint() * 4 / options.checkpoint_after_bytes.max(4);
        let checkpoint = self.checkpoint.is_some() && !self.full;
        checkpoint && u64::from(self.steps_since_commit) < behind
    }

    /// Begins the next step, if none is under way. `idle` says that this poll brought nothing.
    ///
    /// # Errors
    /// The store cannot go on: a record that has to be copied is damaged.
    pub(super) fn start(&mut self, idle: bool, shop: &mut Shop<'_>) -> Result<(), String> {
        let wanted = shop.writer.pending_bytes();
        // Before the owner's first frame and after a release, no file is known to be ours. While the shard is being released, a step begins
        // for the last frame only, which may need a file.
        let may_begin = wanted.is_some() || (shop.writer.is_owned() && !self.stopped);
        if self.step.is_some() || !may_begin {
            return Ok(());
        }
        // The records that a page passes by must not move while the page is read.
        if self.is_settling() && !shop.reader.is_scanning() {
            self.settle(shop)?;
            self.begin(Step::Settle, Vec::new(), shop);
            return Ok(());
        }
        // A removal makes space, so it does not wait.
        let removes = self.removals.front().is_some_and(|removal| shop.reader.is_over(removal.reads));
        let removes = removes && !self.stopped && !self.pinned;
        if self.full && !removes && self.undo.is_empty() && !self.may_try_again(idle, wanted.is_some()) {
            return Ok(());
        }
        if let Some((step, calls)) = self.next_step(wanted, removes, shop)? {
            self.begin(step, calls, shop);
        }
        Ok(())
    }

    fn begin(&mut self, step: Step, calls: Vec<Call>, shop: &mut Shop<'_>) {
        self.step = Some((shop.jobs.add(Lane::Background, calls), step));
    }

    fn next_step(
        &mut self,
        wanted: Option<u64>,
        removes: bool,
        shop: &mut Shop<'_>,
    ) -> Result<Option<(Step, Vec<Call>)>, String> {
        if let Some(call) = self.undo.pop_front() {
            return Ok(Some((Step::Remove, vec![call])));
        }
        if let Some(Removal { file, slot, .. }) = self.removals.pop_front_if(|_| removes) {
            // Other threads may have it open, and an open file takes space.
            for lane in [Lane::Commit, Lane::Read] {
                shop.jobs.add(lane, vec![Call::Close(Arc::clone(&file))]);
            }
            if let Some(slot) = slot {
                shop.catalog.segments.remove(slot);
            }
            let mut calls = vec![Call::Remove(file)];
            if self.removals.is_empty() {
                calls.push(Call::SyncDir(SHARD.into()));
            }
            return Ok(Some((Step::Remove, calls)));
        }
        // On a full disk a checkpoint that is under way may be what makes space, so the two take turns.
        let checkpoint_first = self.full && !self.checkpoint_had_turn && !self.stopped;
        self.checkpoint_had_turn = checkpoint_first;
        if checkpoint_first && self.may_checkpoint(wanted.is_some(), shop) {
            return self.checkpoint_step(shop).map(Some);
        }
        if shop.writer.files().wants_preparation(wanted) {
            let calls = shop.writer.preparation_step(wanted, shop.setup.options.background_step_bytes);
            let step = if shop.writer.files().is_noting() { Step::Note } else { Step::Prepare };
            return Ok(Some((step, calls)));
        }
        if self.stopped {
            return Ok(None);
        }
        if self.full {
            return Ok(Some((Step::Look, Vec::new())));
        }
        if self.may_checkpoint(wanted.is_some(), shop) {
            return self.checkpoint_step(shop).map(Some);
        }
        Ok(None)
    }

    fn may_try_again(&mut self, idle: bool, waited_for: bool) -> bool {
        self.idle_polls += u32::from(idle);
        let polls = if waited_for { 1 } else { IDLE_POLLS_PER_TRY };
        if self.idle_polls < polls {
            return false;
        }
        self.idle_polls = 0;
        true
    }

    /// Whether a checkpoint has calls to make; begins one if it is time.
    fn may_checkpoint(&mut self, commit_waits: bool, shop: &mut Shop<'_>) -> bool {
        let Setup { options, .. } = shop.setup;
        if let Some(checkpoint) = &self.checkpoint {
            // The checkpoint must not be durable with the end of a task before the frame with that end is. A written frame is synced in
            // time, see `LogWriter::sync`. The checkpoint waits for a frame that was answered before it is written.
            let unwritten = options.ack_level == AckLevel::Memory && shop.writer.is_writing();
            return !checkpoint.is_settling() && !unwritten;
        }
        // The frame that is being written relies on bodies in the log that a checkpoint would let go of.
        if shop.writer.is_writing() {
            return false;
        }
        let log_bytes = shop.writer.files().since_checkpoint();
        let is_due = log_bytes > options.checkpoint_after_bytes;
        let is_low = shop.free_bytes < disk_reserve(shop.catalog, options);
        if is_low {
            // A spare is worth more as space.
            let spares = shop.writer.files_mut().give_up_spares();
            spares.into_iter().for_each(|file| self.remove(file));
        }
        // A checkpoint that will not fit is not begun. The log goes on meanwhile, unless no commit is possible before the checkpoint.
        let beside = if commit_waits { 0 } else { options.log_file_bytes };
        let space = shop.free_bytes.checked_sub(shop.catalog.checkpoint_bytes() + beside);
        let Some(space) = space.filter(|_| is_due || is_low) else { return false };
        let wall = shop.writer.wall();
        let sources = Moving::choose(shop.catalog, wall, space, &options.bounds);
        if !is_due && self.gives_back(&sources, shop) <= options.log_file_bytes {
            return false;
        }
        let start = shop.writer.begin_checkpoint(shop.catalog);
        self.number += 1;
        let tasks = shop.catalog.memtable.snapshot();
        self.checkpoint = Some(Checkpoint::new(start, self.number, wall, log_bytes, tasks, sources));
        true
    }

    /// Bytes of files that a checkpoint gives back, if it moves the live records of `sources`. When space runs low, these bytes make a
    /// checkpoint worth its writing much sooner. A backup keeps all files.
    fn gives_back(&self, sources: &[u32], shop: &Shop<'_>) -> u64 {
        if self.pinned {
            return 0;
        }
        let segments = &shop.catalog.segments;
        let empty = segments.iter().filter(|(_, segment)| segment.live == 0 && !segment.leaving);
        let empty: u64 = empty.map(|(_, segment)| segment.len).sum();
        let moved: u64 = sources.iter().map(|slot| dead_bytes(segments.get(*slot))).sum();
        shop.writer.files().bytes_kept() + empty + moved
    }

    /// The next calls of the checkpoint under way.
    fn checkpoint_step(&mut self, shop: &mut Shop<'_>) -> Result<(Step, Vec<Call>), String> {
        let Some(checkpoint) = &mut self.checkpoint else { return Ok((Step::Checkpoint, Vec::new())) };
        let calls = checkpoint.step(&mut Context {
            catalog: shop.catalog,
            seeds: &shop.setup.seeds,
            options: &shop.setup.options,
            log: shop.writer.synced_end(),
        })?;
        Ok((Step::Checkpoint, calls))
    }

    /// Memory takes over a part of the records that the checkpoint wrote.
    fn settle(&mut self, shop: &mut Shop<'_>) -> Result<(), String> {
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
        shop.catalog.segments.rearranged();
        if let Came::Settled { sources } = checkpoint.settle(shop.catalog, &shop.setup.options.bounds) {
            self.checkpoint = None;
            self.remove_segments(sources, shop)?;
        }
        Ok(())
    }

    /// Takes in that a job is over. The job may be the step under way.
    ///
    /// # Errors
    /// The store cannot go on.
    pub(super) fn completed(&mut self, completion: Completion, shop: &mut Shop<'_>) -> Result<(), String> {
        // Any other job closed a file.
        let Some((_, step)) = self.step.take_if(|(job, _)| *job == completion.id) else { return Ok(()) };
        self.steps_since_commit = self.steps_since_commit.saturating_add(1);
        match completion.result {
            Ok(()) => self.step_done(step, completion.reads, shop),
            Err(error) => self.step_failed(step, &error, shop),
        }
    }

    fn step_done(&mut self, step: Step, reads: Vec<Vec<u8>>, shop: &mut Shop<'_>) -> Result<(), String> {
        match step {
            Step::Prepare | Step::Note => {
                shop.writer.files_mut().step_done();
                self.full = false;
            }
            Step::Checkpoint => return self.checkpoint_step_done(reads, shop),
            Step::Remove | Step::Settle => {}
            Step::Look => {
                // The limit is less than the bytes that growth leaves free. Otherwise the store's own growth would pass for a full disk.
                let needed = shop.catalog.checkpoint_bytes() + shop.setup.options.log_file_bytes;
                self.full = shop.free_bytes < needed;
            }
        }
        Ok(())
    }

    fn checkpoint_step_done(&mut self, reads: Vec<Vec<u8>>, shop: &mut Shop<'_>) -> Result<(), String> {
        // There was space for this step, so the next one need not wait.
        self.idle_polls = IDLE_POLLS_PER_TRY;
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
        let came = checkpoint.step_done(reads, shop.catalog);
        let Came::Durable { name, start, dropped } = came else { return Ok(()) };
        // The checkpoint is durable under its name. From now on the log that it covers may go.
        shop.writer.end_checkpoint(start.frame);
        self.free_log(start.generation, shop.writer);
        let before = self.standing.replace(name);
        before.into_iter().for_each(|before| self.remove(before));
        self.remove_segments(dropped, shop)
    }

    fn remove(&mut self, file: Arc<str>) {
        self.removals.push_back(Removal { file, reads: 0, slot: None });
    }

    fn remove_segments(&mut self, slots: Vec<u32>, shop: &mut Shop<'_>) -> Result<(), String> {
        // The cursors that a page keeps for the next page may lead to these segments.
        shop.catalog.segments.rearranged();
        for slot in slots {
            let segment = shop.catalog.segments.get_mut(slot);
            if segment.live > 0 {
                // The segment's footers say that tasks are live, but its records do not.
                return Err(format!("read {}: {} of its tasks are in no record", segment.name, segment.live));
            }
            segment.leaving = true;
            let (file, reads) = (Arc::clone(&segment.name), shop.reader.begun());
            self.removals.push_back(Removal { file, reads, slot: Some(slot) });
        }
        Ok(())
    }

    /// A durable checkpoint begins in the log file of this generation.
    fn free_log(&mut self, generation: u64, writer: &mut LogWriter) {
        self.free_below = self.free_below.max(generation);
        if self.pinned {
            return;
        }
        for file in writer.files_mut().free_below(generation) {
            self.remove(file);
        }
    }

    fn step_failed(&mut self, step: Step, error: &DiskError, shop: &mut Shop<'_>) -> Result<(), String> {
        // A file that could not be made for want of space is not there to be removed.
        if step == Step::Remove && error.source.kind() == std::io::ErrorKind::NotFound {
            return Ok(());
        }
        // A log file whose sync failed may have lost the written bytes, for any reason: it is never synced again. The bytes of a checkpoint
        // are cut off again. But if the checkpoint may have its name or not, nothing can be taken away any more.
        let log_sync = step == Step::Prepare && error.op == DiskOp::Sync;
        let named = error.op == DiskOp::SyncDir && self.checkpoint.as_ref().is_some_and(Checkpoint::is_named);
        // After a failed directory sync it is unknown whether the note is durable, and a failed sync is never tried again.
        let noted = step == Step::Note && error.op == DiskOp::SyncDir;
        if !error.is_full() || log_sync || named || noted {
            return Err(error.to_string());
        }
        self.full = true;
        self.idle_polls = 0;
        let files = shop.writer.files_mut();
        match step {
            Step::Note if error.op == DiskOp::Rename => {
                // The new note may stand by now, so the file that it names stays, and the note is written again.
                self.undo.push_back(Call::Remove(files.note_under_way()));
                files.note_again();
            }
            Step::Prepare | Step::Note => {
                if step == Step::Note {
                    self.undo.push_back(Call::Remove(files.note_under_way()));
                }
                files.step_refused().into_iter().for_each(|file| self.remove(file));
            }
            Step::Checkpoint => {
                if let Some(checkpoint) = self.checkpoint.take() {
                    let (log_bytes, calls) = checkpoint.give_up(shop.catalog);
                    shop.catalog.segments.rearranged();
                    files.set_since_checkpoint(files.since_checkpoint() + log_bytes);
                    self.undo.extend(calls);
                }
            }
            Step::Remove | Step::Look | Step::Settle => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
