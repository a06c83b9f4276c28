//! The writer of the log: writes the commits, and the first and the last frame of an owner.

mod unsynced;

use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::{
    Batch, Epoch, Ownership, Reply, Request, RequestId, Seq, ShardId, TaskEffect, Timestamp,
};

use self::unsynced::Unsynced;
use super::jobs::Jobs;
use super::setup::Setup;
use crate::catalog::Catalog;
use crate::checkpoint::{LogEnd, Start};
use crate::codec::{batch_bytes, put_batch};
use crate::disk::DiskError;
use crate::io::{Call, JobId, Lane};
use crate::log::{END_MARK_BYTES, Files, FrameHead, HEAD_BYTES, frame_bytes, stamp};
use crate::options::AckLevel;
use crate::recovery::Last;

/// Writes the requests that change something into the log, one frame at a time, in their order.
///
/// The writer decides where the next frame goes, and when a frame is durable. The log records who owns the shard. So the writer also
/// refuses the commits and releases of any other owner.
#[derive(Debug)]
pub(super) struct LogWriter {
    files: Files,
    /// The last frame that was written, and the epoch of the last owner.
    end: Last,
    unsynced: Unsynced,
    owned: bool,
    shard: ShardId,
    /// Log records up to this change may be removed. If the body of a task is only in such a record, a later record has to contain the body
    /// again.
    body_floor: Seq,
    /// Requests that write, in their order. None of them is in `pending` or `active`.
    waiting: VecDeque<(RequestId, Request)>,
    /// The frame that was made, and is not being written yet.
    pending: Option<Pending>,
    /// The frame that is being written.
    active: Option<Active>,
}

/// A frame that was made for a request. The frame waits for its file or is being written.
#[derive(Debug)]
struct Pending {
    id: RequestId,
    kind: Kind,
    /// The head of the frame. `generation` and `durable` are set when the frame gets its position in a file.
    head: FrameHead,
    /// The wall clock at the commit. The wall clock in `head` can be later, because the wall clock of a frame is never before that of an
    /// earlier frame.
    now: Timestamp,
    /// Space for the head, then the records.
    bytes: Vec<u8>,
}

/// A frame that is being written. For a commit without any change nothing is written, and the job has no calls.
#[derive(Debug)]
struct Active {
    job: JobId,
    pending: Pending,
    /// The file that the frame is written to; `None` if nothing is written.
    file: Option<Arc<str>>,
    frame_bytes: u64,
    /// Whether the job also syncs the frame and all frames before it.
    synced: bool,
}

#[derive(Debug)]
enum Kind {
    Acquire,
    Commit(Batch),
    /// A commit that was answered before it was written.
    Answered,
    Release,
}

/// A commit that the store has to apply to the catalog and to answer now.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) id: RequestId,
    pub(super) batch: Batch,
    /// The wall clock at the commit.
    pub(super) now: Timestamp,
}

/// The result of [`LogWriter::write_pending`].
#[derive(Debug)]
pub(super) enum Sent {
    /// A job was given out: it writes the frame, or is empty if the commit has no change.
    Frame,
    /// A job that writes the frame was given out. The commit is answered before the frame is written.
    Early(Committed),
    /// No job was given out: a file has to be prepared first, or there is no pending frame.
    NeedsFile,
}

/// The result of a finished job of the writer.
#[derive(Debug)]
pub(super) enum Written {
    /// Nothing that the store has to know.
    Nothing,
    /// The shard has a new owner. `last_wall` is the latest wall clock that the store knew before this owner.
    Acquired {
        id: RequestId,
        last_wall: Timestamp,
    },
    Committed(Committed),
    Released(RequestId),
    /// The write or the sync failed, so the log takes no more frames. `id` is the request of the frame; `None` if the request was answered
    /// before, or if a sync of earlier frames failed.
    Failed {
        id: Option<RequestId>,
        error: DiskError,
    },
}

impl LogWriter {
    pub(super) fn new(shard: ShardId, files: Files, end: Last, body_floor: Seq) -> Self {
        Self {
            shard,
            files,
            unsynced: Unsynced::after(end.frame),
            end,
            owned: false,
            body_floor,
            waiting: VecDeque::new(),
            pending: None,
            active: None,
        }
    }

    /// Sets the last epoch, so that the next owner gets the epoch after it. Called for a new store that continues the history of another
    /// store.
    pub(super) fn continue_from(&mut self, epoch: Epoch) {
        debug_assert!(!self.owned && self.end.frame == 0, "this store has had an owner");
        self.end.epoch = epoch;
    }

    pub(super) fn owns(&self, ownership: Ownership) -> bool {
        self.owned && ownership.shard == self.shard && ownership.epoch == self.end.epoch
    }

    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// Returns the epoch of the last owner, with the last change in the log. The shard may have been released since.
    pub(super) fn ownership(&self) -> Ownership {
        Ownership { shard: self.shard, epoch: self.end.epoch, last_seq: self.end.seq }
    }

    /// Returns the latest wall clock of the log and of the commits. A commit without any change counts too, although nothing was written
    /// for it.
    pub(super) fn wall(&self) -> Timestamp {
        self.end.wall
    }

    /// Returns the last synced frame and the latest wall clock, as a checkpoint records them.
    pub(super) fn synced_end(&self) -> LogEnd {
        LogEnd { frame: self.unsynced.synced(), wall: self.end.wall }
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// Returns the files of the log, for the code that prepares and frees files.
    pub(super) fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    /// Returns the next calls that prepare a log file. `wanted` is the length of the frame that waits for the file (bytes), if a frame
    /// waits.
    pub(super) fn preparation_step(&mut self, wanted: Option<u64>, step_bytes: usize) -> Vec<Call> {
        // The last frame that the opening found may not be synced. The owner's first frame repeats the records of that frame, and is
        // synced. Until then, the number of that frame is not passed on as the last synced one.
        if self.end.again.is_none() {
            self.files.synced_through(self.unsynced.synced());
        }
        self.files.preparation_step(wanted, step_bytes)
    }

    pub(super) fn push(&mut self, id: RequestId, request: Request) {
        self.waiting.push_back((id, request));
    }

    pub(super) fn pop(&mut self) -> Option<(RequestId, Request)> {
        self.waiting.pop_front()
    }

    /// Whether the next request releases the shard.
    pub(super) fn releases_next(&self) -> bool {
        matches!(self.waiting.front(), Some((_, Request::Release { .. })))
    }

    /// Whether the job of a frame, or of a commit without any change, is under way.
    pub(super) fn is_writing(&self) -> bool {
        self.active.is_some()
    }

    /// Returns the length of the frame that waits for a file (bytes); `None` if no frame waits.
    pub(super) fn pending_bytes(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| frame_bytes(pending.bytes.len() - HEAD_BYTES) as u64)
    }

    /// Takes out the pending request and all waiting requests. Returns their ids.
    pub(super) fn take_unwritten(&mut self) -> impl Iterator<Item = RequestId> + '_ {
        let pending = self.pending.take().map(|pending| pending.id);
        pending.into_iter().chain(self.waiting.drain(..).map(|(id, _)| id))
    }

    /// Whether this job is the writer's: the job of the active frame, or the sync under way.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.active.as_ref().is_some_and(|active| active.job == job) || self.unsynced.has(job)
    }

    /// Makes the frame of `request`, and keeps it as the pending frame.
    ///
    /// # Errors
    /// The answer, if the request is refused.
    pub(super) fn prepare(
        &mut self,
        id: RequestId,
        request: Request,
        catalog: &Catalog,
    ) -> Result<(), Box<Reply>> {
        let mut pending = Pending {
            id,
            kind: Kind::Acquire,
            head: FrameHead {
                generation: 0,
                epoch: self.end.epoch,
                number: self.end.frame + 1,
                durable: 0,
                prev_seq: self.end.seq,
                seq: self.end.seq,
                wall: self.end.wall,
            },
            now: Timestamp::EPOCH,
            bytes: vec![0; HEAD_BYTES],
        };
        match request {
            Request::Acquire { shard, wall } => {
                if shard != self.shard {
                    let why = format!("take {shard}: this store has {} only", self.shard);
                    return Err(Box::new(Reply::Failed { why }));
                }
                pending.head.epoch = Epoch(self.end.epoch.0 + 1);
                pending.head.wall = self.end.wall.max(wall);
                if let Some((prev_seq, ops)) = &self.end.again {
                    pending.head.number = self.end.frame;
                    pending.head.prev_seq = *prev_seq;
                    pending.bytes.extend_from_slice(ops);
                }
            }
            Request::Commit { ownership, .. } | Request::Release { ownership } if !self.owns(ownership) => {
                return Err(Box::new(Reply::Fenced));
            }
            Request::Commit { seq, wall, batch, .. } => {
                let last = self.end.seq;
                assert!(seq >= last, "a commit ends at change {seq}, and {last} is committed already");
                let beyond = batch.effects.iter().find(|effect| effect.seq() > seq);
                assert!(beyond.is_none(), "a commit that ends at change {seq} has {:?}", beyond);
                pending.head.seq = seq;
                pending.head.wall = self.end.wall.max(wall);
                pending.now = wall;
                pending.kind = Kind::Commit(batch);
                pending.encode(catalog, self.body_floor);
            }
            // A frame without records. Its head names the last synced frame, so a recovery notices if a frame up to that one is lost.
            Request::Release { .. } => pending.kind = Kind::Release,
            Request::AcquiredPage { .. }
            | Request::GetMany(_)
            | Request::Count(_)
            | Request::ScanDue { .. }
            | Request::ScanFilter { .. } => unreachable!("reads do not go to the log"),
        }
        self.pending = Some(pending);
        Ok(())
    }

    /// Begins a checkpoint at the end of the log. Returns where the checkpoint begins. Log records up to this end may be removed later. So
    /// the pending frame is made again, and contains the bodies that only those records have.
    pub(super) fn begin_checkpoint(&mut self, catalog: &Catalog) -> Start {
        self.files.set_since_checkpoint(0);
        self.body_floor = self.end.seq;
        if let Some(pending) = &mut self.pending {
            pending.encode(catalog, self.body_floor);
        }
        Start {
            seq: self.end.seq,
            frame: self.end.frame,
            generation: self.files.current_generation(),
            epoch: self.end.epoch,
        }
    }

    /// Takes in that a checkpoint of all frames up to `frame` is durable. So those frames need no sync any more.
    pub(super) fn end_checkpoint(&mut self, frame: u64) {
        self.unsynced.synced_through(frame);
    }

    /// Gives out a job that writes the pending frame, if a file has enough space for the frame.
    pub(super) fn write_pending(&mut self, jobs: &mut Jobs, setup: &Setup) -> Sent {
        let Some(mut pending) = self.pending.take() else { return Sent::NeedsFile };
        let is_commit = matches!(pending.kind, Kind::Commit(_));
        if is_commit && pending.bytes.len() == HEAD_BYTES && pending.head.seq == pending.head.prev_seq {
            // The commit has no change, so nothing is written. The completion of the empty job brings the free bytes of the disk.
            let job = jobs.add(Lane::Commit, Vec::new());
            self.active = Some(Active { job, pending, file: None, frame_bytes: 0, synced: false });
            return Sent::Frame;
        }
        let frame_bytes = frame_bytes(pending.bytes.len() - HEAD_BYTES) as u64;
        let Some(place) = self.files.place(frame_bytes) else {
            self.pending = Some(pending);
            return Sent::NeedsFile;
        };
        pending.head.generation = place.generation;
        pending.head.durable = self.unsynced.synced().min(pending.head.number - 1);
        let mut bytes = std::mem::take(&mut pending.bytes);
        stamp(&mut bytes, pending.head, &setup.seeds);
        if place.offset + frame_bytes + END_MARK_BYTES as u64 <= place.len {
            bytes.resize(bytes.len() + END_MARK_BYTES, 0);
        }
        let file = place.file;
        let mut calls = vec![Call::Write { file: Arc::clone(&file), offset: place.offset, bytes }];
        let level = if is_commit { setup.options.ack_level } else { AckLevel::Fsync };
        let synced = level == AckLevel::Fsync;
        if synced {
            let earlier = self.unsynced.files().filter(|earlier| **earlier != file);
            calls.extend(earlier.cloned().map(Call::Sync));
            calls.push(Call::Sync(Arc::clone(&file)));
        }
        let early = if level == AckLevel::Memory { pending.take_commit() } else { None };
        let job = jobs.add(Lane::Commit, calls);
        self.active = Some(Active { job, pending, file: Some(file), frame_bytes, synced });
        early.map_or(Sent::Frame, Sent::Early)
    }

    /// Adds a background job that syncs all frames that are written and not synced, unless such a job is under way.
    ///
    /// A checkpoint lists ended tasks. The frames with these ends must be synced before the checkpoint gets its name (a rename). This sync
    /// comes in time for these reasons:
    /// - The background does its jobs in order, and each poll adds this sync.
    /// - A poll may begin one step of a checkpoint before the sync, if the checkpoint is behind. So at most one further step comes between
    ///   the step that lists ended tasks and the sync.
    /// - One step always comes between the last list of ended tasks and the rename: the step writes the end block, which lists no tasks.
    pub(super) fn sync(&mut self, jobs: &mut Jobs) {
        self.unsynced.sync(self.end.frame, jobs);
    }

    /// Takes in that a job of the writer is over. Returns what the store has to do about it.
    pub(super) fn completed(&mut self, job: JobId, result: Result<(), DiskError>) -> Written {
        if let Some(frame) = self.unsynced.completed(job) {
            return match result {
                Ok(()) => {
                    self.unsynced.synced_through(frame);
                    Written::Nothing
                }
                Err(error) => Written::Failed { id: None, error },
            };
        }
        let Some(Active { mut pending, file, frame_bytes, synced, .. }) =
            self.active.take_if(|active| active.job == job)
        else {
            return Written::Nothing;
        };
        let id = pending.id;
        if let Err(error) = result {
            let is_answered = matches!(pending.kind, Kind::Answered);
            return Written::Failed { id: (!is_answered).then_some(id), error };
        }
        if let Some(file) = &file {
            if synced {
                self.unsynced.synced_through(pending.head.number);
            } else {
                self.unsynced.written(file, pending.head.number);
            }
            self.files.written(frame_bytes);
            self.end.frame = pending.head.number;
            self.end.seq = pending.head.seq;
            self.end.again = None;
        }
        let last_wall = std::mem::replace(&mut self.end.wall, pending.head.wall);
        match &pending.kind {
            Kind::Acquire => {
                self.end.epoch = pending.head.epoch;
                self.owned = true;
                Written::Acquired { id, last_wall }
            }
            Kind::Commit(_) => pending.take_commit().map_or(Written::Nothing, Written::Committed),
            Kind::Answered => Written::Nothing,
            Kind::Release => {
                self.owned = false;
                Written::Released(id)
            }
        }
    }
}

impl Pending {
    /// Makes the bytes of a commit's records. A record leaves out the body of its task only if an earlier record has the body, and the log
    /// keeps the earlier record at least as long.
    fn encode(&mut self, catalog: &Catalog, body_floor: Seq) {
        let Kind::Commit(batch) = &mut self.kind else { return };
        for effect in &mut batch.effects {
            if let TaskEffect::Stored { task, body_known } = effect {
                *body_known = *body_known && catalog.has_body_in_memtable(task.id, body_floor);
            }
        }
        self.bytes.truncate(HEAD_BYTES);
        self.bytes.reserve(batch_bytes(batch));
        put_batch(&mut self.bytes, batch);
    }

    /// Takes the commit out, and marks the frame as answered. Returns `None` if the frame belongs to no commit, or the commit was taken
    /// before.
    fn take_commit(&mut self) -> Option<Committed> {
        match std::mem::replace(&mut self.kind, Kind::Answered) {
            Kind::Commit(batch) => Some(Committed { id: self.id, batch, now: self.now }),
            Kind::Acquire | Kind::Answered | Kind::Release => None,
        }
    }
}

#[cfg(test)]
mod tests;
