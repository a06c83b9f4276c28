//! Calls that bring tasks and schedules from another store, as they were there.

use std::sync::Arc;

use crate::calls::{OnLease, Unavailable};
use crate::name::{Key, QueueName, ScheduleName};
use crate::schedule::Schedule;
use crate::task::{Body, Extra};
use crate::time::{Seq, Timestamp};

/// The largest number of tasks that one import brings: other calls are served between two imports.
pub const IMPORT_TASKS_MAX: usize = 256;

/// The rule for a task that the shard has already.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Existing {
    /// The task of the shard stays. A task that has ended here since the imported one was put counts as present.
    Skip,
    /// The imported task takes the place of the task of the shard.
    Replace,
    /// The import stops before this task.
    #[default]
    Refuse,
}

/// Brings tasks, in their order, up to the first that is refused. The tasks before that one are in, and none behind it. An imported task is
/// in a final state that its owner sets: a live task is scheduled or ready by its `due_at`, a dead one is dead. A drain of the queue does
/// not refuse an import; the limit of its backlog does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportTasks {
    /// The tasks, at most [`IMPORT_TASKS_MAX`]. Tasks beyond that number are not looked at.
    pub tasks: Vec<ImportTask>,
    /// The rule for tasks that the shard has already.
    pub existing: Existing,
    /// The rule for a task that is to be replaced and is leased.
    pub on_lease: OnLease,
    /// The ids of all tasks of this source are below this number, and are to be kept. Ids are kept only if the shard has given out no id of
    /// its own, and this number is at most 2^52; in all other cases the tasks get new ids. `None`: the tasks get new ids.
    pub ids_below: Option<u64>,
}

/// A task as it was in the other store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportTask {
    /// The id in the other store; 0: none.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key. It is kept as it is, even if it is the decimal of an id that is not kept.
    pub key: Key,
    /// When the task is due; when a dead task was due.
    pub due_at: Timestamp,
    /// When the put of the task was received.
    pub put_at: Timestamp,
    /// Smaller goes first among ready tasks.
    pub priority: u32,
    /// Leases that ended without an ack.
    pub attempts: u32,
    /// The payload, content type and tags that the worker gets, and the timeline.
    pub body: Arc<Body>,
    /// Everything else. With `dead` the task is dead. `acked` and the `due_at` of `dead` are not looked at.
    pub extra: Extra,
}

/// The result of an import: the outcome for each task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The outcome for each task that was dealt with, in the order of the tasks.
    pub outcomes: Vec<ImportOutcome>,
    /// Why the task behind those was refused. All tasks that follow it are not imported, either. `None`: no task was refused.
    pub refused: Option<ImportError>,
}

/// The outcome for one task, or for a schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ImportOutcome {
    /// The task or schedule is new here.
    Added {
        /// Whether the task has the id that it had in the other store. For a schedule: true.
        kept_id: bool,
    },
    /// The task or schedule took the place of one that was there.
    Replaced,
    /// The task or schedule was left out, because of this.
    Skipped(Present),
}

/// Why a task or a schedule was left out.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Present {
    /// A live task has the key.
    Live,
    /// A dead task has the key, or the id.
    Dead,
    /// The task of this key has ended here since the imported one was put.
    Ended,
    /// The shard cannot tell whether it has the task: a dead task that has lost its key, with an id that is not kept.
    Keyless,
    /// A schedule has the name.
    Schedule,
}

/// Why a task was not imported. A refusal leaves no trace, and the tasks behind it are not looked at.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// `Refuse`, and a live task has the key.
    #[error("a live task has this key (id {id}, version {version})")]
    Live {
        /// The id of the live task.
        id: u64,
        /// The version of the live task.
        version: Seq,
    },
    /// `Refuse`, and a dead task has the key or the id. A live task that was put later than the dead one takes its key nevertheless.
    #[error("the same task is there and dead (id {id})")]
    Dead {
        /// The id of the dead task.
        id: u64,
    },
    /// `Replace`, and a worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
    /// The task would be due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest due time allowed (ms from now).
        limit_ms: u64,
    },
    /// The instants of a timeline do not rise.
    #[error("instant {index} of the timeline is not after the one before")]
    NotRising {
        /// The instant that does not rise, counted from 0.
        index: usize,
    },
    /// The task is at an instant that its timeline does not have.
    #[error("the task stands at instant {step} of a timeline that has {instants}")]
    NoStep {
        /// The instant that the task is at, counted from 0.
        step: u32,
        /// How many instants the timeline has.
        instants: usize,
    },
    /// The queue has as many live tasks as its settings allow.
    #[error("the queue has {limit} live tasks, as many as its settings allow")]
    BacklogFull {
        /// How many live tasks the queue may have.
        limit: u64,
    },
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Brings a schedule, with the instants that it has reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportSchedule {
    /// The queue that the schedule puts its tasks into.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The schedule as its owner put it.
    pub schedule: Arc<Schedule>,
    /// The very first instant, if the other instants are counted from it.
    pub anchor: Timestamp,
    /// All instants up to this one are decided.
    pub decided: Timestamp,
    /// The first instant that is not decided. Only a fixed delay needs it: for other schedules it follows from `decided`.
    pub next: Option<Timestamp>,
    /// The last instant that has a task made of it.
    pub last: Option<Timestamp>,
    /// Tasks made so far.
    pub made: u64,
    /// Instants left out so far.
    pub skipped: u64,
    /// The key of the task that has to end before another task is made. If no live task has this key, that task has ended.
    pub running: Option<Key>,
    /// Instants that get a task after the task of `running` has ended, rising.
    pub waiting: Vec<Timestamp>,
    /// The rule for a schedule of this name. If the two schedules are equal, the present one is left alone unless the rule is `Replace`.
    pub existing: Existing,
}
