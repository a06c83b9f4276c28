//! The list of the leases that run.

use std::sync::Arc;

use crate::cursor::LeaseCursor;
use crate::name::{Key, QueueName};
use crate::time::Timestamp;

/// The largest number of leases that a page looks at.
pub const LEASES_PAGE_MAX: usize = 1_000;

/// Pages through the leases that run, in the order in which they began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListLeases {
    /// Only leases of tasks in this queue; `None`: of all queues.
    pub queue: Option<QueueName>,
    /// Only leases of the worker with this name; `None`: of all workers.
    pub worker: Option<Arc<str>>,
    /// Where the page before ended.
    pub after: Option<LeaseCursor>,
    /// The largest number of leases that the page looks at, 1 to [`LEASES_PAGE_MAX`]. A page may hold fewer, though more follow.
    pub max: usize,
}

/// A lease that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseView {
    /// A list that goes on at this cursor has the leases behind this one.
    pub cursor: LeaseCursor,
    /// The queue of the leased task.
    pub queue: QueueName,
    /// The key of the leased task.
    pub key: Key,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The name of the worker; `None`: the worker gave none, or the lease began before the engine's start.
    pub worker: Option<Arc<str>>,
    /// When the lease began; `None`: before the engine's start.
    pub since: Option<Timestamp>,
    /// When the lease ends.
    pub until: Timestamp,
}

/// A page of the leases that run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeasePage {
    /// The leases, in the order in which they began.
    pub leases: Vec<LeaseView>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<LeaseCursor>,
}
