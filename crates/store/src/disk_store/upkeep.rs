//! Work that nobody waits for: the next log file, the checkpoint, the removal of what is needed no more.

use std::collections::VecDeque;
use std::sync::Arc;

use super::checkpointing::{Came, Checkpoint};
use super::moving::{self, Moving};
use super::store::DiskStore;
use crate::checkpoint::Start;
use crate::disk::{Disk, DiskError, DiskOp};
use crate::io::{Call, Completion, Io, JobId, Lane};
use crate::layout::SHARD;
use crate::options::AckLevel;

/// The background work of one store. One step is under way at a time.
#[derive(Debug)]
pub(super) struct Upkeep {
    step: Option<(JobId, Step)>,
    pub(super) checkpoint: Option<Checkpoint>,
    /// The checkpoint that stands; it is removed once the next one does.
    standing: Option<Arc<str>>,
    /// The number of the last checkpoint that was begun.
    number: u64,
    /// What takes away what a checkpoint wrote that was given up. Nothing else begins before.
    undo: VecDeque<Call>,
    removals: VecDeque<Removal>,
    /// Nothing that was listed may go.
    pinned: bool,
    /// Log files of lower generations could go, were they not pinned.
    free_below: u64,
    /// The disk was full when something was made ready.
    full: bool,
    /// The last try on a full disk was for the checkpoint.
    checkpoint_had_turn: bool,
    /// Polls without an event since then.
    idle_polls: u32,
    /// Steps since the last commit began.
    steps_since_commit: u32,
    /// The owner releases the shard: no step begins but for its last frame.
    stopped: bool,
}

/// Something that is to be taken away.
#[derive(Debug)]
struct Removal {
    call: Call,
    /// Reads up to this one may still need it.
    reads: u64,
    /// A segment's slot, to be free then.
    slot: Option<u32>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Step {
    Prepare,
    /// Writes the note that the prepared file is the newest.
    Note,
    Checkpoint,
    Remove,
    /// Nothing but how much space there is.
    Look,
    /// Nothing: memory took over a part of a checkpoint, and the next part waits for what came meanwhile.
    Settle,
}

/// While the disk is full, this many idle polls pass between two tries: each costs calls that will most likely fail.
const IDLE_POLLS_PER_TRY: u32 = 8;

impl Upkeep {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

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

    pub(super) fn is_working(&self) -> bool {
        self.step.is_some()
    }

    /// Whether memory has still to take over what a checkpoint wrote.
    pub(super) fn is_settling(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(Checkpoint::is_settling)
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    fn remove(&mut self, file: Arc<str>) {
        self.removals.push_back(Removal { call: Call::Remove(file), reads: 0, slot: None });
    }

    pub(super) fn standing(&self) -> Option<&Arc<str>> {
        self.standing.as_ref()
    }

    pub(super) fn pin(&mut self) {
        self.pinned = true;
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    pub(super) fn resume(&mut self) {
        self.stopped = false;
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Begins the next step, if none is under way. `idle` says that this poll brought nothing.
    pub(super) fn start_upkeep(&mut self, idle: bool) {
        if self.upkeep.step.is_some() || self.failed.is_some() {
            return;
        }
        // Before the first frame nothing is known to be ours; after a release nothing is.
        if !self.owned && self.pending.is_none() {
            return;
        }
        let wanted = self.pending.as_ref().map(super::writes::Pending::frame_bytes);
        // The last frame may need a file; nothing else begins once the shard is being released.
        if self.upkeep.stopped && wanted.is_none() {
            return;
        }
        // What a page passes by must not move meanwhile.
        if self.upkeep.is_settling() && !self.reading.is_scanning() {
            self.settle();
            let job = self.send(Lane::Background, Vec::new());
            self.upkeep.step = Some((job, Step::Settle));
            return;
        }
        // What is to be removed makes space, so it does not wait.
        let removes = self.upkeep.removals.front().is_some_and(|removal| self.reading.is_over(removal.reads));
        let removes = removes && !self.upkeep.stopped && !self.upkeep.pinned;
        if self.upkeep.full
            && !removes
            && self.upkeep.undo.is_empty()
            && !self.may_try_again(idle, wanted.is_some())
        {
            return;
        }
        let Some((step, calls)) = self.next_step(wanted, removes) else { return };
        let job = self.send(Lane::Background, calls);
        self.upkeep.step = Some((job, step));
    }

    fn next_step(&mut self, wanted: Option<u64>, removes: bool) -> Option<(Step, Vec<Call>)> {
        if let Some(call) = self.upkeep.undo.pop_front() {
            return Some((Step::Remove, vec![call]));
        }
        if let Some(removal) = self.upkeep.removals.pop_front_if(|_| removes) {
            if let Call::Remove(file) = &removal.call {
                // Other threads may have it open, and what is open takes space.
                for lane in [Lane::Commit, Lane::Read] {
                    self.send(lane, vec![Call::Close(Arc::clone(file))]);
                }
            }
            if let Some(slot) = removal.slot {
                self.catalog.segments.remove(slot);
                self.layout += 1;
            }
            let mut calls = vec![removal.call];
            if self.upkeep.removals.is_empty() {
                calls.push(Call::SyncDir(SHARD.into()));
            }
            return Some((Step::Remove, calls));
        }
        // On a full disk a checkpoint that is under way may be what makes space, so the two take turns.
        let checkpoint_first = self.upkeep.full && !self.upkeep.checkpoint_had_turn && !self.upkeep.stopped;
        self.upkeep.checkpoint_had_turn = checkpoint_first;
        if checkpoint_first && self.may_checkpoint(wanted.is_some()) {
            return Some((Step::Checkpoint, self.checkpoint_step()));
        }
        if self.files.wants_preparation(wanted) {
            let step_bytes = self.options.background_step_bytes;
            // The last frame that an opening found may not be synced, until the first frame of this owner repeats it.
            if self.end.again.is_none() {
                self.files.synced_through(self.unsynced.synced());
            }
            let calls = self.files.preparation_step(wanted, step_bytes);
            return Some((if self.files.is_noting() { Step::Note } else { Step::Prepare }, calls));
        }
        if self.upkeep.stopped {
            return None;
        }
        if self.upkeep.full {
            return Some((Step::Look, Vec::new()));
        }
        self.may_checkpoint(wanted.is_some()).then(|| (Step::Checkpoint, self.checkpoint_step()))
    }

    fn may_try_again(&mut self, idle: bool, waited_for: bool) -> bool {
        self.upkeep.idle_polls += u32::from(idle);
        let polls = if waited_for { 1 } else { IDLE_POLLS_PER_TRY };
        if self.upkeep.idle_polls < polls {
            return false;
        }
        self.upkeep.idle_polls = 0;
        true
    }

    /// Whether a checkpoint has calls to make; begins one if it is time.
    fn may_checkpoint(&mut self, commit_waits: bool) -> bool {
        if let Some(checkpoint) = &self.upkeep.checkpoint {
            // What it writes down of deaths must not outlive the frames that tell of them. A frame that is written is synced in time, see
            // `sync_log`; one that was answered before it is written is waited for.
            let unwritten = self.options.ack_level == AckLevel::Memory && self.active.is_some();
            return !checkpoint.is_settling() && !unwritten;
        }
        // The frame that is being written counts on bodies that a checkpoint would let go of.
        if self.active.is_some() {
            return false;
        }
        let log_bytes = self.files.since_checkpoint();
        let is_due = log_bytes > self.options.checkpoint_after_bytes;
        let is_low = self.free_bytes < self.disk_reserve();
        if is_low {
            // A spare is worth more as space.
            let spares = self.files.give_up_spares();
            spares.into_iter().for_each(|file| self.upkeep.remove(file));
        }
        // One that will not fit is not begun. The log goes on meanwhile, unless the commit that waits is all there is.
        let beside = if commit_waits { 0 } else { self.options.log_file_bytes };
        let space = self.free_bytes.checked_sub(self.checkpoint_bytes() + beside);
        let Some(space) = space.filter(|_| is_due || is_low) else { return false };
        let sources = Moving::choose(&self.catalog, self.end.wall, space, &self.options.bounds);
        if !is_due && self.gives_back(&sources) <= self.options.log_file_bytes {
            return false;
        }
        let start = Start {
            seq: self.end.seq,
            frame: self.end.frame,
            generation: self.files.current_generation(),
            epoch: self.epoch,
        };
        self.upkeep.number += 1;
        let tasks = self.catalog.fresh.snapshot();
        let checkpoint = Checkpoint::new(start, self.upkeep.number, self.end.wall, log_bytes, tasks, sources);
        self.upkeep.checkpoint = Some(checkpoint);
        self.files.set_since_checkpoint(0);
        self.body_floor = start.seq;
        self.encode_pending_again();
        true
    }

    /// Bytes of files that a checkpoint gives back, if it moves what is live in `sources`. When space runs low, it is worth its writing much
    /// sooner for their sake. A backup keeps all of them.
    fn gives_back(&self, sources: &[u32]) -> u64 {
        if self.upkeep.pinned {
            return 0;
        }
        let segments = &self.catalog.segments;
        let empty = segments.iter().filter(|(_, segment)| segment.live == 0 && !segment.leaving);
        let empty: u64 = empty.map(|(_, segment)| segment.len).sum();
        let moved: u64 = sources.iter().map(|slot| moving::dead_bytes(segments.get(*slot))).sum();
        self.files.bytes_kept() + empty + moved
    }

    /// Whether the checkpoint under way does not keep up: it is given one step for each commit once as much log has come as a quarter of what it
    /// covers, two at half of that, and so on. Else memory would grow with the tasks that wait to be written.
    pub(super) fn is_behind(&self) -> bool {
        let log = self.files.since_checkpoint();
        let behind = log * 4 / self.options.checkpoint_after_bytes.max(4);
        let checkpoint = self.upkeep.checkpoint.is_some() && !self.upkeep.full;
        checkpoint && u64::from(self.upkeep.steps_since_commit) < behind
    }

    /// Whether the next commit has to wait for the step under way.
    pub(super) fn holds_up_commits(&self) -> bool {
        self.upkeep.is_working() && self.is_behind()
    }

    pub(super) fn commit_begins(&mut self) {
        self.upkeep.steps_since_commit = 0;
    }

    /// Memory takes over a part of what the checkpoint wrote.
    fn settle(&mut self) {
        let Some(checkpoint) = &mut self.upkeep.checkpoint else { return };
        self.layout += 1;
        if let Came::Settled { sources } = checkpoint.settle(&mut self.catalog, &self.options.bounds) {
            self.upkeep.checkpoint = None;
            self.remove_segments(sources);
        }
    }

    pub(super) fn upkeep_completed(&mut self, completion: Completion) {
        // Nobody waits for the closing of a file.
        let Some((_, step)) = self.upkeep.step.take_if(|(job, _)| *job == completion.id) else { return };
        self.upkeep.steps_since_commit = self.upkeep.steps_since_commit.saturating_add(1);
        match completion.result {
            Ok(()) => self.step_done(step, completion.reads),
            Err(error) => self.step_failed(step, &error),
        }
    }

    fn step_done(&mut self, step: Step, reads: Vec<Vec<u8>>) {
        match step {
            Step::Prepare | Step::Note => {
                self.files.step_done();
                self.upkeep.full = false;
            }
            Step::Checkpoint => self.checkpoint_step_done(reads),
            Step::Remove | Step::Settle => {}
            Step::Look => {
                // Less than growth leaves, or the store's own growth would pass for a full disk.
                let needed = self.checkpoint_bytes() + self.options.log_file_bytes;
                self.upkeep.full = self.free_bytes < needed;
            }
        }
    }

    fn checkpoint_step_done(&mut self, reads: Vec<Vec<u8>>) {
        // There was space for this step, so the next one need not wait.
        self.upkeep.idle_polls = IDLE_POLLS_PER_TRY;
        let Some(checkpoint) = &mut self.upkeep.checkpoint else { return };
        let came = checkpoint.step_done(reads, &mut self.catalog);
        let Came::Durable { name, start, dropped } = came else { return };
        // It is durable under its name. Only now may go what it makes up for; whether that was ever synced is of no meaning any more.
        self.unsynced.synced_through(start.frame);
        self.let_go_of_log(start.generation);
        let before = self.upkeep.standing.replace(name);
        before.into_iter().for_each(|before| self.upkeep.remove(before));
        self.remove_segments(dropped);
    }

    fn remove_segments(&mut self, slots: Vec<u32>) {
        let reads = self.reading.begun();
        // What a page keeps for the next one may lead to them.
        self.layout += 1;
        for slot in slots {
            let segment = self.catalog.segments.get_mut(slot);
            if segment.live > 0 {
                // Its footers say so, and its records do not.
                let why = format!("read {}: {} of its tasks are in no record", segment.name, segment.live);
                self.fail_because(why);
                return;
            }
            segment.leaving = true;
            let file = Arc::clone(&segment.name);
            self.upkeep.removals.push_back(Removal { call: Call::Remove(file), reads, slot: Some(slot) });
        }
    }

    /// A durable checkpoint begins in the log file of this generation.
    pub(super) fn let_go_of_log(&mut self, generation: u64) {
        self.upkeep.free_below = self.upkeep.free_below.max(generation);
        if self.upkeep.pinned {
            return;
        }
        for file in self.files.free_below(generation) {
            self.upkeep.remove(file);
        }
    }

    fn step_failed(&mut self, step: Step, error: &DiskError) {
        // A file that was to be made and was not, for want of space, is not there to be removed.
        if step == Step::Remove && error.source.kind() == std::io::ErrorKind::NotFound {
            return;
        }
        // A log file whose sync failed may have lost what was written, whatever it says of the reason: never again on that file. What a
        // checkpoint wrote is cut off again. But if it may have its name or not, nothing can be taken away any more.
        let log_sync = step == Step::Prepare && error.op == DiskOp::Sync;
        let named =
            error.op == DiskOp::SyncDir && self.upkeep.checkpoint.as_ref().is_some_and(Checkpoint::is_named);
        // It is unknown whether a note whose directory sync failed is durable, and a failed sync is never tried again.
        let noted = step == Step::Note && error.op == DiskOp::SyncDir;
        if !error.is_full() || log_sync || named || noted {
            self.fail(error);
            return;
        }
        self.upkeep.full = true;
        self.upkeep.idle_polls = 0;
        match step {
            Step::Prepare | Step::Note => {
                if step == Step::Note {
                    self.upkeep.undo.push_back(Call::Remove(self.files.note_under_way()));
                    // The new note may stand by now, so the file that it names stays, and the note is written again.
                    if error.op == DiskOp::Rename {
                        self.files.note_again();
                        return;
                    }
                }
                let file = self.files.step_refused();
                file.into_iter().for_each(|file| self.upkeep.remove(file));
            }
            Step::Checkpoint => self.give_up_checkpoint(),
            Step::Remove | Step::Look | Step::Settle => {}
        }
    }

    /// Pinned files may go again.
    pub(super) fn unpin_files(&mut self) {
        self.upkeep.pinned = false;
        self.let_go_of_log(self.upkeep.free_below);
    }

    fn give_up_checkpoint(&mut self) {
        let Some(checkpoint) = self.upkeep.checkpoint.take() else { return };
        let (log_bytes, calls) = checkpoint.give_up(&mut self.catalog);
        self.layout += 1;
        self.files.set_since_checkpoint(self.files.since_checkpoint() + log_bytes);
        self.upkeep.undo.extend(calls);
    }
}
