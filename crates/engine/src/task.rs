//! What a task is, as engine and store hand it to each other.

use std::sync::Arc;

use crate::name::{Group, Key, QueueName, Tag};
use crate::time::{Epoch, Seq, Timestamp};

/// The priority of a task whose owner gave none. Smaller goes first.
pub const PRIORITY_DEFAULT: u32 = 1024;

/// The durable unit: one thing to do at one instant, as it stands after its last change.
///
/// A `Task` is never changed in place. Each change makes a new one with a higher [`seq`](Task::seq), so engine, the batch
/// in flight and the store may share it, and of two records of one task the one with the higher `seq` is right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The server's number of this task: global, rising with each new task, never used twice.
    pub id: u64,
    /// The queue it is in.
    pub queue: QueueName,
    /// The user's name for it, unique among the live tasks of its queue.
    pub key: Key,
    /// The change that made this record.
    pub seq: Seq,
    /// The put that made or replaced it: its place among tasks due at one instant.
    pub put_seq: Seq,
    /// The owner's last change (put, patch): the ETag. Lease, ack, nack and extend leave it alone.
    pub version: Seq,
    /// When it is due. A nack with delay moves it.
    pub due_at: Timestamp,
    /// When its put was received; of a row of debounced puts, the first.
    pub put_at: Timestamp,
    /// Smaller goes first among ready tasks.
    pub priority: u32,
    /// Leases that ended without an ack and are written down. The attempt of the next lease is one more.
    pub attempts: u32,
    /// Lease numbers below this one no longer speak for the task. See [`LeaseNo`].
    pub lease_fence: LeaseNo,
    /// The lease that a revoke ended last, so that its token can be told; `None` if none was.
    pub revoked: Option<LeaseNo>,
    /// A lease that a graceful stop wrote down.
    pub lease: Option<StoredLease>,
    /// What the worker gets.
    pub body: Arc<Body>,
    /// What most tasks do not have.
    pub extra: Option<Box<Extra>>,
}

/// What the worker gets and the owner may describe: payload, content type, tags.
///
/// Shared between the records of one task, for most changes leave it as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body {
    /// The bytes. JSON is kept as the client wrote it.
    pub payload: Vec<u8>,
    /// What the bytes are, such as `application/json`.
    pub content_type: Arc<str>,
    /// Words to find the task by, in the owner's order.
    pub tags: Vec<Tag>,
}

impl Task {
    /// The group it is in, if its owner said one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.extra.as_ref().and_then(|extra| extra.group.as_ref())
    }
}

impl Extra {
    /// Bytes of all its texts together.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let Self { group, trace, ttr_ms: _, origin: _, expire_at: _ } = self;
        group.as_ref().map_or(0, |group| group.as_str().len()) + trace.as_deref().map_or(0, str::len)
    }

    /// In a box, or nothing at all if no member says anything.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl Body {
    /// Plain bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn bytes(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), content_type: "application/octet-stream".into(), tags: Vec::new() }
    }
}

/// Members that most tasks do not have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extra {
    /// Tasks of one group share a limit.
    pub group: Option<Group>,
    /// The lease duration that the producer chose, milliseconds.
    pub ttr_ms: Option<u64>,
    /// The door it came through; 0 is HTTP or an embedding program.
    pub origin: u8,
    /// Not leased by then: dead.
    pub expire_at: Option<Timestamp>,
    /// W3C trace context of the put.
    pub trace: Option<Arc<str>>,
}

/// The number of one lease, rising over all restarts of a shard: the epoch in the upper 24 bits, a count in the lower 40.
///
/// Every record of a task carries a fence: the lowest lease number that may still speak for it. Whatever ends a lease
/// (expiry, nack, a change by the owner) writes a record with a higher fence, so a token is valid exactly if its number
/// is not below the fence and nobody else holds the task.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LeaseNo(pub u64);

/// A lease number has so many bits for the count, and the other 24 for the epoch: 16 million restarts.
const COUNT_BITS: u32 = 40;

impl LeaseNo {
    /// The lowest number of an epoch's leases.
    #[must_use]
    pub const fn first_of(epoch: Epoch) -> Self {
        Self((epoch.0 as u64) << COUNT_BITS)
    }

    /// The epoch it was granted in.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> COUNT_BITS) as u32)
    }

    /// The number after this one. A million million leases into one epoch it would be a number of the next epoch: at
    /// 100,000 leases a second that takes four months without a restart, and the machine panics rather than go on.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A lease that a graceful stop wrote down, to go on after the next start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredLease {
    /// Its number.
    pub no: LeaseNo,
    /// When it ends, by the wall clock.
    pub until: Timestamp,
    /// The life of the shard whose stop wrote it down. It counts in the very next life only: after a crash in between
    /// nobody knows whether it still ran.
    pub written_in: Epoch,
}

/// How a task ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A worker acked it. Its key answers `done`.
    Done,
    /// Its owner cancelled it. Its key answers `not_found`.
    Cancelled,
    /// Its owner took it back from the worker that held this lease. The lease's token answers `revoked`.
    Revoked(LeaseNo),
}

/// What is left of a task that ended: enough to tell `done` from `not_found`, and `revoked` from `expired`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The task's id.
    pub id: u64,
    /// The queue it was in.
    pub queue: QueueName,
    /// The key it had. A new task may have it by now.
    pub key: Key,
    /// The change that ended it.
    pub seq: Seq,
    /// When it ended.
    pub at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
}
