//! The call that returns a task.

use super::unavailable::Unavailable;
use crate::name::{Key, QueueName};

/// Returns the live or dead task of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Get {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
}

impl Get {
    /// Makes a get of the task of this key.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key }
    }
}

/// Why a get returned no task.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GetError {
    /// No live or dead task has this key, and the engine remembers no acked task of this key.
    #[error("no task has this key")]
    NotFound,
    /// The last task of this key was acked.
    #[error("the task of this key is done")]
    Done,
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
