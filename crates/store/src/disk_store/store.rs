//! The store itself: takes requests and gives replies.

use std::marker::PhantomData;
use std::sync::Arc;

use tickwheel_engine::{
    Acquired, Ended, EngineState, Epoch, Population, QueueName, Reply, Request, RequestId, Rule, RuleName,
    ShardStore, Timestamp,
};

use super::closing::Closing;
use super::jobs::Jobs;
use super::log_writer::{Committed, LogWriter, Sent, Written};
use super::maintenance::{Maintenance, Shop, disk_reserve};
use super::reader::{Answer, Outcome, Reader, View};
use super::setup::Setup;
use crate::catalog::Catalog;
use crate::clock_note::ClockNote;
use crate::disk::Disk;
use crate::io::{Call, Completion, Io, JobId, Lane};
use crate::report::RecoveryReport;

/// Keeps the tasks of one shard in a directory. A commit that was answered with [`Reply::Done`] survives a crash of the process, a crash of
/// the system, and a power cut, if the disk keeps what it reported as synced. With another [`AckLevel`](crate::AckLevel) than `Fsync`, less
/// is promised.
///
/// How it works: a commit is one frame at the end of a log, written and synced by one job. Then the commit is done, and its tasks are in
/// the log and in the *memtable*. Log files are filled with zeroes before they are used, and are used again, because a sync after
/// overwriting is much faster than a sync of a file that grows. A checkpoint is written in small steps beside the commits. The checkpoint
/// moves the tasks of the memtable to *segments*. A segment is a file of tasks that are due in the same hour, day or thirty days, or that
/// were due when they were written. Each run of a segment is ordered by due time. After the checkpoint, the log and the memory of the moved
/// tasks are freed. A task that ends before a checkpoint has written it never reaches a segment. The file of a segment is removed once no
/// record in it is live. A task in a segment takes about 23 bytes of memory, and 17 more if its owner gave it a key. The format of the
/// files is in `docs/explanation/format.md`.
///
/// The calls, in order: [`open`](Self::open) reads the log and the footers of the segments. `Acquire` makes a new epoch durable. Then come
/// commits and reads, then `Release` and the drop. [`poll`](ShardStore::poll) brings replies and drives the background work. So call it
/// after each wake-up of the [`Io`], and from time to time when nothing happens. A read is answered by the next poll if memory has the
/// answer. A read of segments is answered some polls later. Reads do not wait for commits, and commits do not wait for reads.
///
/// **Failures.** After a failed write or sync in the log, the store begins no write any more, and never tries the sync again. Reads go on;
/// every other request is answered with [`Reply::Failed`], except for a write under way that succeeds. The same holds after a read that
/// failed or brought damaged bytes; that read is answered with [`Reply::Failed`] too. If the disk is full while a log file is prepared or a
/// checkpoint is written, `room` falls to 0, and the step is tried again later. But the store fails if a log file or the new name of a file
/// could not be synced.
///
/// **Room** is the free bytes by which tasks may still grow: the bytes left in the prepared log files and on the disk, less a reserve. The
/// reserve is a quarter of a log file for acks and cancels, one checkpoint of all tasks of the memtable, and two log files for the commits
/// until the checkpoint is done. Once a step of the background work has met a full disk, room is 0 until space is found. A commit without
/// any change writes nothing, and its reply brings the room as it is now. So send such a commit to ask for the room while growth is
/// refused.
///
/// One process at a time owns the directory, from `open` to the drop of the store.
#[derive(Debug)]
pub struct DiskStore<D, I> {
    pub(super) setup: Setup,
    pub(super) report: RecoveryReport,
    pub(super) catalog: Catalog,
    pub(super) writer: LogWriter,
    pub(super) reader: Reader,
    pub(super) maintenance: Maintenance,
    pub(super) outside: Outside<D, I>,
    /// The note of the wall clock that the opening found.
    pub(super) clock: Option<ClockNote>,
    pub(super) closing: Closing,
}

/// The connection of a store to its owner and to its disk.
#[derive(Debug)]
pub(super) struct Outside<D, I> {
    io: I,
    jobs: Jobs,
    replies: Vec<(RequestId, Reply)>,
    /// The reason why the store writes nothing any more; `None` while the store works.
    failed: Option<String>,
    /// Free bytes of the disk, as of the last job that ended.
    free_bytes: u64,
    /// The job that checks the lock, if it is under way.
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
    /// Returns the report of the recovery that the opening made.
    #[must_use]
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.report
    }

    /// Sets the last epoch, so that the next owner gets the epoch after it. Called for a new store that continues the history of another
    /// store.
    pub(crate) fn continue_from(&mut self, epoch: Epoch) {
        self.writer.continue_from(epoch);
    }

    /// Whether a step of the background work met a full disk, and space has not been found since.
    pub(crate) fn is_full(&self) -> bool {
        self.maintenance.is_full()
    }

    /// Whether a checkpoint is under way.
    pub(crate) fn is_checkpointing(&self) -> bool {
        self.maintenance.is_checkpointing()
    }

    /// Returns the queues that have tasks, and how many tasks each has.
    pub(crate) fn populations(&self) -> Vec<(QueueName, Population)> {
        self.catalog.populations()
    }

    /// Returns how many tasks have not ended, dead tasks among them, after the last commit that is done.
    #[must_use]
    pub fn len(&self) -> usize {
        self.catalog.len()
    }

    /// Whether every task has ended, after the last commit that is done. A dead task has not ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the state of the engine, after the last commit that is done.
    #[must_use]
    pub fn state(&self) -> EngineState {
        self.catalog.state()
    }

    /// Returns the rules that owners configured, in the order of their names.
    pub fn rules(&self) -> impl Iterator<Item = (&RuleName, &Arc<Rule>)> {
        self.catalog.rules().by_name().iter()
    }

    /// Returns the ended tasks that the history still has, in the order of (queue, seq).
    pub fn ended(&self) -> impl Iterator<Item = &Ended> {
        self.catalog.histories().after(None)
    }

    /// Returns the latest wall clock of the log and of the commits; [`Timestamp::EPOCH`] in a new store.
    #[must_use]
    pub fn last_wall(&self) -> Timestamp {
        self.writer.wall()
    }

    /// Returns the number of the last checkpoint that was begun. The numbers go on after an opening: the next checkpoint gets a higher
    /// number than all checkpoint files.
    #[must_use]
    pub fn checkpoints_begun(&self) -> u64 {
        self.maintenance.number()
    }

    /// Returns how many bytes of log no durable checkpoint covers, if they are at least four times the bytes that start a checkpoint.
    /// Otherwise `None`. The likely cause is a full disk, so that the checkpoint cannot begin or is given up again and again, or a disk
    /// that is too slow. The next opening has to read all of this log.
    #[must_use]
    pub fn checkpoint_late(&self) -> Option<u64> {
        self.maintenance.checkpoint_late(&self.writer, &self.setup.options)
    }

    /// Whether a write, a read or a step of maintenance is under way, or a reply waits. Then the store needs another poll. A sync in the
    /// background and a check of the lock are not counted.
    #[must_use]
    pub fn is_working(&self) -> bool {
        let answers = !self.outside.replies.is_empty();
        self.writer.is_writing()
            || self.reader.is_reading()
            || self.maintenance.is_working()
            || self.closing.is_working()
            || answers
    }

    /// Begins to check whether the directory still belongs to this process. If it does not, the store fails and writes nothing any more.
    /// Call this function about once a second, because the store has no clock. The call does nothing while a check is under way, and after
    /// a failure.
    pub fn look_at_lock(&mut self) {
        if self.outside.lock_check.is_none() && self.outside.failed.is_none() {
            self.outside.lock_check = Some(self.outside.jobs.add(Lane::Background, vec![Call::CheckLock]));
            self.hand_over();
        }
    }

    /// Whether a thread of the store waits for a file descriptor.
    pub(crate) fn lacks_descriptor(&self) -> bool {
        self.outside.io.lacks_descriptor()
    }

    /// Returns the note of the wall clock that the opening found.
    pub(crate) fn clock_note(&self) -> Option<ClockNote> {
        self.clock
    }

    /// Begins to write a note of the wall clock. If it cannot be written, a later opening has an earlier note, or none.
    pub(crate) fn note_clock(&mut self, note: ClockNote) {
        if self.outside.failed.is_none() {
            self.outside.jobs.add(Lane::Background, vec![note.call()]);
            self.hand_over();
        }
    }

    /// Hands all ready jobs to the `Io`.
    fn hand_over(&mut self) {
        let Outside { io, jobs, .. } = &mut self.outside;
        jobs.take_ready().for_each(|(lane, job)| io.submit(lane, job));
    }

    /// Makes the store fail: after this call, the store begins no write. Only the first reason is kept. Answers the requests that wait for
    /// a write with [`Reply::Failed`]. A write that is under way is answered when it ends.
    fn fail(&mut self, why: String) {
        let why = self.outside.failed.get_or_insert(why).clone();
        let unwritten = self.writer.take_unwritten();
        self.outside.replies.extend(unwritten.map(|id| (id, Reply::Failed { why: why.clone() })));
    }

    /// Returns the free bytes by which tasks may still grow. The doc of the type says how the number is made.
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
        } else if let Some(release) = self.closing.completed(&completion) {
            self.outside.replies.push((release, Reply::Released));
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

    /// Gives out the job of the next request that writes, if no such job is under way.
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

    /// Makes the frame of the next request that writes. Returns whether a frame is pending now: `false` if there is no request, or if it
    /// has to wait for maintenance. Requests that are refused are answered on the way.
    fn prepare_next(&mut self) -> bool {
        loop {
            let works = self.maintenance.is_working();
            if self.writer.releases_next() && self.outside.failed.is_none() && works {
                // The release waits for the step under way. After this step, a step begins only if the owner's last frame needs a file.
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
            Written::Released(id) => {
                // A store that failed may have lost its directory to another process.
                let is_sound = self.outside.failed.is_none();
                if !(is_sound && self.closing.begin(id, &mut self.outside.jobs)) {
                    self.outside.replies.push((id, Reply::Released));
                }
            }
            Written::Failed { id, error } => {
                let why = error.to_string();
                self.fail(why.clone());
                self.outside.replies.extend(id.map(|id| (id, Reply::Failed { why })));
            }
        }
    }

    /// Applies a commit to the catalog, and answers it.
    fn commit(&mut self, Committed { id, batch, now }: Committed) {
        self.catalog.apply(&batch.effects);
        if let Some(state) = batch.state {
            self.catalog.join_state(state);
        }
        batch.rules.into_iter().for_each(|effect| self.catalog.apply_rule(effect));
        self.catalog.forget_until(now);
        let reply = match self.outside.io.lacks_descriptor() {
            true => Reply::DoneWithoutDescriptor,
            false => Reply::Done { room: self.room() },
        };
        self.outside.replies.push((id, reply));
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
            // Synced bytes cannot be read. The store must not guess what they were, and writes nothing more.
            Outcome::Failed(why) => {
                self.outside.replies.push((request, Reply::Failed { why: why.clone() }));
                return self.fail(why);
            }
        };
        self.outside.replies.push((request, reply));
    }

    /// Whether a new page has to wait until the pages under way are over.
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

    /// Begins the next step of maintenance, if there is work, no step is under way, and the store has not failed.
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
        // A checkpoint that is behind makes its next step before the next commits, because the commits wait for that step.
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
