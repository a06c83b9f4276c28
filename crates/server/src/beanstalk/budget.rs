//! Memory for jobs that are on their way.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A job of so many bytes, its end among them, takes no part: it is as much as what may be read ahead.
pub(super) const SMALL_BYTES: usize = (64 << 10) + 2;
/// All the others have so many bytes together: 2 GiB, 128 of the longest.
const LARGE_BYTES: usize = 2 << 30;
const UNIT_BYTES: usize = 1 << 10;

/// What is left for large jobs, from the moment they are announced until they are stored. Whoever comes when it is used up waits for his turn.
#[derive(Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_BYTES / UNIT_BYTES)))
    }

    /// Room for a job of so many bytes, until what comes back is dropped.
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
