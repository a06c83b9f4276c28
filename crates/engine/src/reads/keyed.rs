//! [`Keyed`]: a command on one key. If memory has no task of the key, the command waits until the store has answered a look-up of the key.

use super::identified::Identified;
use crate::calls::{Answer, ByKey, Cancel, Command, Get, ImportSchedule, Patch, Put, TakeRow, Unavailable};
use crate::name::{Key, QueueName};
use crate::schedule::ScheduleId;
use crate::time::Timestamp;

/// A put and the key of its task.
#[derive(Debug)]
pub(crate) struct NamedPut {
    pub(crate) put: Put,
    pub(crate) key: Key,
    /// The id for the task of a put without a key; the key is this id in decimal. `None`: the put has a key.
    pub(crate) id: Option<u64>,
    /// Whether the task is owed: neither a drain, nor the limit of the backlog, nor a shortage of room refuses the put.
    pub(crate) is_owed: bool,
}

/// A command on one key.
#[derive(Debug)]
pub(crate) enum Keyed {
    Put(NamedPut),
    Get(Get),
    Patch(Patch),
    Cancel(Cancel),
    ByKey(ByKey),
    TakeRow(TakeRow),
    /// A command that names a dead task by its id and makes it live again. The key of the task has to be looked up first.
    Identified {
        command: Identified,
        /// The queue and the key of the task.
        place: (QueueName, Key),
    },
    /// The import of a schedule that had a running task in the other store. `key` is the key of this task, which has to be looked up first.
    ImportSchedule {
        import: ImportSchedule,
        key: Key,
    },
    /// A task that is to be made for an instant of a schedule. No call asks for this task, so no call is answered.
    Occurrence {
        schedule: ScheduleId,
        key: Key,
        at: Timestamp,
    },
}

impl Keyed {
    pub(crate) fn place(&self) -> (QueueName, Key) {
        match self {
            Self::Put(NamedPut { put, key, .. }) => (put.queue.clone(), key.clone()),
            Self::Get(get) => (get.queue.clone(), get.key.clone()),
            Self::Patch(patch) => (patch.queue.clone(), patch.key.clone()),
            Self::Cancel(cancel) => (cancel.queue.clone(), cancel.key.clone()),
            Self::ByKey(by_key) => (by_key.queue.clone(), by_key.key.clone()),
            Self::TakeRow(take) => (take.queue.clone(), take.key.clone()),
            Self::Identified { place, .. } => place.clone(),
            Self::ImportSchedule { import, key } => (import.queue.clone(), key.clone()),
            Self::Occurrence { schedule, key, .. } => (schedule.0.clone(), key.clone()),
        }
    }

    /// Returns the answer that the command was not done, and why; `None`: no call asked for the command.
    pub(crate) fn unavailable(self, why: Unavailable) -> Option<Answer> {
        let command = match self {
            Self::Put(named) => Command::Put(named.put),
            Self::Get(get) => Command::Get(get),
            Self::Patch(patch) => Command::Patch(patch),
            Self::Cancel(cancel) => Command::Cancel(cancel),
            Self::ByKey(by_key) => Command::ByKey(by_key),
            Self::TakeRow(take) => Command::TakeRow(take),
            Self::Identified { command, .. } => command.into_command(),
            Self::ImportSchedule { import, .. } => Command::ImportSchedule(import),
            Self::Occurrence { .. } => return None,
        };
        Some(command.unavailable(why))
    }
}
