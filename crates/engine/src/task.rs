//! The task, as engine and store exchange it.

mod extra;

use std::sync::{Arc, LazyLock};

pub(crate) use self::extra::{BURIED_FROM, Redriven};
pub use self::extra::{Backoff, Dead, Death, Extra, Failed, Failure, PRIORITY_DEFAULT, Retry, Tally, Terms};
use crate::name::{Group, Key, QueueName, Tag};
use crate::time::{Epoch, Seq, Timestamp};

/// One task as one record: what is to be done and when, with the state of the task after its last change.
///
/// A `Task` is never changed in place. Each change makes a new `Task` with a higher [`seq`](Task::seq). So the engine, the batch in flight
/// and the store may share one `Task`. Of two records of one task the one with the higher `seq` is right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The number of the task. A shard gives its new tasks rising numbers. An imported task may keep the number that it had in another
    /// store.
    pub id: u64,
    /// The queue that the task is in.
    pub queue: QueueName,
    /// The name of the task, chosen by the owner or made of the id. No two live tasks of a queue have the same key.
    pub key: Key,
    /// The change that made this record.
    pub seq: Seq,
    /// The change that put or last replaced the task. Of tasks with the same priority and the same due time, the one with the lower
    /// `put_seq` is leased first.
    pub put_seq: Seq,
    /// The last change that an owner made, such as a put, a patch or a redrive. Clients see the number as the ETag. Ack, nack and extend do
    /// not change the number. A lease changes it only if the lease makes a dead task live again.
    pub version: Seq,
    /// When a live task is due, or when a dead task is forgotten. A nack with a delay moves the instant.
    pub due_at: Timestamp,
    /// When the put was received. After several debounced puts in a row: when the first of them was received.
    pub put_at: Timestamp,
    /// Ready tasks with a smaller number are leased first.
    pub priority: u32,
    /// Number of leases that ended without an ack; a delivery that reached no worker is not counted. The number of the next attempt is one
    /// more. The number starts at 0 again with a put that replaces the task, with a redrive, and with each instant of a timeline.
    pub attempts: u32,
    /// The tokens of leases with a lower number are void. See [`LeaseNo`].
    pub lease_fence: LeaseNo,
    /// The lease that a revoke ended last, so that its token gets the answer `revoked`; `None`: no lease was revoked.
    pub revoked: Option<LeaseNo>,
    /// A lease that a graceful stop wrote down.
    pub lease: Option<StoredLease>,
    /// The payload, content type, tags and timeline.
    pub body: Arc<Body>,
    /// Members that most tasks do not have.
    pub extra: Option<Box<Extra>>,
}

/// The content of a task: payload, content type, tags and timeline.
///
/// The records of one task share a body in memory, because most changes leave the body as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body {
    /// The payload as bytes. JSON is kept as the client wrote it.
    pub payload: Vec<u8>,
    /// The content type of the bytes, such as `application/json`.
    pub content_type: Arc<str>,
    /// Words by which the task is found, in the order in which the owner gave them.
    pub tags: Vec<Tag>,
    /// The instants of a task that is due several times, in rising order. Empty: the task is due once.
    pub timeline: Vec<Moment>,
}

/// One instant of a timeline, and its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// When the task is due.
    pub at: Timestamp,
    /// The payload that the worker gets at this instant.
    pub payload: Vec<u8>,
    /// The content type of the payload.
    pub content_type: Arc<str>,
}

impl Task {
    /// Makes a task that is due at the Unix epoch and to which nothing has happened. Its id and its `seq` are 0 until the engine numbers
    /// the task.
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

    /// Returns the members that most tasks do not have. For a task without them, returns their default values.
    #[must_use]
    pub fn extra(&self) -> &Extra {
        static USUAL: LazyLock<Extra> = LazyLock::new(Extra::default);
        self.extra.as_deref().unwrap_or(&USUAL)
    }

    /// Returns the group of the task, if its owner gave one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.extra.as_ref().and_then(|extra| extra.group.as_ref())
    }

    /// Returns when the task is given up, unless a worker has the task then or has finished it; `None`: never.
    #[must_use]
    pub fn expire_at(&self) -> Option<Timestamp> {
        self.extra.as_ref().and_then(|extra| extra.expire_at)
    }

    /// Returns when and why the task was given up, if the task is dead.
    #[must_use]
    pub fn dead(&self) -> Option<&Dead> {
        self.extra.as_ref().and_then(|extra| extra.dead.as_ref())
    }

    /// Whether the task has its key. A dead task loses its key once another task gets the key.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.dead().is_none_or(|dead| !dead.keyless)
    }

    /// Returns the index of the instant of the timeline at which the task is due, from 0. Returns 0 without a timeline.
    #[must_use]
    pub fn step(&self) -> usize {
        self.extra.as_ref().map_or(0, |extra| extra.step as usize)
    }

    /// Returns the lease under which a worker last acked an instant of the timeline.
    #[must_use]
    pub fn acked(&self) -> Option<LeaseNo> {
        self.extra.as_ref().and_then(|extra| extra.acked)
    }

    /// Returns the next instant of the timeline; `None`: the next ack ends the task.
    #[must_use]
    pub fn next_moment(&self) -> Option<&Moment> {
        self.body.timeline.get(self.step() + 1)
    }

    /// Returns when the first of the debounced puts was made that made the task together; `None`: the row of puts has ended, because the owner made
    /// the task live again, or due before its time.
    pub(crate) fn row_begin(&self) -> Option<Timestamp> {
        (self.extra().tally.redrives == 0).then_some(self.put_at)
    }

    /// Returns the members that most tasks do not have, to change them. Gives the task default members if it has none.
    pub fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }
}

impl Body {
    /// Returns the payload and the content type for this step of the timeline. Without a timeline, returns the payload of the body itself.
    #[must_use]
    pub fn payload_at(&self, step: usize) -> (&[u8], &Arc<str>) {
        let moment = self.timeline.get(step).map(|moment| (&moment.payload[..], &moment.content_type));
        moment.unwrap_or((&self.payload, &self.content_type))
    }

    /// Returns about how many bytes all payloads take. The payloads and the content types of the timeline are included.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        let of_moment = |moment: &Moment| 40 + moment.payload.len() + moment.content_type.len();
        self.payload.len() + self.timeline.iter().map(of_moment).sum::<usize>()
    }

    /// Makes a body of plain bytes with the content type `application/octet-stream`.
    #[must_use]
    pub fn bytes(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), content_type: "application/octet-stream".into(), ..Self::default() }
    }
}

/// The number of one lease. Numbers rise, also across restarts of a shard: the upper 24 bits are the epoch, the lower 40 bits are a count.
///
/// Every record of a task has a fence. Tokens of leases with a number below the fence are void. The record that follows an expiry, a nack
/// or a change by the owner has a fence above the ended lease. A token is also void while the task is leased under another number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LeaseNo(pub u64);

/// The number of bits of a lease number that are the count. The other 24 bits are the epoch, enough for 16 million restarts.
const COUNT_BITS: u32 = 40;

impl LeaseNo {
    /// A number that no lease has, because the first epoch is 1.
    pub const NONE: Self = Self(0);

    /// Returns the lowest lease number of an epoch.
    #[must_use]
    pub const fn first_of(epoch: Epoch) -> Self {
        Self((epoch.0 as u64) << COUNT_BITS)
    }

    /// Returns the epoch in which the lease was granted.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> COUNT_BITS) as u32)
    }

    /// Returns the next number. After 2^40 leases in one epoch, the next number would belong to the next epoch, and the engine panics. At
    /// 100,000 leases a second without a restart, this takes four months.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A lease that a graceful stop wrote down, so that the lease goes on after the next start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredLease {
    /// The number of the lease.
    pub no: LeaseNo,
    /// When it ends, by the wall clock as it was when the lease was written down.
    pub until: Timestamp,
    /// How long it still ran when it was written down (ms), rounded up. After a start it lasts no longer than that, even if the wall clock was set
    /// back between the stop and the start. [`u64::MAX`]: the record does not say.
    pub left_ms: u64,
    /// The epoch of the shard in which the stop wrote the lease down. The lease goes on only in the next epoch. Any later epoch ignores the
    /// lease, because a crash in between leaves unknown whether the lease still ran.
    pub written_in: Epoch,
}

/// How a task ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A worker acked the task under this lease. While the engine remembers the end, calls on the key get the answer `done`, unless a new
    /// task has the key. A second ack with the lease's token gets the answer `acked`.
    Done(LeaseNo),
    /// The owner cancelled the task. Calls on the key get the answer `not_found`.
    Cancelled,
    /// The owner cancelled the task while a worker had it under this lease. Calls with the lease's token get the answer `revoked`.
    Revoked(LeaseNo),
    /// The task was dead until its time was over, and is forgotten. Calls on the key get the answer `not_found`.
    Forgotten,
}

/// The record of a task that ended. From this record, calls get the right answer: `done` instead of `not_found`, and `acked` or `revoked`
/// instead of `expired`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The task's id.
    pub id: u64,
    /// The queue that the task was in.
    pub queue: QueueName,
    /// The key that the task had. A new task may have the same key by now. For a dead task that had lost its key: the decimal form of the
    /// id.
    pub key: Key,
    /// The change that ended the task.
    pub seq: Seq,
    /// When the task ended.
    pub at: Timestamp,
    /// How the task ended.
    pub outcome: Outcome,
}
