//! The queues and how many tasks each has.

use serde::{Deserialize, Serialize};

/// The answer to `GET /v1/queues`, in the order of the names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuesBody {
    /// One for each queue.
    pub queues: Vec<QueueCounts>,
}

/// One queue and its tasks by state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounts {
    /// The queue.
    pub queue: String,
    /// Tasks that are not due yet.
    pub scheduled: u64,
    /// Tasks that are due and in nobody's hands.
    pub ready: u64,
    /// Tasks in workers' hands.
    pub leased: u64,
    /// Tasks given up.
    pub dead: u64,
    /// Whether its tasks are withheld from workers.
    pub paused: bool,
}
