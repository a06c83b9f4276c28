//! [`Options`]: the choices that a program makes before it opens a queue. [`Opened`]: the report of the opening.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_engine::{EngineConfig, SHARDS_MAX, ShardId, Timestamp};
use tickwheel_store::{AckLevel, RecoveryReport};

use crate::notice::{Listener, Notice};

/// The default threshold of a slow commit. A [`Notice`] tells of a commit that takes this long or longer.
pub const SLOW_COMMIT_DEFAULT: Duration = Duration::from_secs(1);

/// The smallest budget of a shard for tasks in memory (bytes).
pub(crate) const NEAR_BYTES_MIN: u64 = 1 << 20;

/// Why a queue could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be used. Nothing in it was changed unless the error tells of a change.
    #[error(transparent)]
    Store(#[from] tickwheel_store::OpenError),
    /// The operating system has no random bytes, which the secret that signs lease tokens needs.
    #[error("get random bytes from the operating system: {0}")]
    Random(String),
    /// One of the shards cannot be opened.
    #[error("{shard}, in the folder `{:04}`: {source}", shard.number())]
    OfShard {
        /// The shard.
        shard: ShardId,
        /// The reason.
        source: Box<OpenError>,
    },
    /// A queue cannot have this number of shards.
    #[error("a queue has 1 to {SHARDS_MAX} shards, not {shards}")]
    Shards {
        /// The number that was asked for.
        shards: usize,
    },
    /// The operating system refuses to start the queue's thread.
    #[error("start the queue's thread: {0}")]
    Thread(#[source] std::io::Error),
    /// Another process has the shard, or the store refused or failed to hand it over.
    #[error("take the shard: {why}")]
    Taken {
        /// The reason.
        why: String,
    },
    /// The wall clock is further ahead of what the data says than [`Options::clock_max_ahead`] allows. No task was changed.
    #[error(
        "the wall clock is {ahead_s} s ahead of the last time in the data, and at most {max_s} s are allowed: set the clock right; if it is right, open \
         once with a higher limit"
    )]
    ClockAhead {
        /// How far the wall clock is ahead (s).
        ahead_s: u64,
        /// How far it may be ahead (s).
        max_s: u64,
    },
    /// Tasks that are due soon cannot be read, so it is unknown which tasks are ready.
    #[error(
        "{why}; `tickwheel doctor --deep` says what else is damaged: restore the data directory from a copy, or save what can be read of it \
         with `tickwheel salvage`, and keep this one as it is until then"
    )]
    Near {
        /// The failure, with file and byte.
        why: String,
    },
}

/// The report of the opening of a queue, for the log of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The report of the recovery of the store; `None` if the store does not recover from files, such as the store in memory.
    pub recovery: Option<RecoveryReport>,
    /// The identity of the queue. For a directory this is its [`identity`](crate::backup::identity), which never changes and which the
    /// backups of the directory have too. For a queue in memory, 16 hex digits are drawn at random at each opening. The identity tells
    /// nothing about the content of the queue.
    pub identity: Arc<str>,
    /// The instance number of the queue; see [`Queue::instance`](crate::Queue::instance).
    pub instance: u32,
    /// How long the opening took, until the queue could be used.
    pub took: Duration,
}

impl From<std::convert::Infallible> for OpenError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// The choices about a queue before it is opened. Start from [`Queue::options`](crate::Queue::options).
///
/// ```
/// use std::time::{Duration, Instant};
/// use tickwheel_queue::Queue;
/// let queue = Queue::options().virtual_clock().open_memory()?;
/// let before = queue.now();
/// queue.advance(Duration::from_secs(15 * 86_400)).wait()?;
/// assert_eq!(queue.now().ms_since(before), 15 * 86_400_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) shards: Option<u32>,
    pub(crate) virtual_clock: Option<VirtualStart>,
    pub(crate) engine: EngineConfig,
    pub(crate) ack_level: AckLevel,
    pub(crate) log_file_bytes: Option<u64>,
    pub(crate) checkpoint_after_bytes: Option<u64>,
    pub(crate) slow_commit: Option<Duration>,
    pub(crate) listener: Listener,
    pub(crate) clock_max_ahead: Option<Duration>,
}

#[derive(Copy, Clone, Debug)]
pub(crate) enum VirtualStart {
    /// The clock starts at the real time, or at the last time in the directory if that time is later.
    Now,
    At(Timestamp),
}

impl Options {
    /// Spreads the queues over this number of shards, 1 to [`SHARDS_MAX`]. Default: the number that the directory has, or 1 if it is new. Each shard has an engine and a store of its own, and
    /// several threads drive the shards, so that several processors can work. All tasks of a queue are in one shard, see
    /// [`Router`](crate::Router). The number of shards of a directory never changes: an opening with another number is refused.
    ///
    /// ```
    /// use tickwheel_queue::{Put, Queue, QueueName};
    ///
    /// let queue = Queue::options().shards(4).open_memory()?;
    /// let mail = QueueName::new("mail")?;
    /// let task = queue.put(Put::without_key(&mail)).wait()?.task;
    /// assert_eq!(task.id % 4, u64::from(queue.shard_of(&mail).number()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Gives the queue a clock that stands still until [`Queue::advance`](crate::Queue::advance) moves it. The clock starts at the real
    /// time, or at the last time in the directory if that time is later. A directory has the same kind of clock, real or virtual, for ever.
    #[must_use]
    pub fn virtual_clock(mut self) -> Self {
        self.virtual_clock = Some(VirtualStart::Now);
        self
    }

    /// Gives the queue a virtual clock that starts at `start`, or at the last time in the directory if that time is later.
    #[must_use]
    pub fn virtual_clock_at(mut self, start: Timestamp) -> Self {
        self.virtual_clock = Some(VirtualStart::At(start));
        self
    }

    /// Sets how far ahead the due times of tasks in memory reach. Later tasks are loaded in time. Default: one hour; at least 1 s.
    #[must_use]
    pub fn horizon(mut self, horizon: Duration) -> Self {
        self.engine.horizon_ms = u64::try_from(horizon.as_millis()).unwrap_or(u64::MAX).max(1_000);
        self
    }

    /// Sets about how much memory the tasks may take that are ready or due soon (bytes). Default: 256 MiB; at least 1 MiB.
    ///
    /// If the tasks need more memory, only tasks that are due within a shorter time than the horizon are kept in memory. For a ready task
    /// behind the first of its queue, only 64 bytes are kept in memory, and its record is read before the task is leased. No task is late
    /// or refused for this reason. Several shards
    /// share the memory, but each has 1 MiB at least. The limit does not count leased tasks, changes on their way to the disk, and the 64 bytes of each task
    /// that is ready or due within 2 s.
    #[must_use]
    pub fn near_bytes_max(mut self, bytes: u64) -> Self {
        self.engine.near_bytes_max = bytes.max(NEAR_BYTES_MIN);
        self
    }

    /// Sets when a call that changes something is answered: when the change is synced (the default), when it is written, or at once.
    /// [`AckLevel`] tells which failures an answered call survives at each level. The level has no effect on a queue in memory.
    #[must_use]
    pub fn ack_level(mut self, level: AckLevel) -> Self {
        self.ack_level = level;
        self
    }

    /// Sets the size of one log file (bytes). Default: 16 MiB.
    #[must_use]
    pub fn log_file_bytes(mut self, bytes: u64) -> Self {
        self.log_file_bytes = Some(bytes);
        self
    }

    /// Sets how much log is written after a checkpoint before the next checkpoint starts (bytes). Default: 32 MiB.
    #[must_use]
    pub fn checkpoint_after_bytes(mut self, bytes: u64) -> Self {
        self.checkpoint_after_bytes = Some(bytes);
        self
    }

    /// Sets the function `listen`, which is called with every [`Notice`]: an event that an operator should know while the queue runs, such
    /// as a full disk. The queue's own thread calls `listen` after a turn, so `listen` must not block, and must not wait for an answer of
    /// the queue. It may close the queue. A panic of `listen` is caught, and [`Health::panicked`](crate::Health::panicked) counts it.
    ///
    /// ```
    /// use tickwheel_queue::{Notice, Queue};
    ///
    /// let queue = Queue::options().on_notice(|notice| {
    ///     if let Notice::ReadOnly { why } = notice {
    ///         eprintln!("nothing is changed any more: {why}");
    ///     }
    /// });
    /// let queue = queue.open_memory()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_notice(mut self, listen: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.listener = Listener::new(listen);
        self
    }

    /// Refuses an opening whose wall clock is further ahead of the last time in the data than `max`. Default: no limit. Without the limit, an
    /// opening whose clock is more than five minutes ahead holds back for a minute what fell due since the last time in the data. A queue with a
    /// virtual clock has no such limit.
    #[must_use]
    pub fn clock_max_ahead(mut self, max: Duration) -> Self {
        self.clock_max_ahead = Some(max);
        self
    }

    /// Sets the threshold of a slow commit. A [`Notice`] tells of a commit that takes as long as `threshold` or longer:
    /// [`Notice::CommitWaits`] while the commit is under way, and [`Notice::CommitSlow`] after it. Of several slow commits that end in one
    /// turn, only the longest gets a [`Notice::CommitSlow`]. The queue's monotonic clock measures commits. A virtual clock stands still
    /// during a commit, so it never shows a slow one. Default: 1 s.
    #[must_use]
    pub fn slow_commit(mut self, threshold: Duration) -> Self {
        self.slow_commit = Some(threshold);
        self
    }
}
