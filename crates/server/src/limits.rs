//! What may be held at one time, all together: connections, bodies, batches, watched names.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::batches::Batches;

/// A body up to 16 KiB needs no slot: with 10,000 connections that makes 160 MiB.
pub(crate) const SMALL_BODY_BYTES: usize = 16 << 10;
/// 5 s for a slot to become free; then it is better that the client knows.
const SLOT_TIME_MAX: Duration = Duration::from_secs(5);

/// Limits of what clients may hold at one time. A refusal names the limit that was met by its option of `tickwheel serve`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections beyond [`Config::connections_max`](crate::Config::connections_max), for `/healthz`, `/readyz`, `/metrics` and callers whose
    /// token has `admin`. Default: 64.
    pub connections_kept: usize,
    /// Bodies above 16 KiB that are read at one time; one more waits up to 5 s and is answered 429. Default: 128, each of up to 1 MiB.
    pub large_bodies: usize,
    /// Open batches; one more waits up to 6 s and is answered 429. Default: 32, each of some 16 MiB at most.
    pub batches: usize,
    /// Open batches of one token, or of one address of another machine where there are no tokens. Default: 16.
    pub batches_per_caller: usize,
    /// Bytes of memory for the tubes that clients of beanstalkd watch, all connections together; one connection has a quarter of it. A watch
    /// beyond that is answered `OUT_OF_MEMORY`. Default: 32 MiB.
    pub watched_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_kept: 64,
            large_bodies: 128,
            batches: 32,
            batches_per_caller: 16,
            watched_bytes: 32 << 20,
        }
    }
}

/// The slots. One set for each server.
pub(crate) struct Slots {
    large_bodies: Arc<Semaphore>,
    large_bodies_max: usize,
    pub(crate) batches: Batches,
}

/// A slot, free again when it is dropped.
pub(crate) struct Slot(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Slots {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            large_bodies: Arc::new(Semaphore::new(limits.large_bodies)),
            large_bodies_max: limits.large_bodies,
            batches: Batches::new(limits.batches, limits.batches_per_caller),
        }
    }

    /// A slot for a body above [`SMALL_BODY_BYTES`].
    pub(crate) async fn large_body(&self) -> Result<Slot, Problem> {
        match timeout(SLOT_TIME_MAX, Arc::clone(&self.large_bodies).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Slot(permit)),
            Ok(Err(_)) => unreachable!("nobody closes the semaphore of large bodies"),
            Err(_) => {
                let max = self.large_bodies_max;
                Err(Problem::busy(
                    format!("the server is reading {max} large bodies already (--max-large-bodies)"),
                    1,
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_more_waits_for_a_slot_and_then_is_told() {
        let slots = Slots::new(&Limits { large_bodies: 3, ..Limits::default() });
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(slots.large_body().await.expect("a free slot"));
        }
        let refused = slots.large_body().await.err().expect("no free slot");
        assert_eq!((refused.status, refused.retry_after_s), (429, Some(1)));
        assert!(refused.detail.contains("3 large bodies already (--max-large-bodies)"), "{refused}");
        drop(held.pop());
        assert!(slots.large_body().await.is_ok(), "a dropped slot is free again");
    }
}
