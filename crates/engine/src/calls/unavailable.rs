//! Why an engine cannot answer as asked.

use std::sync::Arc;

/// The engine cannot answer as asked; an error that is not the caller's mistake.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// The engine is stopping or has stopped. The call had no effect.
    #[error("the queue is closed; the call had no effect")]
    Closed,
    /// Another process owns the shard now. The call had no effect; it can be made again.
    #[error("another process owns the queue now; the call had no effect, and it can be made again")]
    Unowned,
    /// The store failed before this call: nothing is changed any more. The call had no effect.
    #[error("the store is read-only since it failed: {why}; the call had no effect")]
    ReadOnly {
        /// The cause of the failure.
        why: Arc<str>,
    },
    /// The store failed or the queue stopped while the call was under way: it may have taken effect or not.
    #[error("the outcome is unknown: {why}; the call may have taken effect or not")]
    Indeterminate {
        /// The cause of the failure.
        why: Arc<str>,
    },
    /// The disk is full. The call had no effect; acks and cancels are still taken.
    #[error("the store is full: the call needs {needed} bytes and {room} are left; it had no effect")]
    Full {
        /// Bytes the call would add.
        needed: u64,
        /// Bytes the store can take.
        room: u64,
    },
}
