//! What goes into the log: commits, and the first and last frame of an owner.

use std::sync::Arc;

use tickwheel_engine::{
    Acquired, AcquiredCursor, AcquiredPage, Batch, Epoch, Found, Ownership, Reply, Request, RequestId, Seq,
    ShardId, TaskEffect, Timestamp, Wanted,
};

use super::look::Look;
use super::reading::What as Read;
use super::store::DiskStore;
use crate::codec::{batch_bytes, put_batch};
use crate::disk::{Disk, DiskError, DiskOp};
use crate::io::{Call, Io, JobId, Lane};
use crate::log::{END_MARK_BYTES, FrameHead, HEAD_BYTES, frame_bytes, stamp};
use crate::options::AckLevel;

/// A frame on its way to a file.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: RequestId,
    what: What,
    number: u64,
    epoch: Epoch,
    prev_seq: Seq,
    seq: Seq,
    wall: Timestamp,
    /// What the wall clock showed; `wall` never goes back.
    now: Timestamp,
    /// Room for the head, then the records.
    bytes: Vec<u8>,
}

/// A frame that is being written, or the wait for one that is not needed.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) job: JobId,
    pending: Pending,
    /// Where it goes; `None` if nothing is written.
    file: Option<Arc<str>>,
    frame_bytes: u64,
    /// Whether it is synced when it is done, and all before it with it.
    synced: bool,
    retried: bool,
}

#[derive(Debug)]
enum What {
    Acquire,
    Commit(Batch),
    /// A commit that was answered before it was written.
    Answered,
    Release,
}

impl Pending {
    pub(super) fn frame_bytes(&self) -> u64 {
        frame_bytes(self.bytes.len() - HEAD_BYTES) as u64
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Begins the next write, if none is under way.
    pub(super) fn start_write(&mut self) {
        while self.active.is_none() {
            if self.pending.is_none() {
                let releases = matches!(self.waiting.front(), Some((_, Request::Release { .. })));
                if releases && self.failed.is_none() && self.upkeep.is_working() {
                    // One step of background work at most; then nothing is under way but the last frame.
                    self.upkeep.stop();
                    return;
                }
                if self.holds_up_commits() {
                    return;
                }
                let Some((id, request)) = self.waiting.pop_front() else { return };
                self.commit_begins();
                match self.prepare(id, request) {
                    Ok(pending) => self.pending = Some(pending),
                    Err(reply) => {
                        self.replies.push((id, *reply));
                        continue;
                    }
                }
            }
            if !self.write_pending() {
                return;
            }
        }
    }

    /// What `request` writes, or the answer if it writes nothing.
    fn prepare(&mut self, id: RequestId, request: Request) -> Result<Pending, Box<Reply>> {
        if let Some(why) = &self.failed {
            return Err(Box::new(Reply::Failed { why: why.clone() }));
        }
        let mut pending = Pending {
            id,
            what: What::Acquire,
            number: self.end.frame + 1,
            epoch: self.epoch,
            prev_seq: self.end.seq,
            seq: self.end.seq,
            wall: self.end.wall,
            now: Timestamp::EPOCH,
            bytes: vec![0; HEAD_BYTES],
        };
        match request {
            Request::Acquire { shard, wall } => {
                if shard != ShardId::ONLY {
                    let why = format!("take {shard}: this store has {} only", ShardId::ONLY);
                    return Err(Box::new(Reply::Failed { why }));
                }
                pending.epoch = Epoch(self.epoch.0 + 1);
                pending.wall = self.end.wall.max(wall);
                if let Some((prev_seq, ops)) = &self.end.again {
                    pending.number = self.end.frame;
                    pending.prev_seq = *prev_seq;
                    pending.bytes.extend_from_slice(ops);
                }
            }
            Request::Commit { ownership, seq, wall, batch } => {
                if !self.owns(ownership) {
                    return Err(Box::new(Reply::Fenced));
                }
                let last = self.end.seq;
                assert!(seq >= last, "a commit ends at change {seq}, and {last} is committed already");
                let beyond = batch.effects.iter().find(|effect| effect.seq() > seq);
                assert!(beyond.is_none(), "a commit that ends at change {seq} has {:?}", beyond);
                pending.seq = seq;
                pending.wall = self.end.wall.max(wall);
                pending.now = wall;
                pending.what = What::Commit(batch);
                self.encode(&mut pending);
            }
            Request::Release { ownership } => {
                if !self.owns(ownership) {
                    return Err(Box::new(Reply::Fenced));
                }
                // A frame without records: it says that the one before it was synced, so that a recovery will miss it.
                pending.what = What::Release;
            }
            Request::AcquiredPage { .. }
            | Request::GetMany(_)
            | Request::Count(_)
            | Request::ScanDue { .. }
            | Request::ScanFilter { .. } => unreachable!("reads are answered at once"),
        }
        Ok(pending)
    }

    /// Makes the records of a commit. A body is left out only if the log will still have it when it has this record.
    fn encode(&self, pending: &mut Pending) {
        let What::Commit(batch) = &mut pending.what else { return };
        for effect in &mut batch.effects {
            if let TaskEffect::Stored { task, body_known } = effect {
                *body_known = *body_known && self.catalog.has_fresh_body(task.id, self.body_floor);
            }
        }
        pending.bytes.truncate(HEAD_BYTES);
        pending.bytes.reserve(batch_bytes(batch));
        put_batch(&mut pending.bytes, batch);
    }

    /// A checkpoint begins, and what waits to be written may count on bodies that it lets go of.
    pub(super) fn encode_pending_again(&mut self) {
        if let Some(mut pending) = self.pending.take() {
            self.encode(&mut pending);
            self.pending = Some(pending);
        }
    }

    /// Sends the pending frame to its file; false if that has to be prepared first.
    fn write_pending(&mut self) -> bool {
        let Some(mut pending) = self.pending.take() else { return false };
        let asks_only = matches!(&pending.what, What::Commit(_))
            && pending.bytes.len() == HEAD_BYTES
            && pending.seq == pending.prev_seq;
        if asks_only {
            let job = self.send(Lane::Commit, Vec::new());
            self.active =
                Some(Active { job, pending, file: None, frame_bytes: 0, synced: false, retried: false });
            return true;
        }
        let frame_bytes = pending.frame_bytes();
        let Some(place) = self.files.place(frame_bytes) else {
            self.pending = Some(pending);
            return false;
        };
        let head = FrameHead {
            generation: place.generation,
            epoch: pending.epoch,
            number: pending.number,
            durable: self.unsynced.synced().min(pending.number - 1),
            prev_seq: pending.prev_seq,
            seq: pending.seq,
            wall: pending.wall,
        };
        let mut bytes = std::mem::take(&mut pending.bytes);
        stamp(&mut bytes, head, &self.seeds);
        if place.offset + frame_bytes + END_MARK_BYTES as u64 <= place.len {
            bytes.resize(bytes.len() + END_MARK_BYTES, 0);
        }
        let file = place.file;
        let mut calls = vec![Call::Write { file: Arc::clone(&file), offset: place.offset, bytes }];
        let is_commit = matches!(pending.what, What::Commit(_));
        let level = if is_commit { self.options.ack_level } else { AckLevel::Fsync };
        if level == AckLevel::Fsync && !(crate::planted::is("reply-before-sync") && is_commit) {
            let earlier = self.unsynced.files().filter(|earlier| **earlier != file);
            calls.extend(earlier.cloned().map(Call::Sync));
            calls.push(Call::Sync(Arc::clone(&file)));
        }
        if level == AckLevel::Memory {
            self.take_in(&mut pending);
        }
        let job = self.send(Lane::Commit, calls);
        let synced = level == AckLevel::Fsync;
        self.active = Some(Active { job, pending, file: Some(file), frame_bytes, synced, retried: false });
        true
    }

    /// A commit counts from now on, and is answered.
    fn take_in(&mut self, pending: &mut Pending) {
        let What::Commit(batch) = std::mem::replace(&mut pending.what, What::Answered) else { return };
        self.catalog.apply(&batch.effects);
        if let Some(state) = batch.state {
            self.catalog.join_state(state);
        }
        batch.rules.into_iter().for_each(|effect| self.catalog.lay_down(effect));
        self.catalog.forget_until(pending.now);
        self.replies.push((pending.id, Reply::Done { room: self.room() }));
    }

    pub(super) fn write_completed(&mut self, result: Result<(), DiskError>) {
        let Some(active) = self.active.take() else { return };
        if let Err(error) = result {
            let sync_failed = error.op == DiskOp::Sync && !active.retried;
            if crate::planted::is("retry-failed-sync") && sync_failed {
                let calls = active.file.iter().cloned().map(Call::Sync).collect();
                let job = self.send(Lane::Commit, calls);
                self.active = Some(Active { job, retried: true, ..active });
                return;
            }
            self.fail(&error);
            if !matches!(active.pending.what, What::Answered) {
                self.replies.push((active.pending.id, Reply::Failed { why: error.to_string() }));
            }
            return;
        }
        let mut pending = active.pending;
        let Pending { id, number, epoch, seq, wall, .. } = pending;
        if let Some(file) = &active.file {
            if active.synced {
                self.unsynced.synced_through(number);
            } else {
                self.unsynced.written(file, number);
            }
            self.files.written(active.frame_bytes);
            self.end.frame = number;
            self.end.seq = seq;
            self.end.again = None;
        }
        let last_wall = self.end.wall;
        self.end.wall = wall;
        let reply = match &pending.what {
            What::Acquire => {
                self.epoch = epoch;
                self.owned = true;
                self.upkeep.resume();
                return self.begin_acquired_page(id, None, Some(last_wall));
            }
            What::Commit(_) => return self.take_in(&mut pending),
            What::Answered => return,
            What::Release => {
                self.owned = false;
                Reply::Released
            }
        };
        self.replies.push((id, reply));
    }

    /// Begins a page of what a new owner has to know.
    pub(super) fn begin_acquired_page(
        &mut self,
        id: RequestId,
        after: Option<&AcquiredCursor>,
        last_wall: Option<Timestamp>,
    ) {
        let bounds = &self.options.bounds;
        let (page, leased) = self.catalog.acquired_page(after, bounds.acquired_page);
        let leased = leased.into_iter().map(Wanted::Id).collect();
        let look = Look::new(leased, &self.catalog, &self.seeds, bounds);
        self.begin_read(id, Read::Leased { look, page, last_wall });
    }

    /// A page is read, with the tasks that workers had at the last stop. The first page comes with the ownership.
    pub(super) fn acquired(
        &mut self,
        id: RequestId,
        reply: Reply,
        page: AcquiredPage,
        last_wall: Option<Timestamp>,
    ) {
        let Reply::Found(found) = reply else { unreachable!("a look-up finds") };
        let leased = found.into_iter().filter_map(|found| match found {
            Found::Live(task) => Some(task),
            Found::Ended(_) | Found::Absent => None,
        });
        let page = AcquiredPage { leased: leased.collect(), ..page };
        let reply = match last_wall {
            None => Reply::AcquiredPage(page),
            Some(last_wall) => Reply::Acquired(Acquired {
                ownership: Ownership { shard: ShardId::ONLY, epoch: self.epoch, last_seq: self.end.seq },
                last_wall,
                state: self.catalog.state(),
                secret: self.secret,
                room: self.room(),
                page,
            }),
        };
        self.replies.push((id, reply));
    }
}
