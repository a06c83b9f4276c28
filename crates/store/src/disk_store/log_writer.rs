//! The writer of the log: commits, and the first and last frame of an owner.

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
/// The writer decides where the next frame goes and when a frame is durable. The log says who owns the shard, so the writer knows that,
/// too.
#[derive(Debug)]
pub(super) struct LogWriter {
    files: Files,
    /// The last frame that was written, and the epoch of the last owner.
    end: Last,
    unsynced: Unsynced,
    owned: bool,
    /// Records of the log up to this change may go, so a later record must not rely on the bodies in them.
    body_floor: Seq,
    /// Requests that write, in their order. None of them is in `pending` or `active`.
    waiting: VecDeque<(RequestId, Request)>,
    /// The frame that waits for a file to be prepared.
    pending: Option<Pending>,
    /// The frame that is being written.
    active: Option<Active>,
}

/// A frame on its way to a file.
#[derive(Debug)]
struct Pending {
    id: RequestId,
    kind: Kind,
    /// The head of the frame. Its file and the last synced frame are known once the frame has a place.
    head: FrameHead,
    /// The time of the wall clock at the commit; the one in the head never goes back.
    now: Timestamp,
    /// Space for the head, then the records.
    bytes: Vec<u8>,
}

/// A frame that is being written. For a commit of nothing: the wait for an empty job.
#[derive(Debug)]
struct Active {
    job: JobId,
    pending: Pending,
    /// The file it goes to; `None` if nothing is written.
    file: Option<Arc<str>>,
    frame_bytes: u64,
    /// Whether the job syncs it, and all frames before it.
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

/// A commit that counts from now on.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) id: RequestId,
    pub(super) batch: Batch,
    /// The time of the wall clock at the commit.
    pub(super) now: Timestamp,
}

/// The result of [`LogWriter::write_pending`].
#[derive(Debug)]
pub(super) enum Sent {
    /// The frame is in a job.
    Frame,
    /// The frame is in a job, and the commit counts before the frame is written.
    Early(Committed),
    /// A file has to be prepared first.
    NeedsFile,
}

/// The result of a finished job of the writer.
#[derive(Debug)]
pub(super) enum Written {
    /// Nothing that the store has to know.
    Nothing,
    /// There is a new owner. `last_wall` is the latest wall instant before it.
    Acquired {
        id: RequestId,
        last_wall: Timestamp,
    },
    Committed(Committed),
    Released(RequestId),
    /// The log takes no more frames. The request that the frame belonged to is not answered yet, if there is one.
    Failed {
        id: Option<RequestId>,
        error: DiskError,
    },
}

impl LogWriter {
    pub(super) fn new(files: Files, end: Last, body_floor: Seq) -> Self {
        Self {
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

    /// Makes the next owner come after this epoch. For a store that is made now and continues the history of another store.
    pub(super) fn continue_from(&mut self, epoch: Epoch) {
        debug_assert!(!self.owned && self.end.frame == 0, "this store has had an owner");
        self.end.epoch = epoch;
    }

    pub(super) fn owns(&self, ownership: Ownership) -> bool {
        self.owned && ownership.shard == ShardId::ONLY && ownership.epoch == self.end.epoch
    }

    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// The owner, with the last change in the log.
    pub(super) fn ownership(&self) -> Ownership {
        Ownership { shard: ShardId::ONLY, epoch: self.end.epoch, last_seq: self.end.seq }
    }

    /// The latest wall instant in the records.
    pub(super) fn wall(&self) -> Timestamp {
        self.end.wall
    }

    /// The log up to the last synced frame, as a checkpoint writes it down.
    pub(super) fn synced_end(&self) -> LogEnd {
        LogEnd { frame: self.unsynced.synced(), wall: self.end.wall }
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// The files of the log, for the code that prepares and frees them.
    pub(super) fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    /// The next calls on the way to a log file for a frame of `wanted` bytes.
    pub(super) fn preparation_step(&mut self, wanted: Option<u64>, step_bytes: usize) -> Vec<Call> {
        // The last frame that an opening found may not be synced, until the first frame of this owner repeats it.
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

    /// Whether a frame is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.active.is_some()
    }

    /// Bytes of the frame that waits for a file.
    pub(super) fn pending_bytes(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| frame_bytes(pending.bytes.len() - HEAD_BYTES) as u64)
    }

    /// Takes away all requests that are not being written.
    pub(super) fn take_unwritten(&mut self) -> impl Iterator<Item = RequestId> + '_ {
        let pending = self.pending.take().map(|pending| pending.id);
        pending.into_iter().chain(self.waiting.drain(..).map(|(id, _)| id))
    }

    /// Whether this job is the writer's.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.active.as_ref().is_some_and(|active| active.job == job) || self.unsynced.has(job)
    }

    /// Makes the frame of `request` the pending one.
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
                if shard != ShardId::ONLY {
                    let why = format!("take {shard}: this store has {} only", ShardId::ONLY);
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
            // A frame without records. It proves that the frame before it was synced, so a recovery will miss that frame if it is lost.
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

    /// A checkpoint begins at the end of the log. Bodies in the log up to here may go with it, so the pending frame must not rely on them.
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

    /// A checkpoint of all frames up to `frame` is durable. Whether those frames were synced does not matter any more.
    pub(super) fn end_checkpoint(&mut self, frame: u64) {
        self.unsynced.synced_through(frame);
    }

    /// Sends the pending frame to its file, if there is one with enough space.
    pub(super) fn write_pending(&mut self, jobs: &mut Jobs, setup: &Setup) -> Sent {
        let Some(mut pending) = self.pending.take() else { return Sent::NeedsFile };
        let is_commit = matches!(pending.kind, Kind::Commit(_));
        if is_commit && pending.bytes.len() == HEAD_BYTES && pending.head.seq == pending.head.prev_seq {
            // The empty job asks for the free space only.
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

    /// Begins to sync all frames that are not synced, if no such job is under way.
    ///
    /// A checkpoint relies on this sync. A step of a checkpoint writes down which tasks are gone, and the frames that say so are written by
    /// then. The background does its jobs in their order, and each poll gives out this job, at the latest after one step of a checkpoint that is
    /// behind. So the sync of those frames is given out at most one step after the step that relies on it. The checkpoint gets its name in a
    /// step of its own, and the block before the name is a step of its own, too: those frames are synced by then.
    pub(super) fn sync(&mut self, jobs: &mut Jobs) {
        self.unsynced.sync(self.end.frame, jobs);
    }

    /// Takes in that a job of the writer is over.
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
    /// Makes the records of a commit. A record goes without the body of its task only if the log keeps an earlier record with the body at
    /// least as long.
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

    /// The commit, which counts as answered from now on.
    fn take_commit(&mut self) -> Option<Committed> {
        match std::mem::replace(&mut self.kind, Kind::Answered) {
            Kind::Commit(batch) => Some(Committed { id: self.id, batch, now: self.now }),
            Kind::Acquire | Kind::Answered | Kind::Release => None,
        }
    }
}

#[cfg(test)]
mod tests;
