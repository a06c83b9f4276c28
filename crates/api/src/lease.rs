//! The body that asks for tasks to work on.

use crate::body::body;
use crate::kind::{duration, number};
use crate::part::{may, or};

/// The shortest lease: 1 s. A shorter one would end before its answer has reached a worker over a slow line.
pub const LEASE_MS_MIN: u64 = 1_000;
/// The longest lease: 12 h. A worker that needs longer extends it, so that a dead one is noticed the same
/// day.
pub const LEASE_MS_MAX: u64 = 12 * 3_600_000;
/// 1,000 tasks in one answer: beyond that a round trip costs nothing beside the work.
pub const LEASE_TASKS_MAX: u64 = 1_000;
/// The longest wait for a task: 60 s, below the idle limit of most proxies.
pub const WAIT_MS_MAX: u64 = 60_000;

body! {
    /// How many tasks, for how long, and how long to wait for them.
    ///
    /// The body of `POST /v1/queues/{q}/lease`: `{"max": 10, "lease": "30s", "wait": "20s"}`, every member optional. An empty body asks for
    /// one task, without waiting.
    pub struct LeaseBody: request "Lease" {
        /// At most so many. Default: 1.
        max: usize = or(1, number(1, LEASE_TASKS_MAX));
        /// They are this worker's for so long, 1 s to 12 h. Default: that of the queue, 30 s.
        lease_ms as "lease": Option<u64> = may(duration().within(LEASE_MS_MIN, LEASE_MS_MAX));
        /// If none is ready, wait for one so long, up to 60 s. Default: `0s`.
        wait_ms as "wait": u64 = or(0, duration().like("0s").within(0, WAIT_MS_MAX));
    }
    later: &["group", "tags"];
    elsewhere: &[("queue", "it stands in the path: POST /v1/queues/{q}/lease")];
}

impl Default for LeaseBody {
    fn default() -> Self {
        Self { max: 1, lease_ms: None, wait_ms: 0 }
    }
}
