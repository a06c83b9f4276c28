//! [`Database`]: the seam between the store and its database.
//!
//! A store sends whole operations, not statements: a commit, a look-up, a heartbeat. Below the seam is PostgreSQL, or the simulated database of
//! the simulator. A call of a [`Session`] blocks until the database has answered, or until it is known that no answer comes.

use std::time::Duration;

use tickwheel_engine::{DueHistogram, DueKey, Filter, Key, QueueName, Timestamp, Wanted};

/// Makes sessions with one database.
pub trait Database: Send + Sync {
    /// A session with the database.
    type Session: Session;

    /// Makes a session for this incarnation of the process.
    ///
    /// # Errors
    /// [`ConnectFailure`].
    fn connect(&self, incarnation: &str) -> Result<Self::Session, ConnectFailure>;
}

/// The reason why there is no session, as a part of a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectFailure {
    /// The database does not answer at present. A later call may succeed.
    #[error("{0}")]
    Unreachable(String),
    /// The database refuses this process, or its data or settings are not those that the process needs. Only an operator can change that.
    #[error("{0}")]
    Refused(String),
}

/// The reason why a session did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The database answered with an error, and nothing was changed. The session goes on.
    Refused {
        /// The answer of the database.
        why: String,
        /// Whether the same call may succeed later, for example once the database has space again.
        again: bool,
    },
    /// There is no answer, and the session is over. It is unknown whether a change took effect, and it may still take effect later.
    Gone {
        /// The reason, as a part of a sentence.
        why: String,
    },
}

/// One session with the database.
pub trait Session: Send {
    /// Makes the incarnation known to the other processes.
    ///
    /// # Errors
    /// [`Failure`].
    fn join(&mut self, node: &NodeEntry) -> Result<(), Failure>;

    /// Raises the heartbeat of this incarnation, and reads the clock of the database and the heartbeats of the others.
    ///
    /// # Errors
    /// [`Failure`].
    fn heartbeat(&mut self, incarnation: &str) -> Result<Heartbeat, Failure>;

    /// Ends another incarnation, if its heartbeat is still `beat`. Then ends its sessions with the database. Returns whether the incarnation has
    /// ended.
    ///
    /// # Errors
    /// [`Failure`].
    fn end(&mut self, incarnation: &str, beat: i64) -> Result<bool, Failure>;

    /// Ends the incarnation of this process, whose shards other processes may then take at once.
    ///
    /// # Errors
    /// [`Failure`].
    fn leave(&mut self, incarnation: &str) -> Result<(), Failure>;

    /// Commits the batches in one transaction. Returns the shards whose batches took part. A shard whose epoch moved, whose number is there
    /// already, or whose number before is missing, drops out alone.
    ///
    /// # Errors
    /// [`Failure`]. After [`Failure::Refused`] no batch took part.
    fn commit(&mut self, batches: &[&ShardBatch]) -> Result<Vec<u32>, Failure>;

    /// Finds out whether a batch whose answer was lost took effect. Waits for a transaction that still holds the shard. If the batch is
    /// there, writes an empty batch behind it.
    ///
    /// # Errors
    /// [`Failure`].
    fn resolve(&mut self, doubt: &Doubt) -> Result<Resolution, Failure>;

    /// Takes a shard whose owner gave it up or has ended, and reads the state of the shard.
    ///
    /// # Errors
    /// [`Failure`].
    fn acquire(&mut self, wanted: &Acquire) -> Result<Acquisition, Failure>;

    /// Gives a shard up. Does nothing if the epoch has moved.
    ///
    /// # Errors
    /// [`Failure`].
    fn release(&mut self, claim: Claim) -> Result<(), Failure>;

    /// Replaces batches by one rollup. Does nothing if the epoch has moved.
    ///
    /// # Errors
    /// [`Failure`].
    fn roll_up(&mut self, rollup: &Rollup) -> Result<(), Failure>;

    /// Reads from one shard, in one snapshot.
    ///
    /// # Errors
    /// [`Failure`].
    fn read(&mut self, shard: u32, read: &Read) -> Result<ReadResult, Failure>;

    /// Reads the oldest rows in the inboxes of these shards, in one snapshot: at most `rows_max` rows of a shard, in the order of their ids,
    /// without the rows `but`. A shard whose epoch has moved in this snapshot is left out, and so is one without rows.
    ///
    /// # Errors
    /// [`Failure`].
    fn inbox(&mut self, claims: &[Claim], rows_max: usize, but: &[i64]) -> Result<Vec<InboxPage>, Failure>;

    /// Moves rows of inboxes to the refused ones, all in one transaction. A row that is gone, or whose shard has another epoch by now, is
    /// left out. So the call can be made again after an unknown outcome.
    ///
    /// # Errors
    /// [`Failure`].
    fn refuse(&mut self, refusals: &[Refusal]) -> Result<(), Failure>;
}

/// The entry of one incarnation: one run of a process, from its first heartbeat until it ends or sends no more heartbeats. Its name is never used again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeEntry {
    /// The random name of the incarnation.
    pub incarnation: String,
    /// The name that the operator gave to the process.
    pub name: String,
    /// Where the process is reached.
    pub address: String,
    /// The version of the program.
    pub version: String,
}

/// The answer to a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The clock of the database when it took the heartbeat (ns since the Unix epoch); `None`: the incarnation has ended.
    pub wall_ns: Option<i128>,
    /// Whether the incarnation has ended and an operator has adopted the tables since it began, which ends all incarnations.
    pub adopted: bool,
    /// The failover number of the database (PostgreSQL calls it the timeline). It rises when a standby is promoted.
    pub failover: i64,
    /// The other incarnations that have not ended, each with its heartbeat.
    pub others: Vec<(String, i64)>,
}

/// The right to change a shard.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The number of the shard.
    pub shard: u32,
    /// The epoch of the ownership.
    pub epoch: i64,
}

/// The batch of one shard, encoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardBatch {
    /// The shard and the epoch under which the batch is written.
    pub claim: Claim,
    /// The number of the batch. The numbers of a shard have no gap.
    pub no: i64,
    /// The number of the last change.
    pub seq: i64,
    /// The wall clock of the owner (ms).
    pub wall: i64,
    /// The engine state, if it changed.
    pub counters: Option<[u8; 16]>,
    /// The changes of the numbers of tasks, see [`counts`](crate::shard::counts); empty: none changed.
    pub counts: Vec<u8>,
    /// The records of the ends, one behind the other.
    pub ended: Vec<u8>,
    /// The ids of the tasks that ended.
    pub ends: Vec<i64>,
    /// The ids of the dead tasks that lost their keys.
    pub keyless: Vec<i64>,
    /// The records of tasks.
    pub puts: Vec<PutRow>,
    /// The rules that changed.
    pub rules: Vec<RuleRow>,
    /// The ids of the rows of the inbox that have their effects in this batch. They are deleted in the same transaction.
    pub taken: Vec<i64>,
}

impl ShardBatch {
    /// Returns about how many bytes go to the database.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let puts = self.puts.iter().map(|put| 64 + put.record.len() + put.body.as_ref().map_or(0, Vec::len));
        let rules = self.rules.iter().map(|rule| 64 + rule.record.as_ref().map_or(0, Vec::len));
        128 + self.counts.len()
            + self.ended.len()
            + 8 * (self.ends.len() + self.taken.len())
            + puts.sum::<usize>()
            + rules.sum::<usize>()
    }

    /// Returns the number of rows that the batch changes.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.ends.len() + self.puts.len() + self.rules.len() + self.taken.len()
    }
}

/// A task as a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutRow {
    /// The id of the task.
    pub id: i64,
    /// Whether the task has no row in the database yet.
    pub is_new: bool,
    /// The queue of the task.
    pub queue: QueueName,
    /// The key; `None`: the task is dead and has lost its key.
    pub key: Option<Key>,
    /// When the task is due, or when a dead task is forgotten (ms).
    pub due_at: i64,
    /// The number of the change that put the task.
    pub put_seq: i64,
    /// The number of the change that made this record.
    pub seq: i64,
    /// Whether the task is dead.
    pub dead: bool,
    /// Whether a stop wrote down a lease.
    pub leased: bool,
    /// The record without the body.
    pub record: Vec<u8>,
    /// The body; `None`: the database has it.
    pub body: Option<Vec<u8>>,
}

/// A rule as a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRow {
    /// The kind of the rule: 1 for the settings of a queue, 2 for a schedule, 3 for a job.
    pub kind: i16,
    /// The queue; empty for a job.
    pub queue: String,
    /// The name of a schedule, or the number of a job; empty for the settings of a queue.
    pub name: String,
    /// The record; `None`: the rule was removed.
    pub record: Option<Vec<u8>>,
}

/// A batch whose answer was lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// The shard and the epoch of the batch.
    pub claim: Claim,
    /// The number of the batch.
    pub no: i64,
}

/// The outcome of a batch whose answer was lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// The batch took effect. `last` is the number of the empty batch behind it.
    Done {
        /// The number of the last batch of the shard.
        last: i64,
    },
    /// The batch took no effect, and never will under its number unless it is sent again.
    Absent,
    /// Another owner has the shard.
    Moved,
    /// The database has lost batches that it had acknowledged.
    Lost,
}

/// A request for a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acquire {
    /// The number of the shard.
    pub shard: u32,
    /// The incarnation that takes the shard.
    pub incarnation: String,
    /// The wall clock of the new owner, for the record only (ms).
    pub wall: i64,
    /// The failover number with which the shard may be taken although it was last taken with a lower one. The fail-over may have lost a later owner, who
    /// may still answer.
    pub after_loss: Option<i64>,
}

/// The answer to an [`Acquire`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acquisition {
    /// The shard is taken.
    Acquired(Box<Snapshot>),
    /// Another incarnation has the shard and has not ended.
    Held(Holder),
    /// The database has failed over since the shard was last taken, and [`Acquire::after_loss`] does not name its failover number.
    TooSoon,
    /// The incarnation that asked is not the present one of its process any more.
    Outdated,
}

/// The process that has a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The incarnation.
    pub incarnation: String,
    /// The name that the operator gave to the process.
    pub name: String,
    /// Where the process is reached.
    pub address: String,
}

/// The state of a shard when it was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The epoch of the new ownership.
    pub epoch: i64,
    /// The secret of the shard.
    pub secret: [u8; 16],
    /// The newest rollup.
    pub rollup: Option<BatchRow>,
    /// The batches behind the newest rollup, in the order of their numbers. The last of them is that of the acquisition.
    pub batches: Vec<BatchRow>,
    /// The records of all rules.
    pub rules: Vec<Vec<u8>>,
    /// The ids of the tasks whose leases a stop wrote down.
    pub leased: Vec<i64>,
}

/// A batch or a rollup, as a new owner reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchRow {
    /// The number of the batch, or of the last batch in the rollup.
    pub no: i64,
    /// The number of the last change.
    pub seq: i64,
    /// The wall clock of the owner (ms).
    pub wall: i64,
    /// The engine state, if it changed.
    pub counters: Option<Vec<u8>>,
    /// The changes of the numbers of tasks. In a rollup: the numbers themselves.
    pub counts: Vec<u8>,
    /// The records of the ends. Empty in the rollup of a [`Snapshot`], because the history is read later.
    pub ended: Vec<u8>,
    /// In the batch of an acquisition: how many fail-overs there were since the shard was taken before. Above 0, the database may have lost batches
    /// with numbers that were seen. The number stays in the batch, so that an owner who comes later passes the same numbers, even if the
    /// owner before has written nothing. The epoch has grown by 1,024 for each of the fail-overs, or by 1.
    pub failovers_passed: i64,
}

/// Many batches as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rollup {
    /// The shard and the epoch of the owner.
    pub claim: Claim,
    /// The number of the last batch in the rollup. All batches before it are removed.
    pub no: i64,
    /// The number of the last change.
    pub seq: i64,
    /// The latest wall clock (ms).
    pub wall: i64,
    /// The engine state.
    pub counters: [u8; 16],
    /// The numbers of tasks of all queues.
    pub counts: Vec<u8>,
    /// The records of the ends since the rollup before. If `replaces_history`: the records of all ends that are remembered.
    pub ended: Vec<u8>,
    /// Whether all earlier rollups are removed, because this rollup has the whole history.
    pub replaces_history: bool,
}

/// A question about one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// Tasks by key or by id.
    Find(Vec<Wanted>),
    /// Tasks that have not ended, in the order of their due keys, as in [`Request::ScanDue`](tickwheel_engine::Request::ScanDue).
    ScanDue {
        /// The due key behind which the page begins.
        after: DueKey,
        /// The latest `due_at` that is wanted.
        until: Timestamp,
        /// The largest number of tasks.
        max: usize,
    },
    /// Tasks of one queue, as in [`Request::ScanFilter`](tickwheel_engine::Request::ScanFilter).
    ScanFilter {
        /// The tasks that are wanted.
        filter: Filter,
        /// The due key behind which the page begins.
        after: DueKey,
        /// The largest number of tasks.
        max: usize,
    },
    /// The due times of live tasks, as in [`Request::Count`](tickwheel_engine::Request::Count).
    Count(DueHistogram),
    /// The ends in all rollups.
    History,
    /// Keys of tasks.
    Keys {
        /// The queues, each with the key behind which its page begins, or with an empty text.
        of: Vec<(QueueName, String)>,
        /// The largest number of keys of one queue.
        max: usize,
    },
}

/// A list or a forecast that the database has not answered by then is refused, because the other questions wait behind it.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(10);

impl Read {
    /// Whether the shard can go on without an answer: only one call waits for it, or none.
    #[must_use]
    pub fn can_fail(&self) -> bool {
        matches!(self, Self::ScanFilter { .. } | Self::Count(_) | Self::Keys { .. })
    }
}

/// The answer to a [`Read`], and the state of the shard in the same snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadResult {
    /// The epoch of the owner.
    pub epoch: i64,
    /// The number of the last batch in the snapshot.
    pub no: i64,
    /// The rows.
    pub rows: Rows,
}

/// The rows of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rows {
    /// One entry for each question, in the same order; `None`: there is no such task.
    Found(Vec<Option<TaskRow>>),
    /// The tasks of a page in their order, and whether there are more.
    Page {
        /// The tasks.
        tasks: Vec<TaskRow>,
        /// Whether more tasks follow.
        more: bool,
    },
    /// Due times (ms) in rising order, each with the number of live tasks that are due then.
    Dues {
        /// The due times.
        dues: Vec<(i64, u64)>,
        /// Tasks due at this instant or before are counted (ms); `None`: all are.
        counted: Option<i64>,
    },
    /// The ends in each rollup, in the order of the rollups, each with the number of the rollup.
    History(Vec<(i64, Vec<u8>)>),
    /// The keys of tasks. Each queue has its first keys, in the order of their bytes.
    Keys(Vec<KeyRow>),
}

/// The key of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRow {
    /// The queue.
    pub queue: String,
    /// The key.
    pub key: String,
    /// The id of the task.
    pub id: i64,
}

/// A task as a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskRow {
    /// The record without the body.
    pub record: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The oldest rows in the inbox of one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboxPage {
    /// The shard, and its epoch in the snapshot of the rows.
    pub claim: Claim,
    /// The rows, in the order of their ids. There is one at least.
    pub entries: Vec<InboxEntry>,
    /// Whether more rows may follow.
    pub more: bool,
}

/// The longest payload of a row of the inbox (bytes), as in `tickwheel.put`.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 1 << 20;

/// A row of the inbox. The functions of the schema write only rows that are right, but a row that was made by hand may have anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboxEntry {
    /// The id of the row.
    pub id: i64,
    /// 1 for a put, 2 for a cancel.
    pub op: i16,
    /// The queue.
    pub queue: String,
    /// The key.
    pub key: String,
    /// When the task is due (ms).
    pub due_at: Option<i64>,
    /// The payload; `None` also if it is too long to be read.
    pub payload: Option<Vec<u8>>,
    /// The length of the payload, also of one that was not read (bytes).
    pub payload_bytes: u64,
    /// The content type of the payload.
    pub content_type: Option<String>,
    /// The clock of the database when the row was written (ms).
    pub put_at: i64,
}

/// A row of the inbox that no task can be made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The shard and the epoch of the owner.
    pub claim: Claim,
    /// The id of the row.
    pub row: i64,
    /// The reason, as a part of a sentence.
    pub why: String,
}
