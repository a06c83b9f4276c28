//! Looking at a task.

use super::unavailable::Unavailable;
use crate::name::{Key, QueueName};

/// Looks at a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Get {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
}

impl Get {
    /// Looks at the task of this key.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key }
    }
}

/// Why a get found nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GetError {
    /// No live or dead task has this key, and no task of this key was done lately.
    #[error("no task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// A reason that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
