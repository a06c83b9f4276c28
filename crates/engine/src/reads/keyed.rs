//! [`Keyed`]: a command on one key, which waits until memory or the store knows the key.

use super::identified::Identified;
use crate::calls::{Answer, ByKey, Cancel, Command, Get, ImportSchedule, Patch, Put, Unavailable};
use crate::name::{Key, QueueName};
use crate::schedule::ScheduleId;
use crate::time::Timestamp;

/// A put and the key of its task.
#[derive(Debug)]
pub(crate) struct NamedPut {
    pub(crate) put: Put,
    pub(crate) key: Key,
    /// The id of a put without a key, which was taken already.
    pub(crate) id: Option<u64>,
}

/// A command on one key.
#[derive(Debug)]
pub(crate) enum Keyed {
    Put(NamedPut),
    Get(Get),
    Patch(Patch),
    Cancel(Cancel),
    ByKey(ByKey),
    /// A dead task that is to live again.
    Identified {
        command: Identified,
        /// The queue and the key of the task.
        place: (QueueName, Key),
    },
    /// A schedule that is imported. The import waits for the task of this key.
    ImportSchedule {
        import: ImportSchedule,
        key: Key,
    },
    /// A task is to be made for an instant of a schedule. No call asks for that.
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
            Self::Identified { place, .. } => place.clone(),
            Self::ImportSchedule { import, key } => (import.queue.clone(), key.clone()),
            Self::Occurrence { schedule, key, .. } => (schedule.0.clone(), key.clone()),
        }
    }

    /// The answer that only says why the command was not done; `None`: no call asked for it.
    pub(crate) fn unavailable(self, why: Unavailable) -> Option<Answer> {
        let command = match self {
            Self::Put(named) => Command::Put(named.put),
            Self::Get(get) => Command::Get(get),
            Self::Patch(patch) => Command::Patch(patch),
            Self::Cancel(cancel) => Command::Cancel(cancel),
            Self::ByKey(by_key) => Command::ByKey(by_key),
            Self::Identified { command, .. } => command.into_command(),
            Self::ImportSchedule { import, .. } => Command::ImportSchedule(import),
            Self::Occurrence { .. } => return None,
        };
        Some(command.unavailable(why))
    }
}
