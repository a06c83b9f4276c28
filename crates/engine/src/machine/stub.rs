//! Stubs: what is left in memory of a task whose record is not. Enough to know when it is due and where it stands in line.

use super::queues::QueueNo;
use super::runs::Ordered;
use crate::seam::Place;
use crate::task::{PRIORITY_DEFAULT, Task};
use crate::time::{Seq, Timestamp};

/// The ready order, one for every door: priority, `due_at`, the seq of the put.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ReadyKey {
    pub(super) priority: u32,
    pub(super) due_at: Timestamp,
    pub(super) put_seq: Seq,
}

impl ReadyKey {
    /// Whether it goes before what has the usual priority.
    pub(super) fn is_urgent(self) -> bool {
        self.priority < PRIORITY_DEFAULT
    }

    pub(super) fn of(task: &Task) -> Self {
        Self { priority: task.priority, due_at: task.due_at, put_seq: task.put_seq }
    }

    /// The least place behind all of its priority; `None`: it has the last.
    pub(super) fn behind_priority(self) -> Option<Self> {
        let priority = self.priority.checked_add(1)?;
        Some(Self { priority, due_at: Timestamp::EPOCH, put_seq: Seq::ZERO })
    }
}

/// A task that is due, in its queue's line.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadyStub {
    priority: u32,
    /// Bytes of the body, as far as they can be counted.
    pub(super) body_bytes: u32,
    pub(super) due_at: Timestamp,
    put_seq: Seq,
    pub(super) id: u64,
    /// When it became ready.
    pub(super) since: Timestamp,
}

impl ReadyStub {
    pub(super) fn of(task: &Task, since: Timestamp) -> Self {
        Self {
            priority: task.priority,
            body_bytes: body_bytes(task),
            due_at: task.due_at,
            put_seq: task.put_seq,
            id: task.id,
            since,
        }
    }
}

impl Ordered for ReadyStub {
    type Key = ReadyKey;

    fn key(&self) -> ReadyKey {
        ReadyKey { priority: self.priority, due_at: self.due_at, put_seq: self.put_seq }
    }
}

/// A task that is not due yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct WaitingStub {
    pub(super) due_at: Timestamp,
    put_seq: Seq,
    pub(super) id: u64,
    priority: u32,
    body_bytes: u32,
    pub(super) queue: QueueNo,
    /// It was given up, and is forgotten when it is due.
    pub(super) dead: bool,
}

impl WaitingStub {
    pub(super) fn of(task: &Task, queue: QueueNo) -> Self {
        Self {
            due_at: task.due_at,
            put_seq: task.put_seq,
            id: task.id,
            priority: task.priority,
            body_bytes: body_bytes(task),
            queue,
            dead: task.dead().is_some(),
        }
    }

    /// It has become ready.
    pub(super) fn ready(self, since: Timestamp) -> ReadyStub {
        let Self { due_at, put_seq, id, priority, body_bytes, queue: _, dead: _ } = self;
        ReadyStub { priority, body_bytes, due_at, put_seq, id, since }
    }
}

impl Ordered for WaitingStub {
    type Key = Place;

    fn key(&self) -> Place {
        Place { due_at: self.due_at, put_seq: self.put_seq }
    }
}

fn body_bytes(task: &Task) -> u32 {
    u32::try_from(task.body.payload_bytes()).unwrap_or(u32::MAX)
}

/// What a stub takes, bytes: 40 in a run that may be no more than two thirds full.
pub(super) const STUB_BYTES: u64 = 64;

const _: () = assert!(size_of::<ReadyStub>() == 40 && size_of::<WaitingStub>() == 40);
