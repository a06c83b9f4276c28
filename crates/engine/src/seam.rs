//! The seam between the task engine and the store that keeps its tasks.
//!
//! Nothing here blocks: the driver submits a [`Request`] and later polls its [`Reply`]. The engine knows the near tasks, the store all that
//! was committed. A reply of the store shows the state after the last commit it answered with [`Reply::Done`], never of a commit still in
//! flight.

use std::sync::Arc;

use crate::acquired::{Acquired, AcquiredCursor, AcquiredPage};
use crate::name::{Key, QueueName};
use crate::ownership::Ownership;
use crate::settings::RuleEffect;
use crate::shard::ShardId;
use crate::state::EngineState;
use crate::task::{Ended, Task};
use crate::time::{Seq, Timestamp};

/// Names one request until its reply.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

/// Keeps the tasks of one shard.
///
/// The calls of one owner, in order: `Acquire`, the pages that follow, then any mix of `Commit` (at most one in flight) and reads, then
/// `Release`. Replies to reads may come in any order; the reply to a commit says that it is durable as the store promises.
///
/// A store that several processes share answers the reads of the present owner only: a read that may show changes of a later one is
/// [`Reply::Fenced`], as a commit is. Else an engine that does not know yet that it lost the shard would meet tasks it has never heard of.
///
/// A commit has a known outcome when its reply comes. A store that loses the answer of its medium finds out first whether the commit
/// happened, and replies later.
pub trait ShardStore {
    /// Hands over a request. Never blocks on the disk for long; the reply comes from [`ShardStore::poll`].
    fn submit(&mut self, id: RequestId, request: Request);
    /// Appends the replies that are there, in the order they were made.
    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>);
    /// Why the store takes no commit any more, if it failed outside of any request.
    fn failure(&self) -> Option<&str> {
        None
    }
    /// Whether the owner may answer now. The shard thread asks after each turn, because an answer that needs no commit is right only if the
    /// shard was still owned when it left. A store that can lose the shard reads its own clock here. It wakes the shard thread when the
    /// answer changes, and it does not stay in doubt for ever.
    fn validity(&self) -> Validity {
        Validity::Valid
    }
}

/// Whether an owner may answer. It concerns all answers, those of reads and refusals, too: they come from memory, which is right only
/// while no other owner changes the shard.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Validity {
    /// No other owner can have the shard. A store that one process has for itself always says so.
    Valid,
    /// Another owner may have the shard by now. A renewal says that none had it meanwhile; until it comes, nothing is answered.
    InDoubt,
    /// Another owner has the shard, or may take it at any time. The shard can be acquired again.
    Lost,
}

/// A request of the engine to a store.
#[derive(Clone, Debug)]
pub enum Request {
    /// Take the shard. `wall` is for the record only. Answered by [`Reply::Acquired`] or [`Reply::Held`].
    Acquire {
        /// Which shard.
        shard: ShardId,
        /// The wall clock now.
        wall: Timestamp,
    },
    /// The page behind this cursor of the facts that a new owner needs; the first page came with [`Reply::Acquired`]. The engine asks for
    /// all pages before anything else. Answered by [`Reply::AcquiredPage`].
    AcquiredPage {
        /// Where the page before ended.
        after: AcquiredCursor,
    },
    /// Make these effects durable, all or none.
    Commit {
        /// From `Acquire`.
        ownership: Ownership,
        /// The last change in the batch; the previous commit's is the change before its first.
        seq: Seq,
        /// The wall clock now, for the record.
        wall: Timestamp,
        /// The effects.
        batch: Batch,
    },
    /// Look up tasks by key or by id. Answered by [`Reply::Found`], one entry for each, in order.
    GetMany(Vec<Wanted>),
    /// Live tasks in the order of (`due_at`, `put_seq`), strictly after `after`, due at or before `until`, at most `max`. A page
    /// may hold fewer and say where to go on.
    ScanDue {
        /// Start behind this place.
        after: DueKey,
        /// The last instant wanted.
        until: Timestamp,
        /// The largest number of tasks, at least 1.
        max: usize,
    },
    /// Live tasks of one queue in the same order, at most `max` looked at.
    ScanFilter {
        /// The tasks that are wanted.
        filter: Filter,
        /// Start behind this place.
        after: DueKey,
        /// The largest number of tasks that are looked at, at least 1.
        max: usize,
    },
    /// Count live tasks by when they are due. Answered by [`Reply::Counts`].
    Count(DueHistogram),
    /// Give the shard up: everything is durable and closed when the reply comes.
    Release {
        /// From `Acquire`.
        ownership: Ownership,
    },
}

/// An answer of a store.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The shard is taken and recovered.
    Acquired(Acquired),
    /// The next page of the facts that a new owner needs.
    AcquiredPage(AcquiredPage),
    /// Another owner has the shard. It may be free later.
    Held,
    /// The commit is durable.
    Done {
        /// Bytes of growth the store can still take, its reserve for acks, cancels and a checkpoint not counted.
        room: u64,
    },
    /// The ownership is over: a newer epoch has the shard, or the store has lost commits that it had acknowledged. A commit wrote nothing,
    /// and a read is not answered. The engine is dropped, and the shard can be acquired again.
    Fenced,
    /// To a commit: it is not acknowledged, and no later one will be: the store is read-only from now on. Reads go on. To a read: it cannot
    /// be answered. The engine commits nothing any more; it may go on to read.
    Failed {
        /// The cause, as a sentence fragment with the file.
        why: String,
    },
    /// The answer to `GetMany`.
    Found(Vec<Found>),
    /// The answer to `ScanDue` and `ScanFilter`.
    Page(Page),
    /// The answer to `Count`: a number for each bucket. A task that was changed while it was counted may be in it twice, or missing.
    Counts {
        /// How many are due in each.
        counts: Vec<u64>,
        /// Tasks that are due at this instant or before are counted; ask again for those behind it. `None`: all are counted.
        counted: Option<Timestamp>,
    },
    /// The shard is given up.
    Released,
}

/// The content of one commit: at most one final effect for each task and each rule. Applying it twice changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// One effect for each task.
    pub effects: Vec<TaskEffect>,
    /// The engine's own state, if it changed. It contains all earlier states, so the last one may replace them.
    pub state: Option<EngineState>,
    /// One effect for each rule that changed.
    pub rules: Vec<RuleEffect>,
}

/// The new state of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskEffect {
    /// The task has this record now.
    Stored {
        /// The whole record.
        task: Arc<Task>,
        /// Whether the store already has this very body, from an earlier commit: then it need not be written again.
        body_known: bool,
    },
    /// The task ended.
    Ended(Ended),
}

impl TaskEffect {
    /// The id of the task it is about.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Stored { task, .. } => task.id,
            Self::Ended(ended) => ended.id,
        }
    }

    /// The change it records.
    #[must_use]
    pub fn seq(&self) -> Seq {
        match self {
            Self::Stored { task, .. } => task.seq,
            Self::Ended(ended) => ended.seq,
        }
    }
}

/// The task to look up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The task that has this key now, or had it last.
    Key(QueueName, Key),
    /// The task with this id.
    Id(u64),
}

/// The result of a look-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// A live task.
    Live(Arc<Task>),
    /// No live task has it; this is the last one that ended, as long as the history remembers it.
    Ended(Ended),
    /// Nothing known.
    Absent,
}

/// A task's position in the order of time: (`due_at`, `put_seq`). A scan goes on behind it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DueKey {
    /// The task's `due_at`.
    pub due_at: Timestamp,
    /// The task's `put_seq`.
    pub put_seq: Seq,
}

impl DueKey {
    /// Before every task: no task has `put_seq` 0.
    pub const START: Self = Self { due_at: Timestamp::EPOCH, put_seq: Seq::ZERO };

    /// The position of `task`.
    #[must_use]
    pub fn of(task: &Task) -> Self {
        Self { due_at: task.due_at, put_seq: task.put_seq }
    }
}

/// The tasks that a list wants. The engine decides whether a task is scheduled or ready: the store filters by `due_at` only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Tasks of this queue.
    pub queue: QueueName,
    /// Due at or after.
    pub due_from: Timestamp,
    /// Due at or before.
    pub due_to: Timestamp,
    /// Whether dead tasks are wanted, or those that are not dead.
    pub dead: bool,
}

/// Which tasks are counted, and by what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueHistogram {
    /// Tasks of this queue; `None`: of all.
    pub queue: Option<QueueName>,
    /// Due later than this.
    pub after: Timestamp,
    /// Where the first bucket begins.
    pub from: Timestamp,
    /// The buckets, side by side.
    pub grid: Grid,
}

/// The buckets of a due histogram or a forecast: where each ends, counted from the begin of the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Grid {
    /// Buckets of one length.
    Even {
        /// The length of a bucket, milliseconds, at least 1.
        width_ms: u64,
        /// The number of buckets.
        buckets: usize,
    },
    /// Buckets of different lengths.
    Ends(
        /// The end of each bucket, milliseconds after the begin of the first, rising. The end itself is in the next bucket.
        Arc<[u64]>,
    ),
}

impl Grid {
    /// The number of buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        match self {
            Self::Even { buckets, .. } => *buckets,
            Self::Ends(ends) => ends.len(),
        }
    }

    /// The bucket that has the instant this long after the begin of the first, milliseconds.
    #[must_use]
    pub fn bucket(&self, after_ms: u64) -> Option<usize> {
        let index = match self {
            Self::Even { width_ms, .. } => usize::try_from(after_ms / (*width_ms).max(1)).ok()?,
            Self::Ends(ends) => ends.partition_point(|end| *end <= after_ms),
        };
        (index < self.buckets()).then_some(index)
    }

    /// The end of a bucket, milliseconds after the begin of the first; of a bucket that is not there, that of the last.
    #[must_use]
    pub fn end_ms(&self, bucket: usize) -> u64 {
        match self {
            Self::Even { width_ms, buckets } => {
                let ended = u64::try_from(bucket.saturating_add(1).min(*buckets)).unwrap_or(u64::MAX);
                width_ms.saturating_mul(ended)
            }
            Self::Ends(ends) => ends.get(bucket).or(ends.last()).copied().unwrap_or_default(),
        }
    }

    /// The length of all buckets together, milliseconds.
    #[must_use]
    pub fn length_ms(&self) -> u64 {
        self.end_ms(usize::MAX)
    }
}

impl DueHistogram {
    /// Which bucket has this instant.
    #[must_use]
    pub fn bucket(&self, due_at: Timestamp) -> Option<usize> {
        if due_at <= self.after || due_at < self.from {
            return None;
        }
        self.grid.bucket(due_at.ms_since(self.from))
    }

    /// The place behind which all counted tasks are.
    #[must_use]
    pub fn start(&self) -> DueKey {
        // Tasks that are due at `after` itself do not count: any number of tasks may be due at one instant.
        let after = DueKey { due_at: self.after, put_seq: Seq(u64::MAX) };
        after.max(DueKey { due_at: self.from, put_seq: Seq::ZERO })
    }

    /// The last instant of the last bucket.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.from.saturating_plus_ms(self.grid.length_ms().saturating_sub(1))
    }
}

/// A page of a scan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The tasks, in order.
    pub tasks: Vec<Arc<Task>>,
    /// Where to go on; `None` if there is nothing behind.
    pub next: Option<DueKey>,
}
