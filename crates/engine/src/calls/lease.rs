//! Leasing ready tasks.

use core::time::Duration;
use std::sync::Arc;

use super::put::ms_up;
use crate::name::{Group, Key, QueueName};
use crate::task::Body;
use crate::time::{Seq, Timestamp};
use crate::token::Token;

/// Takes ready tasks to work on, in the order of priority, `due_at`, and the seq of their put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The queues. The first task in the order over all queues that hand anything out goes first.
    pub queues: Arc<[QueueName]>,
    /// The largest number of tasks in the answer. With several queues, the answer may have fewer although more are ready.
    pub max: usize,
    /// The length of the lease (ms). `None`: as the task says, else as its queue's settings say, else [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
    /// Whether to wait if no task is ready. The driver ends the wait with `Input::EndWait`.
    pub wait: bool,
    /// The name of the worker, for lists that show which worker has which task.
    pub worker: Option<Arc<str>>,
}

/// The length of a lease if the worker, the task and the queue's settings name none: 30 s.
pub const LEASE_MS_DEFAULT: u64 = 30_000;

impl Lease {
    /// Takes one task. The lease lasts as long as the task or its queue's settings say.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self::of([queue.clone()])
    }

    /// Takes one task: the first in the order over all these queues. The lease lasts as long as the task or its queue's settings say.
    #[must_use]
    pub fn of(queues: impl Into<Arc<[QueueName]>>) -> Self {
        Self { queues: queues.into(), max: 1, lease_ms: None, wait: false, worker: None }
    }

    /// Sets the largest number of tasks in the answer.
    #[must_use]
    pub fn max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Sets the length of the lease, rounded up to the millisecond.
    #[must_use]
    pub fn lasting(self, lease: Duration) -> Self {
        Self { lease_ms: Some(ms_up(lease)), ..self }
    }
}

/// A delivery: a ready task in a worker's hands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leased {
    /// The id that the server gave the task.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// When the task was due.
    pub due_at: Timestamp,
    /// When the task became ready, by the believed wall clock: never before `due_at`.
    pub ready_at: Timestamp,
    /// The seq of the task's put: the last part of the ready order.
    pub put_seq: Seq,
    /// 1 at the first lease.
    pub attempt: u32,
    /// Proves the lease.
    pub token: Token,
    /// When the lease ends.
    pub lease_until: Timestamp,
    /// How long the lease lasts (ms). A lease that is extended without a length lasts as long as its task says, else its queue. That is
    /// this length, unless the worker named another one.
    pub lease_ms: u64,
    /// Smaller goes first.
    pub priority: u32,
    /// The group of the task.
    pub group: Option<Group>,
    /// The trace context of the task's put.
    pub trace: Option<Arc<str>>,
    /// The index of this instant in the task's timeline, from 0.
    pub step: usize,
    /// The body of the task. [`Body::payload_at`] returns the payload of this step.
    pub body: Arc<Body>,
}
