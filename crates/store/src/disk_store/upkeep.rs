//! Work that nobody waits for: the next log file, the checkpoint, the removal of what is needed no more.

use std::collections::VecDeque;
use std::sync::Arc;

use super::store::DiskStore;
use crate::checkpoint::{LogEnd, Start, Writer};
use crate::disk::{Disk, DiskError, DiskOp};
use crate::io::{Call, Completion, Io, JobId, Lane};
use crate::layout::SHARD;

/// The background work of one store. One step is under way at a time, so a commit waits for one at most.
#[derive(Debug)]
pub(super) struct Upkeep {
    step: Option<(JobId, Step)>,
    checkpoint: Option<Running>,
    /// The checkpoint that stands; it is removed once the next one does.
    standing: Option<Arc<str>>,
    /// The number of the last checkpoint that was begun.
    number: u64,
    removals: VecDeque<Arc<str>>,
    /// The disk was full when something was made ready.
    full: bool,
    /// The last try on a full disk was for the checkpoint.
    checkpoint_had_turn: bool,
    /// Polls without an event since then.
    idle_polls: u32,
    /// The owner releases the shard: no step begins but for its last frame.
    stopped: bool,
}

#[derive(Debug)]
struct Running {
    writer: Writer,
    /// Bytes of log that count again if it is given up.
    log_bytes: u64,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Step {
    Prepare,
    Checkpoint,
    Remove,
    /// Nothing but how much space there is.
    Look,
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
            removals: VecDeque::new(),
            full: false,
            checkpoint_had_turn: false,
            idle_polls: 0,
            stopped: false,
        }
    }

    pub(super) fn is_working(&self) -> bool {
        self.step.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    fn next_removal(&mut self) -> Option<Arc<str>> {
        if self.stopped { None } else { self.removals.pop_front() }
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
        // What is to be removed makes space, so it does not wait.
        let removes = !self.upkeep.removals.is_empty() && !self.upkeep.stopped;
        if self.upkeep.full && !removes && !self.may_try_again(idle, wanted.is_some()) {
            return;
        }
        let Some((step, calls)) = self.next_step(wanted) else { return };
        let job = self.send(Lane::Background, calls);
        self.upkeep.step = Some((job, step));
    }

    fn next_step(&mut self, wanted: Option<u64>) -> Option<(Step, Vec<Call>)> {
        if let Some(file) = self.upkeep.next_removal() {
            let mut calls = vec![Call::Remove(file)];
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
            return Some((Step::Prepare, self.files.preparation_step(wanted, step_bytes)));
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

    /// Whether a checkpoint is under way; begins one if it is time.
    fn may_checkpoint(&mut self, commit_waits: bool) -> bool {
        if self.upkeep.checkpoint.is_some() {
            return true;
        }
        let log_bytes = self.files.since_checkpoint();
        let threshold = self.options.checkpoint_after_bytes.max(self.table.live_bytes() / 2);
        // When space runs low it is worth its writing much sooner: it lets go of the log.
        let low = self.free_bytes < self.disk_reserve() && log_bytes > self.options.log_file_bytes;
        // One that will not fit is not begun. The log goes on meanwhile, unless the commit that waits is all there is.
        let beside = if commit_waits { 0 } else { self.options.log_file_bytes };
        if (log_bytes <= threshold && !low) || self.free_bytes < self.checkpoint_bytes() + beside {
            return false;
        }
        let start = Start {
            seq: self.end.seq,
            frame: self.end.frame,
            generation: self.files.current_generation(),
            epoch: self.epoch,
        };
        self.upkeep.number += 1;
        let writer = Writer::new(start, self.upkeep.number, &self.seeds);
        self.upkeep.checkpoint = Some(Running { writer, log_bytes });
        self.files.set_since_checkpoint(0);
        true
    }

    fn checkpoint_step(&mut self) -> Vec<Call> {
        let Some(running) = &mut self.upkeep.checkpoint else { return Vec::new() };
        let log = LogEnd { frame: self.end.frame, wall: self.end.wall };
        let calls = running.writer.step(&self.table, log, &self.seeds, self.options.background_step_bytes);
        if crate::planted::is("log-freed-before-checkpoint-durable") {
            let removed = self.files.free_through(running.writer.start().frame);
            self.upkeep.removals.extend(removed);
        }
        calls
    }

    pub(super) fn upkeep_completed(&mut self, completion: Completion) {
        let Some((job, step)) = self.upkeep.step.take() else { return };
        debug_assert_eq!(job, completion.id, "a step that was never begun was completed");
        match completion.result {
            Ok(()) => self.step_done(step),
            Err(error) => self.step_failed(step, &error),
        }
    }

    fn step_done(&mut self, step: Step) {
        match step {
            Step::Prepare => {
                self.files.step_done();
                self.upkeep.full = false;
            }
            Step::Checkpoint => self.checkpoint_step_done(),
            Step::Remove => {}
            Step::Look => {
                // Less than growth leaves, or the store's own growth would pass for a full disk.
                let needed = self.checkpoint_bytes() + self.options.log_file_bytes;
                self.upkeep.full = self.free_bytes < needed;
            }
        }
    }

    fn checkpoint_step_done(&mut self) {
        // There was space for this step, so the next one need not wait.
        self.upkeep.idle_polls = IDLE_POLLS_PER_TRY;
        let Some(running) = self.upkeep.checkpoint.take_if(|running| running.writer.is_done()) else {
            return;
        };
        // It is durable under its name. Only now may go what it makes up for.
        let removed = self.files.free_through(running.writer.start().frame);
        self.upkeep.removals.extend(removed);
        let before = self.upkeep.standing.replace(Arc::clone(running.writer.name()));
        self.upkeep.removals.extend(before);
    }

    fn step_failed(&mut self, step: Step, error: &DiskError) {
        // A file that was to be made and was not, for want of space, is not there to be removed.
        if step == Step::Remove && error.source.kind() == std::io::ErrorKind::NotFound {
            return;
        }
        // A log file whose sync failed may have lost what was written, whatever it says of the reason: never again on that
        // file. A checkpoint that is not finished is given up and its file removed.
        let log_sync = step == Step::Prepare && error.op == DiskOp::Sync;
        if !error.is_full() || log_sync {
            self.fail(error);
            return;
        }
        self.upkeep.full = true;
        self.upkeep.idle_polls = 0;
        match step {
            Step::Prepare => self.upkeep.removals.extend(self.files.step_refused()),
            Step::Checkpoint => self.give_up_checkpoint(),
            Step::Remove | Step::Look => {}
        }
    }

    fn give_up_checkpoint(&mut self) {
        let Some(running) = self.upkeep.checkpoint.take() else { return };
        let log_bytes = self.files.since_checkpoint() + running.log_bytes;
        self.files.set_since_checkpoint(log_bytes);
        // Under which name it stands is not known if the last step failed, and then it stays until the next opening.
        if !running.writer.is_done() {
            self.upkeep.removals.push_back(Arc::clone(running.writer.written_as()));
        }
    }
}
