//! [`Opened`]: how the opening of a queue went.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_store::RecoveryReport;

/// How an opening went, for the log of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// What was found in the directory; `None` for a queue in memory.
    pub recovery: Option<RecoveryReport>,
    /// What tells this queue from others: of a directory its [`identity`](crate::backup::identity), which it keeps for its whole life; of a queue in
    /// memory 16 hex digits that no other has. It tells nothing about what is in it.
    pub identity: Arc<str>,
    /// How long it took until the queue could be used.
    pub took: Duration,
}
