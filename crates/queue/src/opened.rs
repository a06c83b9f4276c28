//! [`Opened`]: how the opening of a queue went.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_store::RecoveryReport;

/// How an opening went, for the log of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// How the directory was recovered; `None` for a queue in memory.
    pub recovery: Option<RecoveryReport>,
    /// The name that tells this queue from others. A directory has its [`identity`](crate::backup::identity), which it keeps for its whole
    /// life. A queue in memory has 16 hex digits that no other queue has. The identity tells nothing about the queue's content.
    pub identity: Arc<str>,
    /// How long the opening took until the queue could be used.
    pub took: Duration,
}
