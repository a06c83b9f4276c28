//! [`ReadyKey`]: the ready order. [`ReadyStub`]: the part of a ready task that stays in memory when its record is only in the store.

use crate::residence::WaitingStub;
use crate::runs::Ordered;
use crate::task::{PRIORITY_DEFAULT, Task};
use crate::time::{Seq, Timestamp};

/// A key of the ready order, which is the same for every door: the priority, then `due_at`, then the seq of the put.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ReadyKey {
    pub(crate) priority: u32,
    pub(crate) due_at: Timestamp,
    pub(crate) put_seq: Seq,
}

impl ReadyKey {
    /// Whether the priority is more urgent than the default one.
    pub(crate) fn is_urgent(self) -> bool {
        self.priority < PRIORITY_DEFAULT
    }

    pub(crate) fn of(task: &Task) -> Self {
        Self { priority: task.priority, due_at: task.due_at, put_seq: task.put_seq }
    }

    /// Returns the least key behind this one; `None`: it is the last of its millisecond.
    pub(crate) fn next(self) -> Option<Self> {
        Some(Self { put_seq: Seq(self.put_seq.0.checked_add(1)?), ..self })
    }

    /// Returns the least key behind all keys of this priority. `None`: this priority is the last one.
    pub(crate) fn behind_priority(self) -> Option<Self> {
        let priority = self.priority.checked_add(1)?;
        Some(Self { priority, due_at: Timestamp::EPOCH, put_seq: Seq::ZERO })
    }
}

/// The stub of a ready task.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReadyStub {
    priority: u32,
    /// The size of the payload (bytes), at most `u32::MAX`.
    pub(crate) body_bytes: u32,
    pub(crate) due_at: Timestamp,
    put_seq: Seq,
    pub(crate) id: u64,
    /// When the task became ready.
    pub(crate) since: Timestamp,
}

impl ReadyStub {
    /// Makes the stub of a task that has been ready since `since`.
    pub(crate) fn of(stub: WaitingStub, since: Timestamp) -> Self {
        let WaitingStub { due_at, put_seq, id, priority, body_bytes, queue: _, dead: _ } = stub;
        Self { priority, body_bytes, due_at, put_seq, id, since }
    }
}

impl Ordered for ReadyStub {
    type Key = ReadyKey;

    fn key(&self) -> ReadyKey {
        ReadyKey { priority: self.priority, due_at: self.due_at, put_seq: self.put_seq }
    }
}

const _: () = assert!(size_of::<ReadyStub>() == 40);
