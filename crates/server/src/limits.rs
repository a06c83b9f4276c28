//! What requests may hold in memory at one time, all together.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// A body up to 16 KiB needs no slot: with 10,000 connections that makes 160 MiB.
pub(crate) const SMALL_BODY_BYTES: usize = 16 << 10;
/// 128 bodies of up to 1 MiB.
const LARGE_BODIES_MAX: usize = 128;
/// 32 batches of some 16 MiB at most: a line, the lines under way, and results that nobody has read.
const BATCHES_MAX: usize = 32;
/// 5 s for a slot to become free; then it is better that the client knows.
const SLOT_TIME_MAX: Duration = Duration::from_secs(5);

/// The slots. One set for each server.
pub(crate) struct Limits {
    large_bodies: Arc<Semaphore>,
    batches: Arc<Semaphore>,
}

/// A slot, free again when it is dropped.
pub(crate) struct Slot(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Limits {
    pub(crate) fn new() -> Self {
        Self {
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES_MAX)),
            batches: Arc::new(Semaphore::new(BATCHES_MAX)),
        }
    }

    /// A slot for a body above [`SMALL_BODY_BYTES`].
    pub(crate) async fn large_body(&self) -> Result<Slot, Problem> {
        slot(&self.large_bodies, "large bodies", LARGE_BODIES_MAX).await
    }

    /// A slot for a batch.
    pub(crate) async fn batch(&self) -> Result<Slot, Problem> {
        slot(&self.batches, "batches", BATCHES_MAX).await
    }
}

async fn slot(slots: &Arc<Semaphore>, what: &str, max: usize) -> Result<Slot, Problem> {
    match timeout(SLOT_TIME_MAX, Arc::clone(slots).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(Slot(permit)),
        Ok(Err(_)) => unreachable!("nobody closes the semaphore of {what}"),
        Err(_) => Err(Problem::busy(format!("the server is reading {max} {what} already"), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_more_waits_for_a_slot_and_then_is_told() {
        let limits = Limits::new();
        let mut held = Vec::new();
        for _ in 0..BATCHES_MAX {
            held.push(limits.batch().await.expect("a free slot"));
        }
        let refused = limits.batch().await.err().expect("no free slot");
        assert_eq!((refused.status, refused.retry_after_s), (429, Some(1)));
        drop(held.pop());
        assert!(limits.batch().await.is_ok(), "a dropped slot is free again");
        assert!(limits.large_body().await.is_ok(), "they do not share");
    }
}
