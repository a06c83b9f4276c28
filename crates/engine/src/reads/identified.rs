//! [`Identified`]: a command that names its task by the id, not by the key.

use crate::calls::{Act, Answer, ById, ByIdError, Command, Redrive, RedriveError};
use crate::task::Task;

/// A command that names its task by the id.
#[derive(Clone, Debug)]
pub(crate) enum Identified {
    Redrive(Redrive),
    ById(ById),
}

impl Identified {
    pub(crate) fn id(&self) -> u64 {
        match self {
            Self::Redrive(redrive) => redrive.id,
            Self::ById(by_id) => by_id.id,
        }
    }

    /// Whether `task`, which has the id of the command, meets the other conditions of the command. A redrive wants a dead task of its
    /// queue. A `ById` may want a queue prefix and a version.
    pub(crate) fn means(&self, task: &Task) -> bool {
        match self {
            Self::Redrive(redrive) => task.dead().is_some() && task.queue == redrive.queue,
            Self::ById(by_id) => {
                let within = by_id.within.as_deref();
                within.is_none_or(|within| task.queue.as_str().starts_with(within))
                    && by_id.if_version.is_none_or(|version| task.version == version)
            }
        }
    }

    /// Whether the command makes its task live again if the task is dead.
    pub(crate) fn revives(&self) -> bool {
        match self {
            Self::Redrive(_) => true,
            Self::ById(by_id) => matches!(by_id.act, Act::Run | Act::Lease { .. }),
        }
    }

    /// Returns the answer to the command if no task has the id and meets the conditions.
    pub(crate) fn not_found(&self) -> Answer {
        match self {
            Self::Redrive(_) => Answer::Redrive(Err(RedriveError::NotFound)),
            Self::ById(_) => Answer::ById(Err(ByIdError::NotFound)),
        }
    }

    pub(crate) fn into_command(self) -> Command {
        match self {
            Self::Redrive(redrive) => Command::Redrive(redrive),
            Self::ById(by_id) => Command::ById(by_id),
        }
    }
}
