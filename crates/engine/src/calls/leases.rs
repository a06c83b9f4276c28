//! The list of the leases that run.

use std::sync::Arc;

use crate::cursor::LeaseCursor;
use crate::name::{Key, QueueName};
use crate::time::Timestamp;

/// A page of leases looks at no more than this.
pub const LEASES_PAGE_MAX: usize = 1_000;

/// Pages through the leases that run, in the order in which they began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListLeases {
    /// Those of tasks in this queue; `None`: of all.
    pub queue: Option<QueueName>,
    /// Those of the worker with this name; `None`: of all.
    pub worker: Option<Arc<str>>,
    /// Where the page before ended.
    pub after: Option<LeaseCursor>,
    /// The list looks at no more leases than this, 1 to [`LEASES_PAGE_MAX`]: a page may hold fewer, though more follow.
    pub max: usize,
}

/// A lease that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseView {
    /// A list that goes on here has the leases behind it.
    pub cursor: LeaseCursor,
    /// The queue of its task.
    pub queue: QueueName,
    /// The key of its task.
    pub key: Key,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The name of the worker; `None`: it gave none, or the lease began before the machine's start.
    pub worker: Option<Arc<str>>,
    /// When it began; `None`: before the machine's start.
    pub since: Option<Timestamp>,
    /// When it ends.
    pub until: Timestamp,
}

/// One page of the leases that run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeasePage {
    /// The leases, in the order in which they began.
    pub leases: Vec<LeaseView>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<LeaseCursor>,
}
