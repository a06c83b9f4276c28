//! The call that lists the running leases.

use std::sync::Arc;

use crate::cursor::LeaseCursor;
use crate::name::{Key, QueueName};
use crate::time::Timestamp;

/// The largest number of leases that a page looks at.
pub const LEASES_PAGE_MAX: usize = 1_000;

/// Pages through the running leases, in the order in which they began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListLeases {
    /// Only leases of tasks in this queue; `None`: of all queues.
    pub queue: Option<QueueName>,
    /// Only leases of the worker with this name; `None`: of all workers.
    pub worker: Option<Arc<str>>,
    /// The cursor at which the page before ended; `None`: the first page.
    pub after: Option<LeaseCursor>,
    /// The largest number of leases that the page looks at, 1 to [`LEASES_PAGE_MAX`]. Because of the filters, a page may hold fewer, though
    /// more pages follow.
    pub max: usize,
}

/// A running lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseView {
    /// The cursor of this lease. A list that goes on at this cursor begins with the next lease.
    pub cursor: LeaseCursor,
    /// The queue of the leased task.
    pub queue: QueueName,
    /// The key of the leased task.
    pub key: Key,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The name of the worker; `None`: the worker gave no name, or the lease began before the engine's start.
    pub worker: Option<Arc<str>>,
    /// When the lease began; `None`: the lease began before the engine's start.
    pub since: Option<Timestamp>,
    /// When the lease ends.
    pub until: Timestamp,
}

/// A page of the running leases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeasePage {
    /// The leases, in the order in which they began.
    pub leases: Vec<LeaseView>,
    /// The cursor for the next page; `None`: this is the last page.
    pub next: Option<LeaseCursor>,
}
