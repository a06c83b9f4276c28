//! [`WORKER`]: the name under which the targets of a process lease.

use std::sync::{Arc, LazyLock};

/// The name of the worker in the leases of a target. A worker outside may give itself the same name, see [`is_own_lease`].
pub const WORKER: &str = "push";

/// The one value of the name that the targets of this process give to the queue.
static OWN: LazyLock<Arc<str>> = LazyLock::new(|| WORKER.into());

/// Returns the name for a lease of a target.
pub(crate) fn own() -> Arc<str> {
    Arc::clone(&OWN)
}

/// Whether a lease with this name of its worker is one of a target of this process.
///
/// The text proves nothing, because a worker outside chooses its name. A queue keeps the value that came with the lease and gives it back, so
/// the same value proves it.
#[must_use]
pub fn is_own_lease(worker: &Arc<str>) -> bool {
    Arc::ptr_eq(worker, &OWN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tickwheel_queue::{Get, Key, Lease, Put, Queue, QueueName};

    use super::*;

    #[test]
    fn the_value_of_the_name_tells_a_target_from_a_worker_of_that_name() {
        let queue = Queue::options().virtual_clock().open_memory().expect("open");
        let (name, key) = (QueueName::new("q").expect("a name"), Key::new("k").expect("a key"));
        queue.put(Put::new(&name, key.clone())).wait().expect("put");
        for (worker, expected) in [(own(), true), (WORKER.into(), false)] {
            let lease = Lease { worker: Some(worker), ..Lease::new(&name) };
            let leased = queue.lease(lease, Duration::ZERO).wait().expect("a lease");
            let task = queue.get(Get::new(&name, key.clone())).wait().expect("live");
            let by = task.leased_by.expect("it has a name");
            assert_eq!((&*by, is_own_lease(&by)), (WORKER, expected));
            queue.give_back(leased.into_iter().map(|leased| leased.token).collect());
        }
    }
}
