//! The call that takes a row of the store's inbox.

use super::put::PutError;
use super::unavailable::Unavailable;
use crate::name::{Key, QueueName};
use crate::task::Body;
use crate::time::Timestamp;

/// Takes a row of the store's inbox: a put or a cancel that a user has written to the database of the store, in a transaction of the
/// user's own.
///
/// The transaction has committed, so the row is owed its effect. The queue may be drained or full, or the store short of room: the row has
/// its effect all the same. A row adds no bytes, because it is deleted from the same store in the commit that has its effect.
///
/// The commit also has the id of the row, see [`Batch::taken`](crate::Batch::taken). So a row that is there after a crash had no effect,
/// and one that is gone had it. A call that is refused leaves the row to the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakeRow {
    /// The id of the row in the inbox.
    pub row: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The action.
    pub act: RowAct,
}

/// The action that a row of the inbox asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowAct {
    /// Put a task, as a [`Put`](crate::Put) without conditions does: a live task of the key is replaced, unless a worker has it.
    Put {
        /// When the task is due. If the instant is in the past, the task is due at once.
        due_at: Timestamp,
        /// When the user wrote the row; later than now: now.
        put_at: Timestamp,
        /// The payload and its content type.
        body: Body,
    },
    /// End the live or dead task of the key. Without such a task, or if a worker has it, the row has no effect and is taken all the same:
    /// the user whose transaction has committed gets no answer, and the worker has begun.
    Cancel,
}

/// Why a row of the inbox was not taken. The call changed nothing; only after [`Unavailable::Indeterminate`] the outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TakeRowError {
    /// No task can be made of the row. A later call would be refused as well, or would come too late.
    #[error("{}", refusal(.0))]
    Refused(PutError),
    /// The row can be taken later.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Says why no task is made of a row, to a user who has SQL alone: a transaction cannot revoke a lease.
fn refusal(error: &PutError) -> String {
    match error {
        PutError::Leased => {
            "a worker has the task of this key; when the worker is done, put the row again or delete it"
                .to_owned()
        }
        error => error.to_string(),
    }
}

impl From<PutError> for TakeRowError {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Unavailable(why) => Self::Unavailable(why),
            refused => Self::Refused(refused),
        }
    }
}
