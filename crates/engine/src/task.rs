//! The task, as engine and store exchange it.

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

    /// The group it is in, if its owner said one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.extra.as_ref().and_then(|extra| extra.group.as_ref())
    }

    /// How often and how soon it is tried again; `None`: as its queue says.
    #[must_use]
    pub fn own_retry(&self) -> Option<Retry> {
        self.extra.as_ref().and_then(|extra| extra.retry)
    }

    /// The trace context of its put.
    #[must_use]
    pub fn trace(&self) -> Option<&Arc<str>> {
        self.extra.as_ref().and_then(|extra| extra.trace.as_ref())
    }

    /// When the task is given up, unless a worker has it or has finished it.
    #[must_use]
    pub fn expire_at(&self) -> Option<Timestamp> {
        self.extra.as_ref().and_then(|extra| extra.expire_at)
    }

    /// The lease duration that its producer chose, milliseconds; `None`: as its worker or its queue says.
    #[must_use]
    pub fn ttr_ms(&self) -> Option<u64> {
        self.extra.as_ref().and_then(|extra| extra.ttr_ms)
    }

    /// Counts of the task's events so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.extra.as_ref().map_or_else(Tally::default, |extra| extra.tally)
    }

    /// When and why the task was given up, if it was.
    #[must_use]
    pub fn dead(&self) -> Option<&Dead> {
        self.extra.as_ref().and_then(|extra| extra.dead.as_ref())
    }

    /// The attempts that failed last, the oldest first.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        self.extra.as_ref().map_or(&[], |extra| &extra.failures)
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

impl Extra {
    /// Bytes of all its texts and failures together, about.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let Self {
            group,
            trace,
            failures,
            ttr_ms: _,
            origin: _,
            expire_at: _,
            retry: _,
            dead: _,
            step: _,
            acked: _,
            tally: _,
        } = self;
        let failures = failures.iter().map(|failure| 32 + failure.reason.as_deref().map_or(0, str::len));
        let texts =
            group.as_ref().map_or(0, |group| group.as_str().len()) + trace.as_deref().map_or(0, str::len);
        texts + failures.sum::<usize>()
    }

    /// Returns the members in a box, or `None` if all have their defaults.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Why a task is made due before its time, or gets another life.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Redriven {
    /// The owner wants the task to run.
    ByOwner,
    /// A worker takes this very task.
    ForLease,
}

impl Tally {
    /// Counts that the task was made due before its time, or got another life.
    pub(crate) fn count_redrive(&mut self, by: Redriven) {
        self.redrives = self.redrives.saturating_add(u32::from(by == Redriven::ByOwner));
    }

    /// Counts a lease that ended without an ack.
    pub(crate) fn count(&mut self, how: Failed) {
        self.leases = self.leases.saturating_add(1);
        let of_them = match how {
            Failed::Nacked => &mut self.nacks,
            Failed::LeaseEnded => &mut self.expiries,
            Failed::Buried => &mut self.burials,
            Failed::Revoked | Failed::Gone => return,
        };
        *of_them = of_them.saturating_add(1);
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

/// Members that most tasks do not have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extra {
    /// Tasks of one group share a limit.
    pub group: Option<Group>,
    /// The lease duration that the producer chose, milliseconds.
    pub ttr_ms: Option<u64>,
    /// The door it came through; 0 is HTTP or an embedding program.
    pub origin: u8,
    /// If no worker has leased the task by then, it is dead.
    pub expire_at: Option<Timestamp>,
    /// W3C trace context of the put.
    pub trace: Option<Arc<str>>,
    /// How often and how soon it is tried again.
    pub retry: Option<Retry>,
    /// The last attempts that failed, the oldest first, at most [`Failure::KEPT`].
    pub failures: Vec<Failure>,
    /// When and why the task was given up.
    pub dead: Option<Dead>,
    /// Which instant of its timeline it is due at, from 0.
    pub step: u32,
    /// The lease under which the instant of its timeline before this one was acked, so that a second ack is told the same.
    pub acked: Option<LeaseNo>,
    /// Counts of the task's events so far.
    pub tally: Tally,
}

/// Counts of the events of a task so far. A running lease is not counted before it ends. A redrive does not reset the counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Leases that ended without an ack.
    pub leases: u32,
    /// Leases among them that ran out.
    pub expiries: u32,
    /// Leases among them that workers gave back.
    pub nacks: u32,
    /// Leases among them that ended because the worker gave the task up.
    pub burials: u32,
    /// Redrives, and calls to be due at once.
    pub redrives: u32,
    /// The delay that it was given last after its put, milliseconds; `None`: none since its put.
    pub delay_ms: Option<u64>,
}

/// How often a task is tried, and how soon after a nack that names no delay.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Retry {
    /// The task is dead after this many attempts that failed, at least 1; `None`: the task is tried for ever.
    pub max_attempts: Option<u32>,
    /// How long to wait after a nack; `None`: not at all.
    pub backoff: Option<Backoff>,
}

/// The wait between attempts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// Whether it doubles with each attempt.
    pub doubles: bool,
    /// The first wait, milliseconds.
    pub base_ms: u64,
    /// The longest wait, milliseconds.
    pub max_ms: u64,
    /// The largest share of a wait that is left out at random (percent, at most 100). So tasks that failed together do not come back
    /// together.
    pub jitter_percent: u8,
}

/// An attempt that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// When it ended.
    pub at: Timestamp,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How it ended.
    pub how: Failed,
    /// The reason that its worker gave.
    pub reason: Option<Arc<str>>,
}

/// How an attempt failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Failed {
    /// The worker gave the task back.
    Nacked,
    /// The lease ran out.
    LeaseEnded,
    /// The owner took the task back.
    Revoked,
    /// The worker gave the task up.
    Buried,
    /// The worker went away, for example because its connection closed.
    Gone,
}

/// When and why a task was given up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dead {
    /// When.
    pub at: Timestamp,
    /// When it had been due.
    pub due_at: Timestamp,
    /// Why.
    pub why: Death,
    /// Another task has had its key since: this task is found by its id alone.
    pub keyless: bool,
}

/// The first instant that stands for "never forgotten", a thousand years after the Unix epoch. Tasks that a worker gave up for good get
/// instants from here on, in the order in which they were given up.
pub(crate) const BURIED_FROM: Timestamp = match Timestamp::from_ms(1_000 * 365_250 * 86_400) {
    Some(instant) => instant,
    None => unreachable!(),
};

/// Why a task was given up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Death {
    /// The attempts failed as often as the retry policy allows.
    MaxAttempts,
    /// No worker had finished the task by its `expire_at`.
    Expired,
    /// A worker gave the task up. The task is kept until a caller redrives or cancels it, without a limit of time.
    Buried,
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

impl Failure {
    /// How many failures of one task are kept. The last ones matter most.
    pub const KEPT: usize = 10;
}

impl Backoff {
    /// How long to wait after the `attempts`th attempt failed (ms). `chance` is any number; an equal number gives an equal wait.
    ///
    /// ```
    /// use tickwheel_engine::Backoff;
    /// let backoff = Backoff { doubles: true, base_ms: 1_000, max_ms: 10_000, jitter_percent: 0 };
    /// let waits = [1, 2, 3, 4, 5].map(|attempts| backoff.wait_ms(attempts, 7));
    /// assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 10_000]);
    /// ```
    #[must_use]
    pub fn wait_ms(&self, attempts: u32, chance: u64) -> u64 {
        let Self { doubles, base_ms, max_ms, jitter_percent } = *self;
        let doublings = if doubles { attempts.saturating_sub(1) } else { 0 };
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let whole = base_ms.saturating_mul(factor).min(max_ms);
        let left_out_max = u128::from(whole) * u128::from(jitter_percent.min(100)) / 100;
        let left_out = u128::from(chance) % (left_out_max + 1);
        whole - u64::try_from(left_out).expect("a part of what fits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_exceeds_its_limit_and_jitter_only_shortens_it() {
        let fixed = Backoff { doubles: false, base_ms: 700, max_ms: 1_000, jitter_percent: 0 };
        let longest = Backoff { doubles: true, base_ms: 1_000, max_ms: u64::MAX, jitter_percent: 0 };
        assert_eq!((fixed.wait_ms(1, 9), fixed.wait_ms(99, 9)), (700, 700));
        assert_eq!(longest.wait_ms(u32::MAX, 3), u64::MAX);
        assert_eq!(longest.wait_ms(0, 3), 1_000);
        for chance in [0, 1, 499, 500, 501, u64::MAX] {
            let wait = Backoff { jitter_percent: 50, ..longest }.wait_ms(1, chance);
            assert!((500..=1_000).contains(&wait), "{wait} by {chance}");
        }
        let all = Backoff { jitter_percent: 100, ..longest };
        assert_eq!((all.wait_ms(1, 1_000), all.wait_ms(1, 1_001)), (0, 1_000));
    }
}
