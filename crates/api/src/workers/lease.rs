//! The body of a lease call.

use crate::declare::{body, duration, may, number, or, word};
use crate::values::limits::{LEASE_MS_MAX, LEASE_MS_MIN, WORKER_BYTES_MAX};

/// Maximum number of tasks in one answer: with 1,000 tasks the cost of a round trip is already small beside the work.
pub const LEASE_TASKS_MAX: u64 = 1_000;
/// Maximum wait for a task: 60 s, which is not above the idle limit of most proxies.
pub const WAIT_MS_MAX: u64 = 60_000;

body! {
    /// The number of tasks to lease, the length of their leases, and the time to wait for a task.
    ///
    /// The body of `POST /v1/queues/{q}/lease`: `{"max": 10, "lease": "30s", "wait": "20s"}`, every member optional. With an empty body the call
    /// leases one task and does not wait.
    pub struct LeaseBody: request "Lease" {
        /// Maximum number of tasks. Default: 1. The answer may have fewer although more are ready: it has at most 16 MiB of payloads.
        max: usize = or(1, number(1, LEASE_TASKS_MAX));
        /// Length of the leases, 1 s to 12 h. Default: the queue's `default_lease`, which is 30 s unless configured.
        lease_ms as "lease": Option<u64> = may(duration().within(LEASE_MS_MIN, LEASE_MS_MAX));
        /// How long to wait for a task if none is ready, up to 60 s. Default: `0s`.
        wait_ms as "wait": u64 = or(0, duration().like("0s").within(0, WAIT_MS_MAX));
        /// The name of the worker, for `GET /v1/leases`: such as its host and process.
        worker: Option<String> = may(word(WORKER_BYTES_MAX, "mailer-1"));
    }
    later: &["group", "tags"];
    elsewhere: &[("queue", "it stands in the path: POST /v1/queues/{q}/lease")];
}

impl Default for LeaseBody {
    fn default() -> Self {
        Self { max: 1, lease_ms: None, wait_ms: 0, worker: None }
    }
}
