//! The task, as engine and store exchange it.

mod extra;

use std::sync::{Arc, LazyLock};

pub(crate) use self::extra::{BURIED_FROM, Redriven};
pub use self::extra::{Backoff, Dead, Death, Extra, Failed, Failure, PRIORITY_DEFAULT, Retry, Tally, Terms};
use crate::name::{Group, Key, QueueName, Tag};
use crate::time::{Epoch, Seq, Timestamp};

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
    /// The next instant that matters to the task: when it is due, which a nack with delay moves; for a dead task, when it is forgotten.
    pub due_at: Timestamp,
    /// When its put was received; for a row of debounced puts, the first.
    pub put_at: Timestamp,
    /// Smaller goes first among ready tasks.
    pub priority: u32,
    /// Leases that ended without an ack and are written down. The attempt of the next lease is one more.
    pub attempts: u32,
    /// Lease numbers below this one no longer speak for the task. See [`LeaseNo`].
    pub lease_fence: LeaseNo,
    /// The lease that a revoke ended last, so that its token is recognized; `None` if none was.
    pub revoked: Option<LeaseNo>,
    /// A lease that a graceful stop wrote down.
    pub lease: Option<StoredLease>,
    /// The payload, content type and tags that the worker gets.
    pub body: Arc<Body>,
    /// Members that most tasks do not have.
    pub extra: Option<Box<Extra>>,
}

/// The content that the worker gets and the owner may describe: payload, content type, tags.
///
/// The records of one task share a body, because most changes leave it as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body {
    /// The bytes. JSON is kept as the client wrote it.
    pub payload: Vec<u8>,
    /// The content type of the bytes, such as `application/json`.
    pub content_type: Arc<str>,
    /// Words to find the task by, in the owner's order.
    pub tags: Vec<Tag>,
    /// The instants of a task that is due several times, rising. Empty: the task is due once.
    pub timeline: Vec<Moment>,
}

/// One instant of a timeline, and its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// The bytes.
    pub payload: Vec<u8>,
    /// The content type of the bytes.
    pub content_type: Arc<str>,
}

impl Task {
    /// A task that nothing has happened to, due at the beginning of time. It has no number yet, and no change has made it.
    pub(crate) fn new(queue: QueueName, key: Key, body: Arc<Body>) -> Self {
        Self {
            id: 0,
            queue,
            key,
            seq: Seq::ZERO,
            put_seq: Seq::ZERO,
            version: Seq::ZERO,
            due_at: Timestamp::default(),
            put_at: Timestamp::default(),
            priority: PRIORITY_DEFAULT,
            attempts: 0,
            lease_fence: LeaseNo::default(),
            revoked: None,
            lease: None,
            body,
            extra: None,
        }
    }

    /// The members that most tasks do not have. A task without them gives their usual values.
    #[must_use]
    pub fn extra(&self) -> &Extra {
        static USUAL: LazyLock<Extra> = LazyLock::new(Extra::default);
        self.extra.as_deref().unwrap_or(&USUAL)
    }

    /// The group it is in, if its owner said one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.extra.as_ref().and_then(|extra| extra.group.as_ref())
    }

    /// When the task is given up, unless a worker has it or has finished it.
    #[must_use]
    pub fn expire_at(&self) -> Option<Timestamp> {
        self.extra.as_ref().and_then(|extra| extra.expire_at)
    }

    /// When and why the task was given up, if it was.
    #[must_use]
    pub fn dead(&self) -> Option<&Dead> {
        self.extra.as_ref().and_then(|extra| extra.dead.as_ref())
    }

    /// Whether its key leads to it. A key leads to one task at most: to the live one, else to the last dead one.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.dead().is_none_or(|dead| !dead.keyless)
    }

    /// Which instant of its timeline it is due at, from 0; 0 without a timeline.
    #[must_use]
    pub fn step(&self) -> usize {
        self.extra.as_ref().map_or(0, |extra| extra.step as usize)
    }

    /// The lease under which the instant of its timeline before this one was acked.
    #[must_use]
    pub fn acked(&self) -> Option<LeaseNo> {
        self.extra.as_ref().and_then(|extra| extra.acked)
    }

    /// When the task is due once this instant of its timeline is done; `None`: the task is then done.
    #[must_use]
    pub fn next_moment(&self) -> Option<&Moment> {
        self.body.timeline.get(self.step() + 1)
    }

    /// Returns the members that most tasks do not have, to change them.
    pub fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }
}

impl Body {
    /// The payload and its content type at this step of the timeline. Without a timeline there is one step, 0.
    #[must_use]
    pub fn payload_at(&self, step: usize) -> (&[u8], &Arc<str>) {
        let moment = self.timeline.get(step).map(|moment| (&moment.payload[..], &moment.content_type));
        moment.unwrap_or((&self.payload, &self.content_type))
    }

    /// Bytes of all payloads, about: those of the timeline and their content types are included.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        let of_moment = |moment: &Moment| 40 + moment.payload.len() + moment.content_type.len();
        self.payload.len() + self.timeline.iter().map(of_moment).sum::<usize>()
    }

    /// Plain bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn bytes(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), content_type: "application/octet-stream".into(), ..Self::default() }
    }
}

/// The number of one lease, rising over all restarts of a shard: the epoch in the upper 24 bits, a count in the lower 40.
///
/// Every record of a task carries a fence: the lowest lease number that may still speak for it. Each end of a lease (expiry, nack, a change
/// by the owner) writes a record with a higher fence. So a token is valid exactly if its number is not below the fence and no other worker
/// holds the task.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LeaseNo(pub u64);

/// The bits of a lease number for the count. The other 24 are for the epoch: 16 million restarts.
const COUNT_BITS: u32 = 40;

impl LeaseNo {
    /// The number that no lease has: the first epoch is 1.
    pub const NONE: Self = Self(0);

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

    /// The number after this one. After a million million leases in one epoch it would be a number of the next epoch. At 100,000 leases a
    /// second that takes four months without a restart; the engine then panics and does not go on.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A lease that a graceful stop wrote down, to go on after the next start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredLease {
    /// The number of the lease.
    pub no: LeaseNo,
    /// When it ends, by the wall clock.
    pub until: Timestamp,
    /// The epoch of the shard in which the stop wrote the lease down. The lease counts in the very next epoch only: after a crash in
    /// between it is unknown whether the lease still ran.
    pub written_in: Epoch,
}

/// How a task ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A worker acked it under this lease. Its key answers `done`, and a second ack of the lease's token `acked`.
    Done(LeaseNo),
    /// The owner cancelled the task. Its key answers `not_found`.
    Cancelled,
    /// The owner took the task back from the worker that held this lease. The lease's token answers `revoked`.
    Revoked(LeaseNo),
    /// The task was dead until its time was over, and is forgotten. Its key answers `not_found`.
    Forgotten,
}

/// The rest of a task that ended: enough to tell `done` from `not_found`, and `acked` and `revoked` from `expired`.
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
