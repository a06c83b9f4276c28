//! Calls that import tasks and schedules from another store.

use std::sync::Arc;

use crate::calls::{OnLease, Unavailable};
use crate::name::{Key, QueueName, ScheduleName};
use crate::schedule::Schedule;
use crate::task::{Body, Extra};
use crate::time::{Seq, Timestamp};

/// The largest number of tasks of one import. Other calls are served between two imports.
pub const IMPORT_TASKS_MAX: usize = 256;

/// The rule for an imported task or schedule that the shard has already. Under every rule, an imported live task takes the key of a dead
/// task that was put before the imported task.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Existing {
    /// The task of the shard stays, and the imported task is left out. The imported task is also left out if the last task of its key ended
    /// in this shard after the imported task was put.
    Skip,
    /// The imported task replaces the task of the shard, unless one of the two is dead and the other is live. Then a live imported task is
    /// added and takes the key of the dead task, and a dead imported task is added without its key, unless the shard has it already.
    Replace,
    /// The import stops before this task. A schedule that is equal to the schedule of the shard is left out without an error.
    #[default]
    Refuse,
}

/// Imports tasks in the order of the list, up to the first task that is refused. The tasks before the refused task are imported or left
/// out, the tasks behind it are not imported. No imported task is leased: a live task is scheduled or ready, as its `due_at` says, or dead
/// if it has expired. An import adds no live task to a queue that is being drained or whose backlog is full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportTasks {
    /// The tasks, at most [`IMPORT_TASKS_MAX`]. Tasks beyond this number are ignored.
    pub tasks: Vec<ImportTask>,
    /// The rule for tasks that the shard has already.
    pub existing: Existing,
    /// The rule if a task that the import replaces is leased.
    pub on_lease: OnLease,
    /// All ids of the tasks of this source are below this number, and the import keeps the ids if possible. The first import that asks for
    /// it reserves the ids below this number. The reservation fails if the shard has given out an id before, or if this number is above
    /// 2^52. A task gets a new id if its id is not reserved, is in use, or belonged to a task whose end the store remembers. `None`: the
    /// tasks get new ids.
    pub ids_below: Option<u64>,
}

/// A task as it was in the other store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportTask {
    /// The id in the other store; 0: the task has none.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key. The import keeps the key, even if the key is the decimal form of an id that the import does not keep.
    pub key: Key,
    /// When the task is due. For a dead task: when it was due.
    pub due_at: Timestamp,
    /// When the put of the task was received.
    pub put_at: Timestamp,
    /// The priority. Among ready tasks, the task with the smaller number goes first.
    pub priority: u32,
    /// The number of leases that ended without an ack.
    pub attempts: u32,
    /// The payload, content type and tags that the worker gets, and the timeline.
    pub body: Arc<Body>,
    /// The other members of the task. If `dead` is set, the task is dead. The import ignores `acked` and the `due_at` in `dead`.
    pub extra: Extra,
}

/// The result of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The outcome for each task that was imported or left out, in the order of the tasks.
    pub outcomes: Vec<ImportOutcome>,
    /// Why the import stopped: the task behind the tasks of `outcomes` was refused. The refused task and all tasks behind it are not
    /// imported. `None`: no task was refused.
    pub refused: Option<ImportError>,
}

/// The outcome for one task, or for one schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ImportOutcome {
    /// The task or schedule was added. A dead task may have lost its key to the added task.
    Added {
        /// Whether the task kept the id that it had in the other store. For a schedule: true.
        kept_id: bool,
    },
    /// The task or schedule replaced one that the shard had.
    Replaced,
    /// The task or schedule was left out, for this reason.
    Skipped(Present),
}

/// Why a task or a schedule was left out.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Present {
    /// A live task has the key.
    Live,
    /// A dead task has the key, or the shard has the same task under the same id.
    Dead,
    /// The last task of this key ended in this shard after the imported task was put.
    Ended,
    /// The imported task is dead, has lost its key, and cannot keep its id. So the shard cannot tell whether it has the task already.
    Keyless,
    /// A schedule has the name.
    Schedule,
}

/// Why a task was not imported. The refused task changes nothing, and the tasks behind it are not imported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// The rule is [`Existing::Refuse`], and a live task has the key.
    #[error("a live task has this key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// The rule is [`Existing::Refuse`], and a dead task has the key, or the imported task has lost its key and the shard has the same task
    /// under the same id. A live task that was put later than the dead task is not refused: it takes the key.
    #[error("the same task is there and dead (id {id})")]
    Dead {
        /// The id of the dead task.
        id: u64,
    },
    /// The rule is [`Existing::Replace`], a worker has the task, and the import does not revoke leases.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The imported task is live, and its due time or the last instant of its timeline is farther ahead than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest due time allowed (ms from now).
        limit_ms: u64,
    },
    /// The instants of the timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// The index of the first instant that does not rise, from 0.
        index: usize,
    },
    /// The task is at a step that its timeline does not have.
    #[error("the task stands at instant {step} of a timeline that has {instants}")]
    NoStep {
        /// The index of the instant that the task is at, from 0.
        step: u32,
        /// The number of instants in the timeline.
        instants: usize,
    },
    /// The imported task is live, and its queue is being drained.
    #[error("the queue is being drained: no task is added until it is resumed")]
    Draining,
    /// The imported task is live, and its queue has reached its limit of live tasks.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Imports a schedule with its progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportSchedule {
    /// The queue that the schedule puts its tasks into.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The schedule as its owner put it.
    pub schedule: Arc<Schedule>,
    /// The first instant of all, if the cadence counts the other instants from it.
    pub anchor: Timestamp,
    /// The last decided instant: each instant up to this one became a task, was left out, or is in `waiting`.
    pub decided: Timestamp,
    /// The first instant after `decided`. Only a schedule with a fixed delay needs it; for other schedules the engine finds it from
    /// `decided`.
    pub next: Option<Timestamp>,
    /// The last instant that became a task.
    pub last: Option<Timestamp>,
    /// The number of tasks made so far.
    pub made: u64,
    /// The number of instants left out so far.
    pub skipped: u64,
    /// The key of the task that has to end before the schedule makes another task. If no live task has this key, the schedule waits for no
    /// task.
    pub running: Option<Key>,
    /// Instants, rising, that become tasks one after the other once the task of `running` has ended.
    pub waiting: Vec<Timestamp>,
    /// The rule if the queue has a schedule of this name. An equal schedule stays as it is, unless the rule is [`Existing::Replace`].
    pub existing: Existing,
    /// The scope of the caller, as in [`PutSchedule`](crate::PutSchedule::scope).
    pub scope: Option<Arc<[Arc<str>]>>,
}
