//! [`Unavailable`]: the errors of a call that are not the caller's mistake.

use std::sync::Arc;

/// Why the engine cannot answer as asked. None of these errors is the caller's mistake.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// The engine is stopping or has stopped. The call had no effect.
    #[error("the queue is closed; the call had no effect")]
    Closed,
    /// This process does not own the shard now, or cannot be sure that it does. The call had no effect, and the caller can make the call
    /// again.
    #[error(
        "this process does not have the shard of the queue now; the call had no effect, and it can be made again"
    )]
    Unowned,
    /// The store has not confirmed a commit for long, although it has not failed: its database does not answer. The call had no effect, and
    /// the caller can make the call again.
    #[error("{why}; the call had no effect, and it can be made again")]
    Late {
        /// Since when a commit waits, and why.
        why: Arc<str>,
    },
    /// The store has failed, and since the failure the engine refuses all changes. The call had no effect.
    #[error("the store is read-only since it failed: {why}; the call had no effect")]
    ReadOnly {
        /// The cause of the failure.
        why: Arc<str>,
    },
    /// The outcome is unknown, because the store failed or the queue stopped. A change of this call, or a change that this call would show,
    /// may be durable or not.
    #[error("the outcome is unknown: {why}; the call may have taken effect or not")]
    Indeterminate {
        /// The cause of the failure.
        why: Arc<str>,
    },
    /// The store has less room than the call needs. The call had no effect. The engine still takes acks and cancels.
    #[error("the store is full: the call needs {needed} bytes and {room} are left; it had no effect")]
    Full {
        /// The size of what the call would add (bytes).
        needed: u64,
        /// The room that the store has left (bytes).
        room: u64,
    },
    /// The store cannot grow for the moment, because the system gives its process no file descriptor for the next file. The call had no effect, and
    /// the caller can make the call again. The engine still takes acks and cancels.
    #[error(
        "the store gets no file descriptor for its next file; the call had no effect, and it can be made again"
    )]
    NoDescriptors,
}

impl Unavailable {
    /// Whether the shard may be served later, here or by another process, so that the same call can be made again.
    #[must_use]
    pub fn is_of_database(&self) -> bool {
        matches!(self, Self::Unowned | Self::Late { .. } | Self::Indeterminate { .. })
    }
}
