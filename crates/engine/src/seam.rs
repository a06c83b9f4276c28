//! The seam between the task engine and the store that keeps its tasks.
//!
//! No call of a store blocks for long: the driver submits a [`Request`] and later polls for its [`Reply`]. The engine has the near tasks in
//! memory; the store has everything that was committed. A reply to a read shows all commits that were answered with [`Reply::Done`] before
//! the read was submitted, and no commit that is answered after the read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::acquired::{Acquired, AcquiredCursor, AcquiredPage, Ownership};
use crate::name::{Key, QueueName};
use crate::settings::RuleEffect;
use crate::shard::ShardId;
use crate::state::EngineState;
use crate::task::{Ended, Task};
use crate::time::{Seq, Timestamp};

/// The number of one request. Its reply names the same number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

/// Keeps the tasks of one shard.
///
/// An owner sends its requests in this order: `Acquire`, a request for each page that follows, then any mix of `Commit` (at most one in
/// flight) and reads, then `Release`. Replies to reads may come in any order. The reply [`Reply::Done`] to a commit means that the commit
/// is durable as the store promises.
///
/// A store that several processes share answers the reads of the present owner only. A read whose result may show changes of a later owner
/// gets [`Reply::Fenced`], as a commit does. Otherwise an engine that does not know yet that it has lost the shard would get tasks of the
/// later owner.
///
/// A commit that is answered with [`Reply::Done`] or [`Reply::Fenced`] has a known outcome. A store that loses the answer of its medium
/// finds out first whether the commit happened, and replies later.
pub trait ShardStore {
    /// Takes a request. Never blocks on the disk for long: the reply comes later, from [`ShardStore::poll`].
    fn submit(&mut self, id: RequestId, request: Request);
    /// Appends the replies that are ready, in the order in which they were made.
    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>);
    /// Returns why the store takes no commit any more, if the store failed outside of any request.
    fn failure(&self) -> Option<&str> {
        None
    }
    /// Returns whether the owner may answer now. The shard thread asks after each turn, because an answer without a commit is right only if
    /// the shard was still owned when the answer left. A store that can lose the shard reads its own clock in this call. Such a store wakes
    /// the shard thread when the validity changes, and does not stay in doubt for ever.
    fn validity(&self) -> Validity {
        Validity::Valid
    }
}

/// Whether an owner may answer. Also the answers to reads and the refusals need a valid ownership: they depend on the memory of the engine,
/// which is right only while no other owner changes the shard.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Validity {
    /// No other owner can have the shard. A store that belongs to one process alone is always valid.
    Valid,
    /// Another owner may have the shard by now. No answer leaves until a renewal shows that no other owner had the shard meanwhile.
    InDoubt,
    /// Another owner has the shard, or may take it at any time. The shard can be acquired again.
    Lost,
}

/// A request to a store, from the engine or from the shard thread.
#[derive(Clone, Debug)]
pub enum Request {
    /// Take the shard. Answered by [`Reply::Acquired`], or by [`Reply::Held`] if another owner has the shard.
    Acquire {
        /// The shard to take.
        shard: ShardId,
        /// The wall clock now, for the record only.
        wall: Timestamp,
    },
    /// Read the next page of the facts that a new owner needs. The first page came with [`Reply::Acquired`]. The shard thread asks for all
    /// pages before it sends any other request. Answered by [`Reply::AcquiredPage`].
    AcquiredPage {
        /// Where the page before ended.
        after: AcquiredCursor,
    },
    /// Make these effects durable, all or none.
    Commit {
        /// The ownership that came with [`Reply::Acquired`].
        ownership: Ownership,
        /// The number of the last change that is durable once this commit is durable.
        seq: Seq,
        /// The wall clock now, for the record.
        wall: Timestamp,
        /// The effects.
        batch: Batch,
    },
    /// Look up tasks by key or by id. Answered by [`Reply::Found`], with one result for each question, in the same order.
    GetMany(Vec<Wanted>),
    /// Read the tasks that have not ended, dead ones included, in the order of (`due_at`, `put_seq`): strictly after `after`, due at
    /// `until` or before, at most `max` tasks. A page may have fewer tasks and say where the next one begins. Answered by [`Reply::Page`].
    ScanDue {
        /// The due key behind which the page begins.
        after: DueKey,
        /// The latest `due_at` that is wanted.
        until: Timestamp,
        /// The largest number of tasks, at least 1.
        max: usize,
    },
    /// Read the tasks of one queue that the filter wants, in the order of `ScanDue`. At most `max` tasks are looked at. Answered by
    /// [`Reply::Page`].
    ScanFilter {
        /// The tasks that are wanted.
        filter: Filter,
        /// The due key behind which the page begins.
        after: DueKey,
        /// The largest number of tasks that are looked at, at least 1.
        max: usize,
    },
    /// Count live tasks in buckets of due times. Answered by [`Reply::Counts`].
    Count(DueHistogram),
    /// Give the shard up: everything is durable and closed when the reply comes.
    Release {
        /// The ownership that came with [`Reply::Acquired`].
        ownership: Ownership,
    },
}

/// The reply of a store to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The shard is taken and recovered.
    Acquired(Acquired),
    /// The next page of the facts that a new owner needs.
    AcquiredPage(AcquiredPage),
    /// Another owner has the shard. The shard may be free later.
    Held,
    /// The commit is durable.
    Done {
        /// The growth that the store can still take (bytes), without its reserve for acks, cancels and a checkpoint.
        room: u64,
    },
    /// The commit is durable, and the store cannot grow for the moment: the system gives its process no file descriptor for the next file.
    /// Acks and cancels are still taken.
    DoneWithoutDescriptor,
    /// The ownership is over: a newer epoch has the shard, or the store has lost commits that it had acknowledged. A commit wrote nothing,
    /// and a read is not answered. The engine is dropped, and the shard can be acquired again.
    Fenced,
    /// The store could not do what was asked. Reply to a commit: neither this commit nor any later one is acknowledged; the store takes no
    /// further commit, but still answers reads. Reply to a read: the read cannot be answered; the engine sends no further commit, but may
    /// send further reads.
    Failed {
        /// The cause, as a part of a sentence, with the name of the file.
        why: String,
    },
    /// Reply to `ScanFilter` or `Count`: the store cannot answer for the time being, for example because the question takes its database too long.
    /// Only the call of this read is refused, and it can be made again.
    Unanswered {
        /// The cause, as a part of a sentence.
        why: String,
    },
    /// The reply to `GetMany`: one result for each question, in the same order.
    Found(Vec<Found>),
    /// The reply to `ScanDue` and `ScanFilter`.
    Page(Page),
    /// The reply to `Count`: a number for each bucket. A task that was changed during the count may be counted twice or not at all.
    Counts {
        /// The number of tasks that are due in each bucket.
        counts: Vec<u64>,
        /// Tasks that are due at this instant or before are counted; ask again for the later ones. `None`: all tasks are counted.
        counted: Option<Timestamp>,
    },
    /// The shard is given up.
    Released,
}

/// The content of one commit: at most one final effect for each task and each rule. A store may apply a batch twice: the second time
/// changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// The effects on tasks, one for each task that changed.
    pub effects: Vec<TaskEffect>,
    /// The state of each changed task in the store before this batch, in the order of the effects. A store that can count the tasks of a
    /// queue only by their changes needs it.
    pub before: Vec<Before>,
    /// The engine state, if it changed. An engine state contains all earlier ones, so that a store may keep the last one only.
    pub state: Option<EngineState>,
    /// The effects on rules, one for each rule that changed.
    pub rules: Vec<RuleEffect>,
    /// The ids of the rows of the store's inbox whose effects are in this batch, each once. Also a row without an effect is here. A store
    /// with an inbox deletes the rows in the transaction of the commit, so that each row has its effect exactly once. Other stores ignore
    /// the ids.
    pub taken: Vec<u64>,
}

impl Batch {
    /// Returns how the batch changes the numbers of tasks, for each queue whose numbers change. The order is that of the names.
    #[must_use]
    pub fn growth(&self) -> BTreeMap<QueueName, Growth> {
        debug_assert_eq!(self.effects.len(), self.before.len(), "the state before is known for each effect");
        let mut growth: BTreeMap<QueueName, Growth> = BTreeMap::new();
        for (effect, before) in self.effects.iter().zip(&self.before) {
            let (queue, after) = match effect {
                TaskEffect::Stored { task, .. } if task.dead().is_some() => (&task.queue, Before::Dead),
                TaskEffect::Stored { task, .. } => (&task.queue, Before::Live),
                TaskEffect::Ended(ended) => (&ended.queue, Before::Absent),
            };
            if *before == after {
                continue;
            }
            // `entry` would copy the name of the queue for each effect.
            if !growth.contains_key(queue) {
                growth.insert(queue.clone(), Growth::default());
            }
            if let Some(growth) = growth.get_mut(queue) {
                growth.add(*before, -1);
                growth.add(after, 1);
            }
        }
        growth.retain(|_, growth| *growth != Growth::default());
        growth
    }
}

/// The state of a task in the store before a batch changes it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Before {
    /// The store did not have the task, or the task had ended.
    Absent,
    /// The task was neither ended nor dead.
    Live,
    /// The task was dead.
    Dead,
}

/// By how many tasks a queue grew or, below 0, shrank.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Growth {
    /// The change of the number of tasks that are neither ended nor dead.
    pub live: i64,
    /// The change of the number of dead tasks.
    pub dead: i64,
}

impl Growth {
    fn add(&mut self, state: Before, by: i64) {
        match state {
            Before::Absent => {}
            Before::Live => self.live += by,
            Before::Dead => self.dead += by,
        }
    }
}

/// The new state of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskEffect {
    /// The task has this record now.
    Stored {
        /// The whole record.
        task: Arc<Task>,
        /// Whether the store has exactly this body from an earlier commit. Then the store need not write the body again.
        body_known: bool,
    },
    /// The task ended.
    Ended(Ended),
}

impl TaskEffect {
    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Stored { task, .. } => task.id,
            Self::Ended(ended) => ended.id,
        }
    }

    /// Returns the number of the change that the effect records.
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
    /// A task that has not ended. The task may be dead.
    Live(Arc<Task>),
    /// The task has ended, and no other task has the key. This is the end of the last task of the key or id, while the history remembers
    /// it.
    Ended(Ended),
    /// The store has neither a task nor the end of one.
    Absent,
}

/// A task's position in the order of time: (`due_at`, `put_seq`). A scan can begin behind such a position.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DueKey {
    /// The task's `due_at`.
    pub due_at: Timestamp,
    /// The task's `put_seq`.
    pub put_seq: Seq,
}

impl DueKey {
    /// The due key before every task: no task has `put_seq` 0.
    pub const START: Self = Self { due_at: Timestamp::EPOCH, put_seq: Seq::ZERO };

    /// Returns the due key of `task`.
    #[must_use]
    pub fn of(task: &Task) -> Self {
        Self { due_at: task.due_at, put_seq: task.put_seq }
    }
}

/// The tasks that a list wants. The engine decides whether a task is scheduled, ready or leased. The store filters by queue, by `due_at`,
/// and by whether the task is dead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Tasks of this queue.
    pub queue: QueueName,
    /// The earliest `due_at`, itself included.
    pub due_from: Timestamp,
    /// The latest `due_at`, itself included.
    pub due_to: Timestamp,
    /// `true`: only dead tasks are wanted. `false`: only tasks that are not dead are wanted.
    pub dead: bool,
}

/// A question how many live tasks are due in each bucket: which tasks are counted, and the buckets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueHistogram {
    /// Only tasks of this queue are counted; `None`: tasks of all queues.
    pub queue: Option<QueueName>,
    /// Only tasks that are due later than this instant are counted.
    pub after: Timestamp,
    /// Where the first bucket begins.
    pub from: Timestamp,
    /// The buckets, side by side.
    pub grid: Grid,
}

/// The buckets of a due histogram or a forecast: where each bucket ends, counted from the beginning of the first bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Grid {
    /// Buckets of one length.
    Even {
        /// The length of a bucket (ms), at least 1.
        width_ms: u64,
        /// The number of buckets.
        buckets: usize,
    },
    /// Buckets of different lengths.
    Ends(
        /// The end of each bucket, counted from the beginning of the first bucket (ms), in rising order. The end itself belongs to the next
        /// bucket.
        Arc<[u64]>,
    ),
}

impl Grid {
    /// Returns the number of buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        match self {
            Self::Even { buckets, .. } => *buckets,
            Self::Ends(ends) => ends.len(),
        }
    }

    /// Returns the index of the bucket that contains the instant `after_ms` (ms) after the beginning of the first bucket; `None`: no bucket
    /// contains it.
    #[must_use]
    pub fn bucket(&self, after_ms: u64) -> Option<usize> {
        let index = match self {
            Self::Even { width_ms, .. } => usize::try_from(after_ms / (*width_ms).max(1)).ok()?,
            Self::Ends(ends) => ends.partition_point(|end| *end <= after_ms),
        };
        (index < self.buckets()).then_some(index)
    }

    /// Returns the end of a bucket, counted from the beginning of the first bucket (ms). Beyond the last bucket, returns the end of the
    /// last one.
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

    /// Returns the length of all buckets together (ms).
    #[must_use]
    pub fn length_ms(&self) -> u64 {
        self.end_ms(usize::MAX)
    }
}

impl DueHistogram {
    /// Returns the index of the bucket in which a task with this due time is counted; `None`: the task is not counted.
    #[must_use]
    pub fn bucket(&self, due_at: Timestamp) -> Option<usize> {
        if due_at <= self.after || due_at < self.from {
            return None;
        }
        self.grid.bucket(due_at.ms_since(self.from))
    }

    /// Returns a due key that is before all counted tasks.
    #[must_use]
    pub fn start(&self) -> DueKey {
        // Tasks that are due at `after` itself are not counted. So the due key is behind all of them, however many there are.
        let after = DueKey { due_at: self.after, put_seq: Seq(u64::MAX) };
        after.max(DueKey { due_at: self.from, put_seq: Seq::ZERO })
    }

    /// Returns the last instant of the last bucket.
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
    /// The due key behind which the next page begins; `None`: there are no more tasks.
    pub next: Option<DueKey>,
}
