//! The log lines about the start and the stop of a server.

use std::path::Path;
use std::time::Duration;

use tickwheel::{Clock, Monotonic, SystemClock};
use tickwheel_queue::{FORMAT, ListQueues, Queue};

use crate::base::queue_pages::{QueuePages, Sums};
use crate::events;
use crate::telemetry::notices::ms;
use crate::translate::twin::Twin;

/// The tasks of all queues; `None`: they cannot be counted, and a partial count would be wrong.
async fn count(queue: &Queue) -> Option<Sums> {
    let mut sums = Sums::default();
    let mut pages = QueuePages::new(queue, ListQueues::default());
    while let Some(page) = pages.next().await.ok()? {
        page.iter().for_each(|counts| sums.add(counts));
    }
    Some(sums)
}

/// Logs what is opened, before the store opens, because the opening may take minutes or hang.
pub(crate) fn say_opening(directory: &Path) {
    tracing::info!(
        event = events::OPENING,
        version = env!("CARGO_PKG_VERSION"),
        directory = %directory.display(),
        "reading the tasks"
    );
}

/// Logs what was found in the store, after it is open. `directory` is `None` for a server that keeps its tasks
/// in memory.
pub(crate) async fn say_started(queue: &Queue, directory: Option<&Path>) {
    let (health, opened) = (queue.health(), queue.opened());
    let tasks = count(queue).await;
    let count = |of: fn(&Sums) -> u64| tasks.as_ref().map(of);
    let found = opened.recovery.as_ref();
    let zones = tickwheel_queue::zone_versions();
    tracing::info!(
        event = events::STARTED,
        version = env!("CARGO_PKG_VERSION"),
        directory = directory.map(|directory| tracing::field::display(directory.display())),
        durability = health.durability.twin().name(),
        clock = if health.virtual_clock { "virtual" } else { "real" },
        format = found.map(|_| FORMAT),
        made = found.map(|found| found.created),
        zones = &*zones.machine,
        zones_bundled = zones.bundled,
        took_ms = ms(opened.took),
        queues = count(|tasks| tasks.queues),
        scheduled = count(|tasks| tasks.scheduled),
        ready = count(|tasks| tasks.ready),
        leased = count(|tasks| tasks.leased),
        dead = count(|tasks| tasks.dead),
        checkpoint = found.and_then(|found| found.checkpoint.as_deref()),
        log_frames = found.map(|found| found.frames),
        "{}",
        if health.ready {
            "the tasks are loaded"
        } else {
            "the server has started, and does not have its shards yet"
        }
    );
    if let Some(left) = health.recovery {
        tracing::warn!(
            event = events::RECOVERY_CUT,
            left = &*left,
            "the last run ended with an incomplete record; it was removed"
        );
    }
}

/// A stop that has begun.
pub(crate) struct Stop {
    clock: SystemClock,
    begun: Monotonic,
}

impl Stop {
    /// Begins the stop, with this number of open connections.
    pub(crate) fn begin(connections: usize) -> Self {
        tracing::info!(event = events::STOPPING, connections, "stopping: calls under way are answered");
        let clock = SystemClock::new();
        Self { begun: clock.now(), clock }
    }

    /// Ends the stop. `is_closed`: everything is written to the disk.
    pub(crate) fn end(self, is_closed: bool) {
        let took: Duration = self.clock.now().saturating_since(self.begun);
        if is_closed {
            tracing::info!(event = events::STOPPED, took_ms = ms(took), "stopped: everything is stored");
        } else {
            tracing::warn!(
                event = events::STOPPED_WITHOUT_DISK,
                took_ms = ms(took),
                "stopped without waiting for the disk, or the database, any longer: leases that are not written down end with this process"
            );
        }
    }
}
