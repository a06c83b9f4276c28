//! [`LeaseEnd`]: how a lease ended without an ack.

use std::sync::Arc;

use crate::task::{Death, Failed};
use crate::time::Timestamp;

/// How a lease ended without an ack, and what happens to its task next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeaseEnd {
    pub(crate) how: Failed,
    /// Why the task is given up at once. `None`: the task is tried again, unless its retry policy or its expiry gives it up.
    pub(crate) death: Option<Death>,
    /// When the task is due again, unless the task is given up.
    pub(crate) again: Retrying,
    /// The new priority of the task. `None`: the priority stays.
    pub(crate) priority: Option<u32>,
    /// The reason that the worker gave.
    pub(crate) reason: Option<Arc<str>>,
}

/// When a task is due again after its lease ended without an ack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Retrying {
    /// At once, in its old place in the line.
    AtOnce,
    /// As the retry policy for the task says: the task's own, else that of its queue's settings, else that of its queue's target, else the
    /// default. But no sooner than this (ms).
    ByPolicy { at_least_ms: u64 },
    /// At this instant.
    At(Timestamp),
}

impl LeaseEnd {
    /// The end of a lease that ran out.
    pub(crate) const EXPIRED: Self =
        Self { how: Failed::LeaseEnded, death: None, again: Retrying::AtOnce, priority: None, reason: None };
}
