//! Memory for jobs that are being received, and for the tubes that connections watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest job, with its line end, that takes no memory of the budget: a connection may read this much ahead
/// anyway.
pub(super) const SMALL_BYTES: usize = (64 << 10) + 2;
/// The memory for all larger jobs together, enough for 128 of the longest (bytes).
const LARGE_BYTES: usize = 2 << 30;
const UNIT_BYTES: usize = 1 << 10;

/// The memory of a watched tube (bytes), without its name, which is stored three times.
const WATCH_BYTES: usize = 192;
/// The memory of a tube in the queue (bytes), however many connections watch it.
const TUBE_BYTES: usize = 1_024;
/// The budget is divided by this number. One connection may use at most one of these parts.
const CONNECTION_SHARE: usize = 4;

/// The budget for the tubes that connections watch.
#[derive(Debug)]
pub(super) struct WatchBudget {
    max: usize,
    taken: AtomicUsize,
}

/// The memory of one connection's tubes. Dropping it gives the memory back.
#[derive(Debug)]
pub(super) struct Watching<'a> {
    budget: &'a WatchBudget,
    bytes: usize,
}

impl WatchBudget {
    pub(super) fn new(max: usize) -> Self {
        Self { max, taken: AtomicUsize::new(0) }
    }

    /// The share of a connection that watches nothing yet.
    pub(super) fn begin(&self) -> Watching<'_> {
        Watching { budget: self, bytes: 0 }
    }
}

impl Watching<'_> {
    /// The memory to watch a tube with this name. It counts in full, although other connections may watch the tube,
    /// because this connection may become the last one that watches it.
    fn cost(name: &str) -> usize {
        TUBE_BYTES + WATCH_BYTES + 3 * name.len()
    }

    /// Takes memory for one more tube. `false`: there is none left for this connection.
    pub(super) fn take(&mut self, name: &str) -> bool {
        let (bytes, max) = (Self::cost(name), self.budget.max);
        let add = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= max);
        let fits = self.bytes + bytes <= max / CONNECTION_SHARE
            && self.budget.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Gives the memory of one tube back.
    pub(super) fn give_back(&mut self, name: &str) {
        let bytes = Self::cost(name).min(self.bytes);
        self.bytes -= bytes;
        self.budget.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The budget for large jobs, from their announcement until they are stored. When it is used up, a client waits for
/// its turn.
#[derive(Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_BYTES / UNIT_BYTES)))
    }

    /// Takes memory for a job of this many bytes. Dropping the result gives it back.
    pub(super) async fn take(&self, bytes: usize) -> OwnedSemaphorePermit {
        let units = bytes.div_ceil(UNIT_BYTES).min(LARGE_BYTES / UNIT_BYTES);
        let units = u32::try_from(units).expect("it is some millions at most");
        Arc::clone(&self.0).acquire_many_owned(units).await.expect("nobody closes it")
    }

    /// A budget of this many bytes.
    #[cfg(test)]
    pub(super) fn of(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT_BYTES)))
    }

    #[cfg(test)]
    pub(super) fn left_bytes(&self) -> usize {
        self.0.available_permits() * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_tubes_share_a_budget_and_one_connection_has_a_quarter_of_it() {
        let one = Watching::cost("tube");
        let budget = WatchBudget::new(8 * one);
        let mut connections: Vec<_> = (0..5).map(|_| budget.begin()).collect();
        for connection in &mut connections[..4] {
            assert!(connection.take("tube") && connection.take("tube"));
            assert!(!connection.take("tube"), "a quarter is two of eight");
        }
        assert!(!connections[4].take("tube"), "others have all");
        connections[0].give_back("tube");
        assert!(!connections[4].take("a-longer-tube"), "names count");
        assert!(connections[4].take("tube"));
        drop(connections);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }
}
