//! [`WaitingStub`]: the part of a task that stays in memory when the record leaves it. The stub tells when the task is due and where it
//! will stand in its line.

use crate::residence::QueueNo;
use crate::runs::Ordered;
use crate::seam::DueKey;
use crate::task::Task;
use crate::time::{Seq, Timestamp};

/// The stub of a task that is not due yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct WaitingStub {
    pub(crate) due_at: Timestamp,
    pub(crate) put_seq: Seq,
    pub(crate) id: u64,
    pub(crate) priority: u32,
    pub(crate) body_bytes: u32,
    pub(crate) queue: QueueNo,
    /// Whether the task is dead. A dead task is forgotten at its `due_at`.
    pub(crate) dead: bool,
}

impl WaitingStub {
    pub(crate) fn of(task: &Task, queue: QueueNo) -> Self {
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
}

impl Ordered for WaitingStub {
    type Key = DueKey;

    fn key(&self) -> DueKey {
        DueKey { due_at: self.due_at, put_seq: self.put_seq }
    }
}

/// Returns the size of a task's body (bytes), at most `u32::MAX`: a stub cannot hold a larger number.
fn body_bytes(task: &Task) -> u32 {
    u32::try_from(task.body.payload_bytes()).unwrap_or(u32::MAX)
}

/// Memory that a stub takes (bytes), about: the stub has 40 bytes, and its run may be no more than two thirds full.
pub(crate) const STUB_BYTES: u64 = 64;

const _: () = assert!(size_of::<WaitingStub>() == 40);
