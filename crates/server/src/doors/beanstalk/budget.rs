//! Memory for jobs that are on their way, and for the tubes that connections watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A job of up to this many bytes, its end among them, takes no part: it is as much as what may be read ahead.
pub(super) const SMALL_BYTES: usize = (64 << 10) + 2;
/// All the others together have 2 GiB, 128 of the longest.
const LARGE_BYTES: usize = 2 << 30;
const UNIT_BYTES: usize = 1 << 10;

/// A watched tube takes about this much beside its name, which is there in three places.
const WATCH_BYTES: usize = 192;
/// And about this much more in the queue, which has to know of each tube; however many watch it.
const TUBE_BYTES: usize = 1_024;
/// One connection has a quarter of what there is for all.
const CONNECTION_SHARE: usize = 4;

/// What is left for the names of tubes that connections watch.
#[derive(Debug)]
pub(super) struct WatchBudget {
    max: usize,
    taken: AtomicUsize,
}

/// Memory for the tubes of one connection, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Watching<'a> {
    budget: &'a WatchBudget,
    bytes: usize,
}

impl WatchBudget {
    pub(super) fn new(max: usize) -> Self {
        Self { max, taken: AtomicUsize::new(0) }
    }

    /// Of a connection that watches nothing yet.
    pub(super) fn begin(&self) -> Watching<'_> {
        Watching { budget: self, bytes: 0 }
    }
}

impl Watching<'_> {
    /// What it takes to watch a tube of such a name. Whether others watch it too is not asked: it may be the last that does.
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

    /// One tube less.
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

/// What is left for large jobs, from the moment they are announced until they are stored. A client that comes when it is used up waits for its turn.
#[derive(Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_BYTES / UNIT_BYTES)))
    }

    /// Room for a job of this many bytes, until what comes back is dropped.
    pub(super) async fn take(&self, bytes: usize) -> OwnedSemaphorePermit {
        let units = bytes.div_ceil(UNIT_BYTES).min(LARGE_BYTES / UNIT_BYTES);
        let units = u32::try_from(units).expect("it is some millions at most");
        Arc::clone(&self.0).acquire_many_owned(units).await.expect("nobody closes it")
    }

    /// One that has this much.
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
