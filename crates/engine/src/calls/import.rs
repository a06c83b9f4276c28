//! What a caller asks who brings tasks and schedules from another store, as they stood there.

use std::sync::Arc;

use crate::calls::{OnLease, Unavailable};
use crate::name::{Key, QueueName, ScheduleName};
use crate::schedule::Schedule;
use crate::task::{Body, Extra};
use crate::time::{Seq, Timestamp};

/// One import brings at most this many tasks: other calls are served between two imports.
pub const IMPORT_TASKS_MAX: usize = 256;

/// The rule for a task that the shard has already.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Existing {
    /// It stays. A task that has ended here since it was put counts as there.
    Skip,
    /// What is imported takes its place.
    Replace,
    /// The import stops before it.
    #[default]
    Refuse,
}

/// Brings tasks, in their order, up to the first that is refused: those before it are in, and none behind it. What is imported is a final state that its
/// owner sets: a live task is scheduled or ready by its `due_at`, a dead one is dead. A drain of the queue does not refuse it; the limit of its
/// backlog does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportTasks {
    /// At most [`IMPORT_TASKS_MAX`] of them; what is beyond is not looked at.
    pub tasks: Vec<ImportTask>,
    /// What to do about tasks that are there already.
    pub existing: Existing,
    /// What to do if one that is to be replaced is leased.
    pub on_lease: OnLease,
    /// The ids of all tasks of this source are below this number, and are to be kept. They are only where the shard has given out no id of its own:
    /// in all other cases the tasks get new ids. `None`: they get new ids.
    pub ids_below: Option<u64>,
}

/// One task as it stood elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportTask {
    /// Its id there; 0: none.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key. It is kept as it is, also if it is the decimal of an id that is not kept.
    pub key: Key,
    /// When it is due; of a dead task, when it was.
    pub due_at: Timestamp,
    /// When its put was received.
    pub put_at: Timestamp,
    /// Smaller goes first among ready tasks.
    pub priority: u32,
    /// Leases that ended without an ack.
    pub attempts: u32,
    /// What the worker gets.
    pub body: Arc<Body>,
    /// All else. With `dead` it is a dead task. `acked` is not looked at, nor the `due_at` of `dead`.
    pub extra: Extra,
}

/// What became of the tasks of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// One for each task that was dealt with, in their order.
    pub outcomes: Vec<ImportOutcome>,
    /// Why the task behind those was refused, and with it all that follow; `None`: none was.
    pub refused: Option<ImportError>,
}

/// What became of one task, or of a schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ImportOutcome {
    /// It is new here.
    Added {
        /// Whether it has the id that it had elsewhere. Of a schedule: true.
        kept_id: bool,
    },
    /// It took the place of one that was there.
    Replaced,
    /// It was left out, for this is there.
    Skipped(Present),
}

/// What was there already.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Present {
    /// A live task with its key.
    Live,
    /// A dead task with its key, or with its id.
    Dead,
    /// Its task has ended here since it was put.
    Ended,
    /// Nobody can tell: it is a dead task that has lost its key, and its id is not kept.
    Keyless,
    /// A schedule of its name.
    Schedule,
}

/// Why a task was not imported. It leaves no trace, and the tasks behind it are not looked at.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// `Refuse`, and the key is live.
    #[error("a live task has this key (id {id}, version {version})")]
    Live {
        /// Its id.
        id: u64,
        /// Its version.
        version: Seq,
    },
    /// `Refuse`, and a dead task has the key, or the id.
    #[error("the same task is there and dead (id {id})")]
    Dead {
        /// Its id.
        id: u64,
    },
    /// `Replace`, and a worker has the task.
    #[error("the task is leased; revoke it or wait for the worker")]
    Leased,
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
    /// It stands at an instant that its timeline does not have.
    #[error("the task stands at instant {step} of a timeline that has {instants}")]
    NoStep {
        /// Where it stands, from 0.
        step: u32,
        /// How many there are.
        instants: usize,
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

/// Brings a schedule, with how far it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportSchedule {
    /// The queue that its tasks are put into.
    pub queue: QueueName,
    /// Its name.
    pub name: ScheduleName,
    /// What its owner put.
    pub schedule: Arc<Schedule>,
    /// The first instant of all, where the others are counted from it.
    pub anchor: Timestamp,
    /// All instants up to this one are decided.
    pub decided: Timestamp,
    /// The first that is not. Only a fixed delay needs it: elsewhere it follows from `decided`.
    pub next: Option<Timestamp>,
    /// The last instant that a task was made of.
    pub last: Option<Timestamp>,
    /// Tasks made so far.
    pub made: u64,
    /// Instants left out so far.
    pub skipped: u64,
    /// The key of the task that has to end before another is made. If no live task has it, that one has ended.
    pub running: Option<Key>,
    /// Instants whose turn comes when that one has ended, rising.
    pub waiting: Vec<Timestamp>,
    /// What to do about a schedule of this name. One that says the same is left alone in any case but `Replace`.
    pub existing: Existing,
}
