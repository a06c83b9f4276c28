//! Maintenance of the files: prepares the next log file, makes checkpoints, copies records between segments, and removes files.

mod checkpoint;
mod moving;
mod output;

use std::collections::VecDeque;
use std::sync::Arc;

use self::checkpoint::{Came, Checkpoint};
use self::moving::{Moving, dead_bytes};
use super::jobs::Jobs;
use super::log_writer::LogWriter;
use super::reader::Reader;
use super::setup::Setup;
use crate::catalog::Catalog;
use crate::checkpoint::LogEnd;
use crate::checksum::Seeds;
use crate::disk::{DiskError, DiskOp};
use crate::io::{Call, Completion, JobId, Lane};
use crate::layout::SHARD;
use crate::options::{AckLevel, StoreOptions};

/// The parts of the store that a step of a checkpoint uses.
pub(super) struct Context<'a> {
    pub(super) catalog: &'a mut Catalog,
    pub(super) seeds: &'a Seeds,
    pub(super) options: &'a StoreOptions,
    /// The last synced frame of the log, and the latest wall clock.
    pub(super) log: LogEnd,
}

/// The maintenance of the files in the background, one step at a time. A request that writes waits for a step only if the log has no file
/// for its frame, if the checkpoint under way is behind, or if the request releases the shard.
#[derive(Debug)]
pub(super) struct Maintenance {
    /// The step under way.
    step: Option<(JobId, Step)>,
    checkpoint: Option<Checkpoint>,
    /// The latest durable checkpoint. Its file is removed once the next checkpoint is durable.
    standing: Option<Arc<str>>,
    /// The number of the last checkpoint that was begun.
    number: u64,
    /// Calls that remove what a checkpoint or a note wrote before it was given up. These calls are made before maintenance makes any other
    /// call.
    undo: VecDeque<Call>,
    removals: VecDeque<Removal>,
    /// Whether a backup has pinned the files. If so, no file that the backup lists is removed.
    pinned: bool,
    /// No recovery needs the log files of generations below this one. A pin keeps them until it ends.
    free_below: u64,
    /// Whether a step met a full disk, and space has not been found since.
    full: bool,
    /// Whether the checkpoint had the first turn in the last try on a full disk. The checkpoint and the preparation of a log file take
    /// turns.
    checkpoint_had_turn: bool,
    /// Idle polls since the last try on a full disk. An idle poll brought no completion of a job.
    idle_polls: u32,
    /// Steps that ended since the last request that writes was taken up.
    steps_since_commit: u32,
    /// Whether the owner is releasing the shard. If so, a step begins only if the owner's last frame needs a file.
    stopped: bool,
}

/// A file that is to be removed.
#[derive(Debug)]
struct Removal {
    file: Arc<str>,
    /// Reads with numbers up to this one may still need the file.
    reads: u64,
    /// The slot of the segment, if the file is a segment. The slot becomes free when the removal begins.
    slot: Option<u32>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Step {
    Prepare,
    /// Writes the note that names the prepared file as the newest log file.
    Note,
    Checkpoint,
    Remove,
    /// An empty job. Its completion brings the free bytes of the disk.
    Look,
    /// An empty job after the catalog has taken over a part of a checkpoint. Requests that arrive while the job runs are served before the
    /// next part.
    Settle,
}

/// The parts of the store that maintenance uses.
pub(super) struct Shop<'a> {
    pub(super) catalog: &'a mut Catalog,
    pub(super) writer: &'a mut LogWriter,
    pub(super) reader: &'a Reader,
    pub(super) jobs: &'a mut Jobs,
    pub(super) setup: &'a Setup,
    /// Free bytes of the disk, as of the last job that ended.
    pub(super) free_bytes: u64,
}

/// While the disk is full, this many idle polls pass between two tries, unless a frame waits for a file. The calls of a try will probably
/// fail too.
const IDLE_POLLS_PER_TRY: u32 = 8;

/// A checkpoint is late when the log that no checkpoint covers has this many times the bytes that start a checkpoint.
const CHECKPOINT_LATE: u64 = 4;

/// Returns how many bytes of the disk new tasks may not use. These bytes are for a checkpoint of all tasks of the memtable, and for two log
/// files. The log files take the commits until the checkpoint begins and while it is written.
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

    /// Returns the number of the last checkpoint that was begun.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the file of the latest durable checkpoint.
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

    /// Whether a checkpoint is durable, but the catalog has not taken over all its records yet.
    pub(super) fn is_settling(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(Checkpoint::is_settling)
    }

    /// Whether a step met a full disk, and space has not been found since.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns how many bytes of log no durable checkpoint covers, if a checkpoint is late, see [`CHECKPOINT_LATE`]. Otherwise `None`.
    pub(super) fn checkpoint_late(&self, writer: &LogWriter, options: &StoreOptions) -> Option<u64> {
        let under_way = self.checkpoint.as_ref().map_or(0, Checkpoint::log_bytes);
        let bytes = writer.files().since_checkpoint() + under_way;
        (bytes >= CHECKPOINT_LATE.saturating_mul(options.checkpoint_after_bytes)).then_some(bytes)
    }

    /// Keeps all files that a backup lists, until [`unpin`](Self::unpin).
    pub(super) fn pin(&mut self) {
        self.pinned = true;
    }

    /// Allows the removal of pinned files again, and frees the log files that only the pin kept.
    pub(super) fn unpin(&mut self, writer: &mut LogWriter) {
        self.pinned = false;
        self.free_log(self.free_below, writer);
    }

    /// Takes in that the owner is releasing the shard. Until [`resume`](Self::resume), a step begins only if the last frame needs a file.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Takes in that there is a new owner. Steps of all kinds may begin again.
    pub(super) fn resume(&mut self) {
        self.stopped = false;
    }

    pub(super) fn commit_begins(&mut self) {
        self.steps_since_commit = 0;
    }

    /// Whether commits have to wait for a step of the checkpoint under way. For each quarter of `checkpoint_after_bytes` that the log has
    /// grown since the checkpoint began, one step has to end before the next commit. Without this wait, commits could outrun the
    /// checkpoint, and the memtable would grow without a limit. On a full disk, no commit waits for the checkpoint.
    pub(super) fn is_behind(&self, writer: &LogWriter, options: &StoreOptions) -> bool {
        let behind = writer.files().since_checkpoint() * 4 / options.checkpoint_after_bytes.max(4);
        let checkpoint = self.checkpoint.is_some() && !self.full;
        checkpoint && u64::from(self.steps_since_commit) < behind
    }

    /// Begins the next step, if there is work and no step is under way. `idle` says that no job ended since the last poll.
    ///
    /// # Errors
    /// If a record that has to be copied is damaged, or a live task has no record. The store cannot go on.
    pub(super) fn start(&mut self, idle: bool, shop: &mut Shop<'_>) -> Result<(), String> {
        let wanted = shop.writer.pending_bytes();
        // Without an owner, a step begins only if a frame waits: the first frame of the next owner may need a file. The same holds while
        // the owner is releasing the shard: its last frame may need a file.
        let may_begin = wanted.is_some() || (shop.writer.is_owned() && !self.stopped);
        if self.step.is_some() || !may_begin {
            return Ok(());
        }
        // The catalog must not move records while a page or a histogram is being read, because the read could miss a record or have it
        // twice.
        if self.is_settling() && !shop.reader.is_scanning() {
            self.settle(shop)?;
            self.begin(Step::Settle, Vec::new(), shop);
            return Ok(());
        }
        // A removal makes space. So it begins without a wait, also on a full disk.
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
            // The threads of the other lanes may have the file open. A removed file takes space until all handles of it are closed.
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
        // On a full disk, the checkpoint under way may be what makes space. So the checkpoint and the preparation of a log file take turns.
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

    /// Returns whether a checkpoint may make a step now. If none is under way and no frame is being written, begins one if it fits on the
    /// disk, and if the log is long enough, or space is low and the checkpoint gives back enough. If space is low, gives up all spare log
    /// files.
    fn may_checkpoint(&mut self, commit_waits: bool, shop: &mut Shop<'_>) -> bool {
        let Setup { options, .. } = shop.setup;
        if let Some(checkpoint) = &self.checkpoint {
            // A checkpoint that contains the end of a task must not be durable before the frame with that end is durable. A written frame
            // is synced in time, see `LogWriter::sync`. With `AckLevel::Memory`, the catalog has a commit before its frame is written. So
            // the checkpoint waits until that frame is written.
            let unwritten = options.ack_level == AckLevel::Memory && shop.writer.is_writing();
            return !checkpoint.is_settling() && !unwritten;
        }
        // The frame that is being written may leave out bodies that earlier log records have. A checkpoint that began now would allow the
        // removal of those records.
        if shop.writer.is_writing() {
            return false;
        }
        let log_bytes = shop.writer.files().since_checkpoint();
        let is_due = log_bytes > options.checkpoint_after_bytes;
        let is_low = shop.free_bytes < disk_reserve(shop.catalog, options);
        if is_low {
            // When space is low, the space of a spare log file is needed more than the file.
            let spares = shop.writer.files_mut().give_up_spares();
            spares.into_iter().for_each(|file| self.remove(file));
        }
        // A checkpoint begins only if the disk has space for it and for one more log file, which takes the commits meanwhile. If a commit
        // already waits for a file, the space of that log file is not required: the checkpoint has to make space first.
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

    /// Returns about how many bytes of files a checkpoint gives back, if it copies the live records of `sources`. When space is low, a
    /// checkpoint begins early if these bytes are worth it. While a backup pins the files, a checkpoint gives no bytes back.
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

    /// Returns the next calls of the checkpoint under way.
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

    /// Updates the catalog for a part of the records that the checkpoint wrote: the catalog then finds these records in the new runs. After
    /// the last part, the checkpoint is over. Then the segments whose records the checkpoint copied are listed for removal.
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
    /// If the store cannot go on.
    pub(super) fn completed(&mut self, completion: Completion, shop: &mut Shop<'_>) -> Result<(), String> {
        // A job that is not the step under way only opened or closed a file in another lane.
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
                let next = shop.writer.files_mut().step_done();
                // The thread that writes commits opens the file now. When the current file is full, a descriptor might be lacking.
                next.map(|file| shop.jobs.add(Lane::Commit, vec![Call::Open(file)]));
                self.full = false;
            }
            Step::Checkpoint => return self.checkpoint_step_done(reads, shop),
            Step::Remove | Step::Settle => {}
            Step::Look => {
                // This limit is one log file less than `disk_reserve`. With the reserve as the limit, a disk that new tasks have used up to
                // the reserve would look full.
                let needed = shop.catalog.checkpoint_bytes() + shop.setup.options.log_file_bytes;
                self.full = shop.free_bytes < needed;
            }
        }
        Ok(())
    }

    fn checkpoint_step_done(&mut self, reads: Vec<Vec<u8>>, shop: &mut Shop<'_>) -> Result<(), String> {
        // The disk had space for this step, so the next step need not wait for idle polls.
        self.idle_polls = IDLE_POLLS_PER_TRY;
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
        let came = checkpoint.step_done(reads, shop.catalog);
        let Came::Durable { name, start, dropped } = came else { return Ok(()) };
        // The checkpoint is durable under its name, so the log that the checkpoint covers may be removed.
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
        // The cursors that the reader keeps for the next page may be in these segments. `rearranged` makes the cursors invalid.
        shop.catalog.segments.rearranged();
        for slot in slots {
            let segment = shop.catalog.segments.get_mut(slot);
            if segment.live > 0 {
                // The footers of the segment say that it has live tasks, but no live record of these tasks was found to copy.
                return Err(format!("read {}: {} of its tasks are in no record", segment.name, segment.live));
            }
            segment.leaving = true;
            let (file, reads) = (Arc::clone(&segment.name), shop.reader.begun());
            self.removals.push_back(Removal { file, reads, slot: Some(slot) });
        }
        Ok(())
    }

    /// Takes in that a durable checkpoint begins in the log file of this generation. Frees the log files of lower generations, unless the
    /// files are pinned.
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
        // The file may never have been made, because the disk was full. Then there is nothing to remove.
        if step == Step::Remove && error.source.kind() == std::io::ErrorKind::NotFound {
            return Ok(());
        }
        // If the sync of a log file failed for any reason, the written bytes may be lost, and the sync is never tried again. After a full
        // disk, the bytes that a checkpoint wrote are removed again. But if it is unknown whether the checkpoint has its name, none of its
        // bytes may be removed.
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
                // The rename may have been done although it failed. So the file that the new note names stays, and the note is written
                // again.
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
