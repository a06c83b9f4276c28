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
    /// The identity of the queue. For a directory this is its [`identity`](crate::backup::identity), which never changes and which the
    /// backups of the directory have too. For a queue in memory, 16 hex digits are drawn at random at each opening. The identity tells
    /// nothing about the content of the queue.
    pub identity: Arc<str>,
    /// The instance number of the queue; see [`Queue::instance`](crate::Queue::instance).
    pub instance: u32,
    /// How long the opening took, until the queue could be used.
    pub took: Duration,
}
