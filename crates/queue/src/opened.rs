//! [`Opened`]: the report of the opening of a queue.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_store::RecoveryReport;

/// The report of the opening of a queue, for the log of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The report of the recovery of the store; `None` if the store does not recover from files, such as the store in memory.
    pub recovery: Option<RecoveryReport>,
    /// A name that no other queue has. The name of a directory is its [`identity`](crate::backup::identity), and never changes. A queue in
    /// memory gets 16 random hex digits at each opening. The identity tells nothing about the content of the queue.
    pub identity: Arc<str>,
    /// How long the opening took, until the queue could be used.
    pub took: Duration,
}
