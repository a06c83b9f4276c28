//! The store itself: requests in, replies out.

use std::marker::PhantomData;
use std::sync::Arc;

use tickwheel_engine::{
    Acquired, Ended, EngineState, Epoch, Population, QueueName, Reply, Request, RequestId, Rule, RuleName,
    ShardStore, Timestamp,
};

use super::jobs::Jobs;
use super::log_writer::{Committed, LogWriter, Sent, Written};
use super::maintenance::{Maintenance, Shop, disk_reserve};
use super::reader::{Answer, Outcome, Reader, View};
use super::setup::Setup;
use crate::catalog::Catalog;
use crate::disk::Disk;
use crate::io::{Call, Completion, Io, JobId, Lane};
use crate::report::RecoveryReport;

/// Keeps the tasks of one shard in a directory. A commit that was answered with [`Reply::Done`] survives a crash of the
/// process, of the system, and a power cut, as far as the disk keeps what it says it has synced; an [`AckLevel`](crate::AckLevel) may
/// ask for less.
///
/// How it works: a commit is one frame at the end of a log, written and synced in one go. Then the commit is done, and its tasks are
/// in the *memtable*, and in the log. Log files are filled with zeroes before they are used, and are used again, because overwriting syncs
/// much faster than growing. A checkpoint is written in small steps beside the commits. It puts the tasks of the memtable into *segments*, files of
/// tasks that are due in the same hour, day or thirty days, each in the order of time; then the log and the memory of these tasks are
/// freed. Tasks that ended before the checkpoint never reach a segment. A segment is removed whole once nothing in it is live. A task in a
/// segment takes some 23 bytes of memory, and 17 more if its owner gave it a key. `docs/explanation/format.md` has the bytes.
///
/// Calls, in order: [`open`](Self::open) reads the log and what segments say of themselves; `Acquire` makes a new epoch durable; then
/// commits and reads; `Release`; drop. [`poll`](ShardStore::poll) brings replies and drives the background work, so it is to be called
/// after each wake-up of the [`Io`], and now and then when nothing happens. A read is answered from memory at once, from segments
/// some polls later; it never waits for a commit, nor a commit for it.
///
/// **Failures.** After a failed write or sync in the log nothing is acknowledged any more, ever, and the sync is not tried again: reads go
/// on, every other request answers [`Reply::Failed`]. The same holds after a read that failed or brought bytes that do not check out; that
/// read is answered with [`Reply::Failed`] too. A disk that is full while a file or a checkpoint is made ready breaks nothing: `room` goes
/// down, and the step is tried again.
///
/// **Room** is the bytes left in the prepared log files and on the disk, less a reserve: a quarter of a log file for acks and cancels, one
/// checkpoint of all tasks of the memtable, and two log files for the commits until the checkpoint is done. Room is 0 once a write that makes
/// something ready has met a full disk, until space is found. A commit of nothing writes nothing and brings the room as it is now; ask that
/// way while growth is refused.
///
/// The store is *not* for sharing: one process at a time has the directory, from `open` to the drop.
#[derive(Debug)]
pub struct DiskStore<D, I> {
    pub(super) setup: Setup,
    pub(super) report: RecoveryReport,
    pub(super) catalog: Catalog,
    pub(super) writer: LogWriter,
    pub(super) reader: Reader,
    pub(super) maintenance: Maintenance,
    pub(super) outside: Outside<D, I>,
}

/// The connection of a store to its owner and to its disk.
#[derive(Debug)]
pub(super) struct Outside<D, I> {
    io: I,
    jobs: Jobs,
    replies: Vec<(RequestId, Reply)>,
    /// The reason why nothing is written any more.
    failed: Option<String>,
    /// Free bytes of the disk.
    free_bytes: u64,
    /// The check of the lock that is under way.
    lock_check: Option<JobId>,
    disk: PhantomData<fn() -> D>,
}

impl<D, I> Outside<D, I> {
    pub(super) fn new(io: I, free_bytes: u64) -> Self {
        Self {
            io,
            jobs: Jobs::default(),
            replies: Vec::new(),
            failed: None,
            free_bytes,
            lock_check: None,
            disk: PhantomData,
        }
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// The report of recovery.
    #[must_use]
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.report
    }

    /// Makes the next owner come after this epoch. For a store that is made now and continues the history of another store.
    pub(crate) fn continue_from(&mut self, epoch: Epoch) {
        self.writer.continue_from(epoch);
    }

    /// Whether the disk was full when a file was made ready.
    pub(crate) fn is_full(&self) -> bool {
        self.maintenance.is_full()
    }

    /// Whether a checkpoint is under way.
    pub(crate) fn is_checkpointing(&self) -> bool {
        self.maintenance.is_checkpointing()
    }

    /// The queues that have tasks, and how many each has.
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

    /// The rules of owners, in the order of their names.
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
        self.writer.wall()
    }

    /// The number of the last checkpoint that was begun, counted since the store was made.
    #[must_use]
    pub fn checkpoints_begun(&self) -> u64 {
        self.maintenance.number()
    }

    /// Bytes of log that no durable checkpoint covers, if they are at least four times as many as start a checkpoint: the checkpoint is
    /// given up again and again, or the disk is too slow for it. A start reads all of them.
    #[must_use]
    pub fn checkpoint_late(&self) -> Option<u64> {
        self.maintenance.checkpoint_late(&self.writer, &self.setup.options)
    }

    /// Whether the disk has a job of this store, so that another poll will bring something.
    #[must_use]
    pub fn is_working(&self) -> bool {
        let answers = !self.outside.replies.is_empty();
        self.writer.is_writing() || self.reader.is_reading() || self.maintenance.is_working() || answers
    }

    /// Begins to check whether the directory still belongs to this process. If not, nothing is written any more. Call it about once a
    /// second, because the store has no clock; while a check is under way another call does nothing.
    pub fn look_at_lock(&mut self) {
        if self.outside.lock_check.is_none() && self.outside.failed.is_none() {
            self.outside.lock_check = Some(self.outside.jobs.add(Lane::Background, vec![Call::CheckLock]));
            self.hand_over();
        }
    }

    /// Hands the jobs that the owners gave out to the disk.
    fn hand_over(&mut self) {
        let Outside { io, jobs, .. } = &mut self.outside;
        jobs.take_ready().for_each(|(lane, job)| io.submit(lane, job));
    }

    /// From now on nothing is written and nothing is acknowledged.
    fn fail(&mut self, why: String) {
        let why = self.outside.failed.get_or_insert(why).clone();
        let unwritten = self.writer.take_unwritten();
        self.outside.replies.extend(unwritten.map(|id| (id, Reply::Failed { why: why.clone() })));
    }

    /// Bytes of growth that can be taken. The type's doc says how they are reckoned.
    fn room(&self) -> u64 {
        if self.maintenance.is_full() {
            return 0;
        }
        let options = &self.setup.options;
        let for_ends = options.log_file_bytes / 4;
        let left = self.writer.files().bytes_left().saturating_add(self.outside.free_bytes);
        left.saturating_sub(disk_reserve(&self.catalog, options) + for_ends)
    }

    fn completed(&mut self, completion: Completion) {
        self.outside.free_bytes = completion.free_bytes;
        let job = completion.id;
        if self.outside.lock_check.take_if(|check| *check == job).is_some() {
            if let Err(error) = completion.result {
                self.fail(error.to_string());
            }
        } else if self.writer.has(job) {
            let written = self.writer.completed(job, completion.result);
            self.written(written);
        } else if self.reader.has(job) {
            let result = completion.result.map(|()| completion.reads).map_err(|error| error.to_string());
            self.read(|reader, view| reader.completed(job, result, view));
        } else {
            self.maintain(|maintenance, shop| maintenance.completed(completion, shop));
        }
    }

    /// Begins the next write, if none is under way.
    fn start_write(&mut self) {
        while !self.writer.is_writing() {
            if self.writer.pending_bytes().is_none() && !self.prepare_next() {
                return;
            }
            match self.writer.write_pending(&mut self.outside.jobs, &self.setup) {
                Sent::Frame => {}
                Sent::Early(committed) => self.commit(committed),
                Sent::NeedsFile => return,
            }
        }
    }

    /// Makes the frame of the next request that writes, if there is one and it need not wait. Refused requests are answered on the way.
    fn prepare_next(&mut self) -> bool {
        loop {
            let works = self.maintenance.is_working();
            if self.writer.releases_next() && self.outside.failed.is_none() && works {
                // One step of background work goes on at most; then only the last frame is under way.
                self.maintenance.stop();
                return false;
            }
            if works && self.maintenance.is_behind(&self.writer, &self.setup.options) {
                return false;
            }
            let Some((id, request)) = self.writer.pop() else { return false };
            self.maintenance.commit_begins();
            let reply = match self.outside.failed.clone() {
                Some(why) => Reply::Failed { why },
                None => match self.writer.prepare(id, request, &self.catalog) {
                    Ok(()) => return true,
                    Err(reply) => *reply,
                },
            };
            self.outside.replies.push((id, reply));
        }
    }

    fn written(&mut self, written: Written) {
        match written {
            Written::Nothing => {}
            Written::Acquired { id, last_wall } => {
                self.maintenance.resume();
                self.read(|reader, view| reader.acquired_page(id, None, Some(last_wall), view));
            }
            Written::Committed(committed) => self.commit(committed),
            Written::Released(id) => self.outside.replies.push((id, Reply::Released)),
            Written::Failed { id, error } => {
                let why = error.to_string();
                self.fail(why.clone());
                self.outside.replies.extend(id.map(|id| (id, Reply::Failed { why })));
            }
        }
    }

    /// Makes a commit count from now on, and answers it.
    fn commit(&mut self, Committed { id, batch, now }: Committed) {
        self.catalog.apply(&batch.effects);
        if let Some(state) = batch.state {
            self.catalog.join_state(state);
        }
        batch.rules.into_iter().for_each(|effect| self.catalog.apply_rule(effect));
        self.catalog.forget_until(now);
        self.outside.replies.push((id, Reply::Done { room: self.room() }));
    }

    fn read(&mut self, with: impl FnOnce(&mut Reader, &mut View<'_>) -> Option<Answer>) {
        let parks = self.parks();
        let mut view = View {
            catalog: &self.catalog,
            setup: &self.setup,
            jobs: &mut self.outside.jobs,
            settling: self.maintenance.is_settling(),
            parks,
        };
        let Some(Answer { request, outcome }) = with(&mut self.reader, &mut view) else { return };
        let reply = match outcome {
            Outcome::Reply(reply) => reply,
            Outcome::FirstPage(page, last_wall) => Reply::Acquired(Acquired {
                ownership: self.writer.ownership(),
                last_wall,
                state: self.catalog.state(),
                secret: self.setup.secret,
                room: self.room(),
                page,
            }),
            // The synced bytes cannot be read: nothing is guessed, and nothing is written on top of them.
            Outcome::Failed(why) => {
                self.outside.replies.push((request, Reply::Failed { why: why.clone() }));
                return self.fail(why);
            }
        };
        self.outside.replies.push((request, reply));
    }

    /// Whether a new page waits for those under way.
    fn parks(&self) -> bool {
        self.maintenance.is_settling() && self.outside.failed.is_none()
    }

    fn maintain(&mut self, with: impl FnOnce(&mut Maintenance, &mut Shop<'_>) -> Result<(), String>) {
        let mut shop = Shop {
            catalog: &mut self.catalog,
            writer: &mut self.writer,
            reader: &self.reader,
            jobs: &mut self.outside.jobs,
            setup: &self.setup,
            free_bytes: self.outside.free_bytes,
        };
        if let Err(why) = with(&mut self.maintenance, &mut shop) {
            self.fail(why);
        }
    }

    /// Begins the next step of maintenance, if none is under way.
    fn start_maintenance(&mut self, idle: bool) {
        if self.outside.failed.is_none() {
            self.maintain(|maintenance, shop| maintenance.start(idle, shop));
        }
    }
}

impl<D: Disk, I: Io<D>> ShardStore for DiskStore<D, I> {
    fn submit(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Acquire { .. } | Request::Commit { .. } | Request::Release { .. } => {
                self.writer.push(id, request);
                self.start_write();
            }
            Request::AcquiredPage { after } => {
                self.read(|reader, view| reader.acquired_page(id, Some(&after), None, view));
            }
            Request::GetMany(wanted) => self.read(|reader, view| reader.look_up(id, wanted, view)),
            Request::ScanDue { .. } | Request::ScanFilter { .. } | Request::Count(_) => {
                self.read(|reader, view| reader.scan(id, request, view));
            }
        }
        self.hand_over();
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        let mut completions = Vec::new();
        self.outside.io.poll(&mut completions);
        let idle = completions.is_empty();
        for completion in completions {
            self.completed(completion);
        }
        // A checkpoint that is behind goes first: its step is what the next commits wait for.
        if self.maintenance.is_behind(&self.writer, &self.setup.options) {
            self.start_maintenance(false);
        }
        self.start_write();
        if self.outside.failed.is_none() {
            self.writer.sync(&mut self.outside.jobs);
        }
        self.start_maintenance(idle);
        for (id, request) in self.reader.take_parked(self.parks()) {
            self.read(|reader, view| reader.begin_scan(id, request, view));
        }
        self.hand_over();
        replies.append(&mut self.outside.replies);
    }

    fn failure(&self) -> Option<&str> {
        self.outside.failed.as_deref()
    }
}
