//! What the machine answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cursor::TaskCursor;
use crate::figures::{LATENESS_BOUNDS_MS, QueueFigures};
use crate::name::{Group, Key, QueueName, ScheduleName};
use crate::queue_view::{QueuePage, QueueTotals};
use crate::schedule::ScheduleRecord;
use crate::task::{Body, Dead, Failure, Retry, Tally, Task};
use crate::time::{Seq, Timestamp};
use crate::token::Token;

/// Where a live task stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Not due yet. Time moves it to ready; its owner may cancel it.
    Scheduled,
    /// Due, and nobody has it. A lease moves it on; its owner may cancel it.
    Ready,
    /// In a worker's hands. Ack ends it; expiry and nack without delay make it ready, nack with delay scheduled.
    Leased,
    /// Given up. Its owner may redrive or cancel it; time forgets it.
    Dead,
}

/// A live task as its owner sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// The server's number.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The ETag: changes exactly when the owner changes the task.
    pub version: Seq,
    /// The put that made or replaced it.
    pub put_seq: Seq,
    /// Where it stands.
    pub state: State,
    /// When it is, or was, due.
    pub due_at: Timestamp,
    /// When its put was received; of a row of debounced puts, the first.
    pub put_at: Timestamp,
    /// Of a task in a worker's hands: when its lease ends.
    pub leased_until: Option<Timestamp>,
    /// When that lease began, if it did in this life of the machine.
    pub leased_since: Option<Timestamp>,
    /// The name of its worker, if it gave one in this life of the machine.
    pub leased_by: Option<Arc<str>>,
    /// Of a ready task whose queue limits its group, in the answer to a get: how many tasks of the group are in workers' hands.
    pub group_in_flight: Option<u64>,
    /// Smaller goes first.
    pub priority: u32,
    /// Leases begun so far; 0: never leased.
    pub attempt: u32,
    /// The lease duration that its producer chose, milliseconds.
    pub ttr_ms: Option<u64>,
    /// What has happened to it so far, counted.
    pub tally: Tally,
    /// The group it is in.
    pub group: Option<Group>,
    /// How often and how soon it is tried again.
    pub retry: Option<Retry>,
    /// When it is given up unless somebody has it or has finished it.
    pub expire_at: Option<Timestamp>,
    /// What its put was traced by.
    pub trace: Option<Arc<str>>,
    /// The attempts that failed last, the oldest first.
    pub failures: Vec<Failure>,
    /// When and why it was given up.
    pub dead: Option<Dead>,
    /// Which instant of its timeline it is due at, from 0.
    pub step: usize,
    /// Payload, content type, tags, timeline.
    pub body: Arc<Body>,
}

impl TaskView {
    pub(crate) fn new(task: &Task, state: State) -> Self {
        let begun = if state == State::Leased { task.attempts.saturating_add(1) } else { task.attempts };
        Self {
            id: task.id,
            queue: task.queue.clone(),
            key: task.key.clone(),
            version: task.version,
            put_seq: task.put_seq,
            state,
            due_at: task.dead().map_or(task.due_at, |dead| dead.due_at),
            put_at: task.put_at,
            leased_until: None,
            leased_since: None,
            leased_by: None,
            group_in_flight: None,
            priority: task.priority,
            attempt: begun,
            ttr_ms: task.ttr_ms(),
            tally: task.tally(),
            group: task.group().cloned(),
            retry: task.own_retry(),
            expire_at: task.expire_at(),
            trace: task.trace().cloned(),
            failures: task.failures().to_vec(),
            dead: task.dead().copied(),
            step: task.step(),
            body: Arc::clone(&task.body),
        }
    }
}

/// A put was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Whether the task is new; else it replaced the live one of that key.
    pub created: bool,
    /// The task.
    pub task: TaskView,
}

/// A task was cancelled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// No delivery of it starts from now on.
    Cancelled,
    /// A worker had it; its token answers `revoked` from now on.
    Revoked,
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
    /// What its put was traced by.
    pub trace: Option<Arc<str>>,
    /// Which instant of its timeline this is, from 0.
    pub step: usize,
    /// What to work on: what [`Body::payload_at`] says of this step.
    pub body: Arc<Body>,
}

/// What became of one token.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TokenAnswer {
    /// The task is done, or this instant of its timeline. A second ack of the token is told the same while that is remembered.
    Acked,
    /// The task is given back.
    Nacked,
    /// The lease goes on.
    Extended,
    /// The lease had ended, or never was.
    Expired,
    /// The owner took the task back.
    Revoked,
}

/// How many tasks fall due when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForecastView {
    /// Where the first bucket begins: now is in it.
    pub from: Timestamp,
    /// How many tasks are due in each; of the first those that are later than now.
    pub counts: Vec<u64>,
    /// All changes up to this one are counted; later ones may be, and a task that was changed while it was counted may be missing.
    pub as_of: Seq,
}

/// One page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskPage {
    /// The tasks, in the order of `due_at`.
    pub tasks: Vec<TaskView>,
    /// A cursor behind each of them: a list that goes on there has those that follow.
    pub cursors: Vec<TaskCursor>,
    /// Tasks of the queue that were looked at, those that the filter leaves out among them.
    pub looked_at: usize,
    /// Where the next page starts; `None` at the end.
    pub next: Option<TaskCursor>,
    /// The last change when the page was made.
    pub as_of: Seq,
}

/// A schedule, and how far it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleView {
    /// The queue.
    pub queue: QueueName,
    /// Its name.
    pub name: ScheduleName,
    /// What is known of it.
    pub record: Arc<ScheduleRecord>,
}

/// A schedule was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSchedule {
    /// Whether it is new; else it replaced, or is, the one of that name.
    pub created: bool,
    /// The schedule.
    pub schedule: ScheduleView,
}

/// The machine's own figures since its start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// The page of queues that was asked for.
    pub page: QueuePage,
    /// What happened in queues that have ended, by the namespace, as long as that has others. Empty unless the page is the last.
    pub gone: BTreeMap<String, QueueTotals>,
    /// What happened in queues that are forgotten, together.
    pub forgotten: QueueFigures,
    /// How many queues have appeared; no queue's [`appeared`](crate::QueueCounts::appeared) is higher.
    pub queues_appeared: u64,
    /// Puts and patches taken.
    pub scheduled_total: u64,
    /// Tasks added.
    pub added_total: u64,
    /// Tasks that became ready because their instant came.
    pub fired_total: u64,
    /// Tasks cancelled or revoked.
    pub cancelled_total: u64,
    /// Leases granted.
    pub leased_total: u64,
    /// Leases that ended by ack.
    pub acked_total: u64,
    /// Leases that ended by nack.
    pub nacked_total: u64,
    /// Leases that ran out.
    pub expired_total: u64,
    /// Tasks given up.
    pub dead_total: u64,
    /// Schedules that are laid down.
    pub schedules: usize,
    /// Instants of schedules that tasks were made of.
    pub made_total: u64,
    /// Instants of schedules that were left out: missed, or in the way of a task that had not ended.
    pub skipped_total: u64,
    /// Instants of schedules that have come and wait for the task before them to end.
    pub instants_waiting: usize,
    /// Lateness of what fired, `due_at` to ready, in the buckets of [`LATENESS_BOUNDS_MS`] and one beyond.
    pub lateness: [u64; LATENESS_BOUNDS_MS.len() + 1],
    /// Their sum, milliseconds.
    pub lateness_sum_ms: u64,
    /// Bytes of growth that the store can take.
    pub room: u64,
    /// Calls that wait for a ready task.
    pub waiting: usize,
    /// Whether the store failed and only reads are answered.
    pub read_only: bool,
    /// Bytes that near memory takes, about.
    pub near_bytes: u64,
    /// Its budget, see [`EngineConfig::near_bytes_max`](crate::EngineConfig::near_bytes_max).
    pub near_bytes_max: u64,
    /// All ids of tasks that there have been are below this one.
    pub ids_below: u64,
}

/// The machine cannot answer as asked; not the caller's mistake.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// It is stopping or has stopped. The call had no effect.
    #[error("the queue is closed; the call had no effect")]
    Closed,
    /// Another process owns the shard now. The call had no effect; it can be made again.
    #[error("another process owns the queue now; the call had no effect, and it can be made again")]
    Unowned,
    /// The store failed before this call: nothing is changed any more. The call had no effect.
    #[error("the store is read-only since it failed: {why}; the call had no effect")]
    ReadOnly {
        /// What failed.
        why: Arc<str>,
    },
    /// The store failed or the queue stopped while the call was under way: it may have taken effect or not.
    #[error("the outcome is unknown: {why}; the call may have taken effect or not")]
    Indeterminate {
        /// What failed.
        why: Arc<str>,
    },
    /// The disk is full. The call had no effect; acks and cancels are still taken.
    #[error("the store is full: the call needs {needed} bytes and {room} are left; it had no effect")]
    Full {
        /// Bytes the call would add.
        needed: u64,
        /// Bytes the store can take.
        room: u64,
    },
}

/// Why a put was refused. None leaves a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutError {
    /// `Create`, and the key is live.
    #[error("a live task has this key (id {id}, version {version})")]
    Live {
        /// Its id.
        id: u64,
        /// Its version.
        version: Seq,
    },
    /// `Replace`, and there is none.
    #[error("no live task has this key")]
    NotFound,
    /// `Once`, and the last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// It may not add a task, and there is none to change.
    #[error("no live task has this key, and none may be added")]
    WouldAdd,
    /// The version is another, or there is none.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The live task's version.
        current: Option<Seq>,
    },
    /// Due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest allowed, milliseconds from now.
        limit_ms: u64,
    },
    /// The instants of a timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// Which one, from 0.
        index: usize,
    },
    /// Given up before it is due.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When it would be given up.
        expire_at: Timestamp,
        /// When it would be due.
        due_at: Timestamp,
    },
    /// The queue is being drained: no task is added.
    #[error("the queue is being drained: no task is added until it is resumed")]
    Draining,
    /// The queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many it may have.
        limit: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a get found nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GetError {
    /// No live task, and none that was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a patch was refused. None leaves a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatchError {
    /// No live task, and none that was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// The task was given up: it has to be redriven first.
    #[error("the task is dead; redrive it first")]
    Dead,
    /// A worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The version is another.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The live task's version.
        current: Option<Seq>,
    },
    /// Due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest allowed, milliseconds from now.
        limit_ms: u64,
    },
    /// The instants of a timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// Which one, from 0.
        index: usize,
    },
    /// It has a timeline, which is replaced as a whole.
    #[error("the task has a timeline: it is replaced as a whole")]
    Timeline,
    /// Given up before it is due.
    #[error("the task would expire at {expire_at}, and is due at {due_at}")]
    ExpiresFirst {
        /// When it would be given up.
        expire_at: Timestamp,
        /// When it would be due.
        due_at: Timestamp,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a cancel did not end the task. None leaves a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CancelError {
    /// No live task, and none that was done lately.
    #[error("no live task has this key")]
    NotFound,
    /// The last task of this key was acked: the cancel came too late.
    #[error("the task of this key is done")]
    Done,
    /// A worker has the task: a delivery began first.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The version is another.
    #[error("the version is not the one given: {}", version_prose(.current))]
    VersionMismatch {
        /// The live task's version.
        current: Option<Seq>,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a nack was refused as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NackError {
    /// Due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest allowed, milliseconds from now.
        limit_ms: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a redrive was refused. It leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedriveError {
    /// No dead task of this queue has this id.
    #[error("no dead task has this id")]
    NotFound,
    /// Its key belongs to a live task by now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// That task's id.
        id: u64,
        /// That task's version.
        version: Seq,
    },
    /// The queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many it may have.
        limit: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Something was done to a task that is known by its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acted {
    /// It stands like this now.
    Task(Box<TaskView>),
    /// No delivery of it starts from now on.
    Cancelled,
    /// It is in the caller's hands.
    Leased(Box<Leased>),
}

/// Why nothing was done to a task that is known by its id. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ByIdError {
    /// No task has this id.
    #[error("no task has this id")]
    NotFound,
    /// A worker has the task.
    #[error("the task is leased")]
    Leased,
    /// It is ready: there is nothing to be done so that it runs.
    #[error("the task is ready")]
    Ready,
    /// The task is dead, and its key belongs to a live one by now.
    #[error("a live task has its key (id {id}, version {version})")]
    Live {
        /// That task's id.
        id: u64,
        /// That task's version.
        version: Seq,
    },
    /// The task is dead, and its queue has as many live ones as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many it may have.
        limit: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<RedriveError> for ByIdError {
    fn from(error: RedriveError) -> Self {
        match error {
            RedriveError::NotFound => Self::NotFound,
            RedriveError::Live { id, version } => Self::Live { id, version },
            RedriveError::BacklogFull { limit } => Self::BacklogFull { limit },
            RedriveError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

/// Why a queue was not changed. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueueError {
    /// The settings have something that cannot be.
    #[error("{what} cannot be")]
    Invalid {
        /// What.
        what: &'static str,
    },
    /// So many queues have settings, or are held, that no more can be.
    #[error("{limit} queues have settings of their own, and no more can have")]
    TooMany {
        /// How many can have.
        limit: usize,
    },
    /// It cannot be deleted: it has something that would be lost with it.
    #[error("the queue is not empty: live tasks {live}, dead tasks {dead}, schedules {schedules}")]
    NotEmpty {
        /// Its live tasks.
        live: u64,
        /// Its dead tasks.
        dead: u64,
        /// Its schedules.
        schedules: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a schedule was not put, given up or found. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// There is none of this name.
    #[error("no schedule of the queue has this name")]
    NotFound,
    /// The version is another, or there is none.
    #[error("the version is not the one given: {}", match .current {
        Some(version) => format!("the schedule has version {version}"),
        None => "no schedule has this name".to_owned(),
    })]
    VersionMismatch {
        /// The version of the one that stands.
        current: Option<Seq>,
    },
    /// It has something that cannot be.
    #[error("{what} cannot be")]
    Invalid {
        /// What.
        what: &'static str,
    },
    /// Its expression or its zone cannot be used.
    #[error("{why}")]
    Cadence {
        /// What is wrong with it.
        why: Arc<str>,
    },
    /// No instant is left between its start and its end, or it has made as many tasks as it counts.
    #[error("the schedule has no occurrence ahead")]
    NeverFires,
    /// An import found one of this name that says something else.
    #[error("the queue has a schedule of this name (version {version})")]
    Exists {
        /// The version of the one that stands.
        version: Seq,
    },
    /// There are so many that no more can be.
    #[error("there are {schedules} schedules with {bytes} bytes, and no more can be")]
    TooMany {
        /// How many there are.
        schedules: usize,
        /// Bytes of what they say.
        bytes: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

fn version_prose(current: &Option<Seq>) -> String {
    match current {
        Some(version) => format!("the live task has version {version}"),
        None => "no live task has this key".to_owned(),
    }
}
