//! [`LeaseEnd`]: how a lease ends without an ack.

use std::sync::Arc;

use crate::task::Failed;
use crate::time::Timestamp;

/// How a lease ended that was not acked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeaseEnd {
    pub(crate) how: Failed,
    /// When the task is due again, unless it is given up.
    pub(crate) again: Retrying,
    /// Another priority for it.
    pub(crate) priority: Option<u32>,
    /// The reason that its worker gave.
    pub(crate) reason: Option<Arc<str>>,
}

/// When a task is due again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Retrying {
    /// At once, in its old place of the line.
    AtOnce,
    /// As its retry policy says.
    ByPolicy,
    /// At this instant.
    At(Timestamp),
}

impl LeaseEnd {
    /// The lease ran out.
    pub(crate) const EXPIRED: Self =
        Self { how: Failed::LeaseEnded, again: Retrying::AtOnce, priority: None, reason: None };
}
