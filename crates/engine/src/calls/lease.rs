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
    /// The queues: what is first in the order over all of them that hand anything out goes first.
    pub queues: Arc<[QueueName]>,
    /// The largest number of tasks in the answer. With several queues, the answer may have fewer although more are ready.
    pub max: usize,
    /// For how long, milliseconds. `None`: as the task says, else as its queue's settings say, else [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
    /// Whether to wait if nothing is ready. The driver ends the wait with `Input::EndWait`.
    pub wait: bool,
    /// The name of the worker, for those who ask who has what.
    pub worker: Option<Arc<str>>,
}

/// The lease that a worker gets who names no length, of a task and a queue that say nothing of it: 30 s.
pub const LEASE_MS_DEFAULT: u64 = 30_000;

impl Lease {
    /// One task, for as long as it or the queue's settings say.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self::of([queue.clone()])
    }

    /// One task of whichever of these queues has the first, for as long as it or its queue's settings say.
    #[must_use]
    pub fn of(queues: impl Into<Arc<[QueueName]>>) -> Self {
        Self { queues: queues.into(), max: 1, lease_ms: None, wait: false, worker: None }
    }

    /// Sets the largest number of tasks in the answer.
    #[must_use]
    pub fn max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// For so long, rounded up to the millisecond.
    #[must_use]
    pub fn lasting(self, lease: Duration) -> Self {
        Self { lease_ms: Some(ms_up(lease)), ..self }
    }
}

/// A delivery: a ready task in a worker's hands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leased {
    /// The server's number.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// When it was due.
    pub due_at: Timestamp,
    /// When it became ready, by the believed wall clock: never before `due_at`.
    pub ready_at: Timestamp,
    /// The seq of its put: the last part of the ready order.
    pub put_seq: Seq,
    /// 1 at the first lease.
    pub attempt: u32,
    /// Proves the lease.
    pub token: Token,
    /// When the lease ends.
    pub lease_until: Timestamp,
    /// How long it lasts, milliseconds. One that is extended without a length lasts as long as its task says, or its queue: as this, unless its worker
    /// named another.
    pub lease_ms: u64,
    /// Smaller goes first.
    pub priority: u32,
    /// The group it is in.
    pub group: Option<Group>,
    /// The trace context of its put.
    pub trace: Option<Arc<str>>,
    /// Which instant of its timeline this is, from 0.
    pub step: usize,
    /// What to work on: what [`Body::payload_at`] says of this step.
    pub body: Arc<Body>,
}
