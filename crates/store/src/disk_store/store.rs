//! The store itself: requests in, replies out.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use tickwheel_engine::{
    Ended, EngineState, Epoch, Ownership, Population, QueueName, Reply, Request, RequestId, Rule, RuleName,
    Seq, ShardId, ShardStore, Timestamp,
};

use super::checkpointing::Checkpoint;
use super::look::Look;
use super::reading::{Reading, What};
use super::unsynced::Unsynced;
use super::upkeep::Upkeep;
use super::writes::{Active, Pending};
use crate::catalog::Catalog;
use crate::checksum::Seeds;
use crate::disk::{Disk, DiskError};
use crate::io::{Call, Completion, Io, Job, JobId, Lane};
use crate::log::Files;
use crate::options::StoreOptions;
use crate::report::RecoveryReport;

/// Keeps the tasks of one shard in a directory. A commit that was answered with [`Reply::Done`] survives a crash of the
/// process, of the system, and a power cut, as far as the disk keeps what it says it has synced; an [`AckLevel`](crate::AckLevel) may
/// ask for less.
///
/// How it works: a commit is one frame at the end of a log, written and synced in one go; then it is done, and the tasks in it are
/// *fresh*: in memory and in the log. Log files are filled with zeroes before they are used and are used again, for overwriting syncs much
/// faster than growing. A checkpoint, written in small steps beside the commits, puts what is fresh into *segments*, files of tasks that
/// are due in the same hour, day or thirty days, each in the order of time, and then lets go of the log and of the memory. What ended before it never
/// reaches a segment. A segment is removed whole once nothing in it is live. Of a task in a segment memory has some 23 bytes, and 17
/// more if its owner gave it a key. `docs/explanation/format.md` has the bytes.
///
/// Calls, in order: [`open`](Self::open) reads the log and what segments say of themselves; `Acquire` makes a new epoch durable; then
/// commits and reads; `Release`; drop. [`poll`](ShardStore::poll) brings replies and drives the background work, so it is to be called
/// after each wake-up of the [`Io`], and now and then when nothing happens. A read is answered from memory at once, from segments
/// some polls later; it never waits for a commit, nor a commit for it.
///
/// **Failures.** After a failed write or sync in the log nothing is acknowledged any more, ever, and the sync is not tried
/// again: reads go on, everything else answers [`Reply::Failed`]. The same holds after a read that failed or brought what does not check
/// out; that read is answered with [`Reply::Failed`] too. A disk that is full while a file or a checkpoint is made ready
/// breaks nothing: `room` goes down, and it is tried again.
///
/// **Room** is what is left in the prepared log files and on the disk, less a reserve: a quarter of a log file for acks and
/// cancels, one checkpoint of all that is fresh, and two log files for what is committed until it is done. It is nothing once
/// a write that makes something ready has met a full disk, until space is found. A commit of nothing writes nothing and brings
/// the room as it is now; ask that way while growth is refused.
///
/// It is *not* for sharing: one process at a time has the directory, from `open` to the drop.
#[derive(Debug)]
pub struct DiskStore<D, I> {
    pub(super) io: I,
    pub(super) options: StoreOptions,
    pub(super) secret: [u8; 16],
    pub(super) seeds: Seeds,
    pub(super) report: RecoveryReport,
    pub(super) catalog: Catalog,
    /// Counts the changes to the runs that the catalog knows.
    pub(super) layout: u64,
    /// The last generation of a segment that was given out.
    pub(super) segment_generation: u64,
    /// Bodies in records of the log up to this change are not there for later records to count on.
    pub(super) body_floor: Seq,
    pub(super) files: Files,
    pub(super) upkeep: Upkeep,
    pub(super) reading: Reading,
    pub(super) end: LogEnd,
    pub(super) unsynced: Unsynced,
    pub(super) epoch: Epoch,
    pub(super) owned: bool,
    /// Requests that write, in their order; the first of them is not in `pending` or `active`.
    pub(super) waiting: VecDeque<(RequestId, Request)>,
    /// The frame that waits for a file to be prepared.
    pub(super) pending: Option<Pending>,
    /// The frame that is being written.
    pub(super) active: Option<Active>,
    pub(super) replies: Vec<(RequestId, Reply)>,
    /// Why nothing is written any more.
    pub(super) failed: Option<String>,
    pub(super) free_bytes: u64,
    pub(super) jobs: u64,
    /// The look at the lock that is under way.
    pub(super) lock_look: Option<JobId>,
    pub(super) disk: PhantomData<fn() -> D>,
}

/// A checkpoint is late when so many times as much log waits for it as starts one.
const CHECKPOINT_LATE: u64 = 4;

/// The end of the log.
#[derive(Clone, Debug)]
pub(super) struct LogEnd {
    pub(super) frame: u64,
    pub(super) seq: Seq,
    pub(super) wall: Timestamp,
    /// The change before the last frame and its records, until the first frame of this process has repeated it.
    pub(super) again: Option<(Seq, Vec<u8>)>,
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// What recovery found.
    #[must_use]
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.report
    }

    /// The next owner comes after this one. For a store that is made now and goes on with what another one had.
    pub(crate) fn continue_from(&mut self, epoch: Epoch) {
        debug_assert!(!self.owned && self.end.frame == 0, "a store that has had an owner goes on by itself");
        self.epoch = epoch;
    }

    /// Whether the disk was full when something was made ready.
    pub(crate) fn is_full(&self) -> bool {
        self.upkeep.is_full()
    }

    /// Whether a checkpoint is under way.
    pub(crate) fn is_checkpointing(&self) -> bool {
        self.upkeep.checkpoint.is_some()
    }

    /// How many tasks each queue has that has any.
    pub(crate) fn populations(&self) -> Vec<(QueueName, Population)> {
        self.catalog.populations()
    }

    /// How many tasks are live, as of the last commit that is done.
    #[must_use]
    pub fn len(&self) -> usize {
        self.catalog.len()
    }

    /// Whether no task is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The durable state of the engine.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.catalog.state()
    }

    /// What owners laid down, in the order of the names.
    pub fn rules(&self) -> impl Iterator<Item = (&RuleName, &Arc<Rule>)> {
        self.catalog.rules().by_name().iter()
    }

    /// The ended tasks that are remembered, in the order of (queue, seq).
    pub fn ended(&self) -> impl Iterator<Item = &Ended> {
        self.catalog.histories().after(None)
    }

    /// The latest wall instant in the records; [`Timestamp::EPOCH`] in a new store.
    #[must_use]
    pub fn last_wall(&self) -> Timestamp {
        self.end.wall
    }

    /// The number of the last checkpoint that was begun, counted since the store was made.
    #[must_use]
    pub fn checkpoints_begun(&self) -> u64 {
        self.upkeep.number()
    }

    /// Bytes of log that no durable checkpoint makes up for, if they are `CHECKPOINT_LATE` times what starts a checkpoint or more: the
    /// checkpoint is given up again and again, or the disk is too slow for it. A start reads all of them.
    #[must_use]
    pub fn checkpoint_late(&self) -> Option<u64> {
        let under_way = self.upkeep.checkpoint.as_ref().map_or(0, Checkpoint::log_bytes);
        let bytes = self.files.since_checkpoint() + under_way;
        (bytes >= CHECKPOINT_LATE.saturating_mul(self.options.checkpoint_after_bytes)).then_some(bytes)
    }

    /// Whether the disk has something to do for this store, so that another poll will bring something.
    #[must_use]
    pub fn is_working(&self) -> bool {
        let reads = !self.reading.is_over(u64::MAX);
        self.active.is_some() || reads || self.upkeep.is_working() || !self.replies.is_empty()
    }

    pub(super) fn owns(&self, ownership: Ownership) -> bool {
        self.owned && ownership.shard == ShardId::ONLY && ownership.epoch == self.epoch
    }

    pub(super) fn send(&mut self, lane: Lane, mut calls: Vec<Call>) -> JobId {
        // The disk with the lock is in the hand of the background. No file is made, and no checkpoint gets its name, in a directory that may be
        // another process's by now.
        let makes = |call: &Call| matches!(call, Call::Create(_) | Call::Rename { .. });
        if lane == Lane::Background && calls.iter().any(makes) {
            calls.insert(0, Call::CheckLock);
        }
        self.jobs += 1;
        let id = JobId(self.jobs);
        self.io.submit(lane, Job { id, calls });
        id
    }

    /// Begins to look whether the directory is still this process's. If not, nothing is written any more. Call it about once a second,
    /// for the store has no clock; while a look is under way another call does nothing.
    pub fn look_at_lock(&mut self) {
        if self.lock_look.is_none() && self.failed.is_none() {
            self.lock_look = Some(self.send(Lane::Background, vec![Call::CheckLock]));
        }
    }

    /// From now on nothing is written and nothing is acknowledged.
    pub(super) fn fail(&mut self, error: &DiskError) {
        self.fail_because(error.to_string());
    }

    pub(super) fn fail_because(&mut self, why: String) {
        let why = self.failed.get_or_insert(why).clone();
        let pending = self.pending.take().map(|pending| pending.id);
        let waiting = self.waiting.drain(..).map(|(id, _)| id);
        let failed = pending.into_iter().chain(waiting);
        self.replies.extend(failed.map(|id| (id, Reply::Failed { why: why.clone() })));
    }

    /// Bytes of growth that can be taken. The type's doc says how it is reckoned.
    pub(super) fn room(&self) -> u64 {
        if self.upkeep.is_full() {
            return 0;
        }
        let for_ends = self.options.log_file_bytes / 4;
        let left = self.files.bytes_left().saturating_add(self.free_bytes);
        left.saturating_sub(self.disk_reserve() + for_ends)
    }

    /// Bytes of the disk that growth leaves free: a checkpoint of all there is, and two log files for the commits until it
    /// begins and while it is written.
    pub(super) fn disk_reserve(&self) -> u64 {
        self.checkpoint_bytes() + 2 * self.options.log_file_bytes
    }

    /// A checkpoint has no more bytes than this.
    pub(super) fn checkpoint_bytes(&self) -> u64 {
        // An ended task takes at most 512 bytes: names of 200 and 256 bytes, and numbers. A segment is listed in 64, may get tombstones and
        // a tail, and be a new file.
        let segments = self.catalog.segments.iter().count() as u64;
        let tombstones: usize =
            self.catalog.segments.iter().map(|(_, segment)| segment.tombstones.len()).sum();
        let ended = 512 * self.catalog.histories().len() as u64;
        let rules = self.catalog.rules().bytes();
        // An entry and its share of blocks beside each record are in the estimate of that.
        self.catalog.fresh.bytes() + ended + rules + 256 * segments + 10 * tombstones as u64
    }

    fn completed(&mut self, mut completion: Completion) {
        self.free_bytes = completion.free_bytes;
        if self.lock_look.take_if(|job| *job == completion.id).is_some() {
            if let Err(error) = &completion.result {
                self.fail(error);
            }
            return;
        }
        if self.active.as_ref().is_some_and(|active| active.job == completion.id) {
            self.write_completed(completion.result);
        } else if !self.read_completed(&mut completion) && !self.sync_completed(&completion) {
            self.upkeep_completed(completion);
        }
    }
}

impl<D: Disk, I: Io<D>> ShardStore for DiskStore<D, I> {
    fn submit(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Acquire { .. } | Request::Commit { .. } | Request::Release { .. } => {
                self.waiting.push_back((id, request));
                self.start_write();
            }
            Request::AcquiredPage { after } => self.begin_acquired_page(id, Some(&after), None),
            Request::GetMany(wanted) => {
                let look = Look::new(wanted, &self.catalog, &self.seeds, &self.options.bounds);
                self.begin_read(id, What::Look(look));
            }
            Request::ScanDue { .. } | Request::ScanFilter { .. } | Request::Count(_)
                if self.parks_scans() =>
            {
                self.reading.parked.push_back((id, request));
            }
            Request::ScanDue { .. } | Request::ScanFilter { .. } | Request::Count(_) => {
                self.begin_scan(id, request);
            }
        }
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        let mut completions = Vec::new();
        self.io.poll(&mut completions);
        let idle = completions.is_empty();
        for completion in completions {
            self.completed(completion);
        }
        // A checkpoint that is behind goes first: what commits then wait for is its step.
        if self.is_behind() {
            self.start_upkeep(false);
        }
        self.start_write();
        self.sync_log();
        self.start_upkeep(idle);
        self.begin_parked();
        replies.append(&mut self.replies);
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}
