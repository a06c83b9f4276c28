//! [`Opened`]: how the opening of a queue went.

use std::time::Duration;

use tickwheel_store::RecoveryReport;

/// How an opening went, for the log of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// What was found in the directory; `None` for a queue in memory.
    pub recovery: Option<RecoveryReport>,
    /// How long it took until the queue could be used.
    pub took: Duration,
}
