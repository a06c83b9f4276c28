//! Leasing ready tasks.

use core::time::Duration;
use std::sync::Arc;

use super::put::ms_up;
use crate::name::{Group, Key, QueueName};
use crate::task::{Body, Retry};
use crate::time::{Seq, Timestamp};
use crate::token::Token;

/// Leases ready tasks, in the order of priority, `due_at`, and the seq of their put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The queues to lease from. The tasks of all queues of the call are leased in one common order. A queue that hands nothing out now,
    /// for example a paused one, is passed over.
    pub queues: Arc<[QueueName]>,
    /// The largest number of tasks in the answer. The answer may have fewer although more are ready: the bodies in one answer together have
    /// at most 16 MiB, and with several queues the record of the next task may not be in memory.
    pub max: usize,
    /// The length of the lease (ms). `None`: as the task says, else as its queue's settings say, else [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
    /// Whether the call waits if no task can be leased. The driver ends the wait with `Input::EndWait`.
    pub wait: bool,
    /// The name of the worker, for lists that show which worker has which task.
    pub worker: Option<Arc<str>>,
    /// Whether a target of this process asks, and no worker. While such a call waits, [`Stats`](super::Stats) does not count it.
    pub for_target: bool,
}

/// The length of a lease (ms) if neither the worker nor the task nor the queue's settings name one: 30 s.
pub const LEASE_MS_DEFAULT: u64 = 30_000;

impl Lease {
    /// Makes a call that leases at most one task of this queue, does not wait, and names no length of the lease.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self::of([queue.clone()])
    }

    /// Makes a call that leases at most one task, the first in the order over all these queues. The call does not wait, and names no length
    /// of the lease.
    #[must_use]
    pub fn of(queues: impl Into<Arc<[QueueName]>>) -> Self {
        Self { queues: queues.into(), max: 1, lease_ms: None, wait: false, worker: None, for_target: false }
    }

    /// Sets the largest number of tasks in the answer.
    #[must_use]
    pub fn max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Sets the length of the lease, rounded up to a whole millisecond.
    #[must_use]
    pub fn lasting(self, lease: Duration) -> Self {
        Self { lease_ms: Some(ms_up(lease)), ..self }
    }
}

/// A delivery: a leased task, as its worker gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leased {
    /// The id of the task.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// When the task was due.
    pub due_at: Timestamp,
    /// When the task became ready, by the believed wall clock. Before `due_at` only if the clock has stepped back.
    pub ready_at: Timestamp,
    /// The seq of the task's put. Of two ready tasks with the same priority and `due_at`, the task with the lower seq goes first.
    pub put_seq: Seq,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The token that proves the lease to ack, nack and extend.
    pub token: Token,
    /// When the lease ends, by the wall clock.
    pub lease_until: Timestamp,
    /// The length of this lease (ms). An extension that names no length uses the length that the task or its queue says. That length may
    /// differ if the worker named a length for this lease.
    pub lease_ms: u64,
    /// The priority. Among ready tasks, the task with the smaller number goes first.
    pub priority: u32,
    /// The group of the task.
    pub group: Option<Group>,
    /// The trace context of the task's put.
    pub trace: Option<Arc<str>>,
    /// The index of the present instant in the task's timeline, from 0; 0 without a timeline.
    pub step: usize,
    /// The retry policy that is in force for the task: its own, else that of its queue.
    pub retry: Retry,
    /// The body of the task. [`Body::payload_at`] returns the payload of this step.
    pub body: Arc<Body>,
}
