//! The large bodies that are read at one time, in total and for each caller.
//!
//! A call waits first for a permit in its caller's share, and then for one of all permits. So calls whose caller has
//! used up its share do not delay the calls of others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::access::producer::Producer;

/// The largest body that needs no permit. With 10,000 connections such bodies take 160 MiB.
pub(crate) const SMALL_BODY_BYTES: usize = 16 << 10;
/// The longest wait for a permit. After it the client should be told.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The permits of all bodies above [`SMALL_BODY_BYTES`]. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LargeBodies(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    share_max: usize,
    all: Arc<Semaphore>,
    /// The shares of callers that have a large body under way or wait for a permit.
    shares: Mutex<BTreeMap<Producer, Share>>,
}

/// The share of one caller.
#[derive(Debug)]
struct Share {
    permits: Arc<Semaphore>,
    /// The number of calls that have a permit of the share or wait for one. At 0 the share is removed.
    calls: usize,
}

/// The permit of a large body. Dropping it frees the permit.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    _of_all: OwnedSemaphorePermit,
    _of_share: Option<OfShare>,
}

/// A permit in the share of a caller.
#[derive(Debug)]
struct OfShare {
    _permit: OwnedSemaphorePermit,
    _call: Call,
}

/// A call that uses the share of its caller, until this is dropped.
#[derive(Debug)]
struct Call {
    producer: Producer,
    bodies: LargeBodies,
}

impl LargeBodies {
    /// Makes `max` permits, of which one caller has at most `share_max`.
    pub(crate) fn new(max: usize, share_max: usize) -> Self {
        let all = Arc::new(Semaphore::new(max));
        Self(Arc::new(Shared { max, share_max, all, shares: Mutex::default() }))
    }

    /// Takes a permit for one more body; waits a moment for it.
    ///
    /// # Errors
    /// 429, which names the limit.
    pub(crate) async fn enter(&self, producer: Producer) -> Result<BodyPermit, Problem> {
        let Shared { max, share_max, .. } = *self.0;
        let ends = Instant::now() + WAIT_MAX;
        let of_share = if producer.has_share() {
            let (permits, call) = self.share(producer);
            let permit = wait(permits, ends).await.ok_or_else(|| {
                busy(format!("{share_max} large bodies of the caller are being read, which is the limit for one caller (--max-large-bodies-per-caller)"))
            })?;
            Some(OfShare { _permit: permit, _call: call })
        } else {
            None
        };
        let of_all = wait(Arc::clone(&self.0.all), ends).await.ok_or_else(|| {
            busy(format!("the server is reading {max} large bodies already (--max-large-bodies)"))
        })?;
        Ok(BodyPermit { _of_all: of_all, _of_share: of_share })
    }

    fn share(&self, producer: Producer) -> (Arc<Semaphore>, Call) {
        let mut shares = self.shares();
        let share = shares
            .entry(producer)
            .or_insert_with(|| Share { permits: Arc::new(Semaphore::new(self.0.share_max)), calls: 0 });
        share.calls += 1;
        (Arc::clone(&share.permits), Call { producer, bodies: self.clone() })
    }

    fn shares(&self) -> MutexGuard<'_, BTreeMap<Producer, Share>> {
        self.0.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut shares = self.bodies.shares();
        let share = shares.get_mut(&self.producer).expect("a share is there while it has calls");
        share.calls -= 1;
        if share.calls == 0 {
            shares.remove(&self.producer);
        }
    }
}

async fn wait(permits: Arc<Semaphore>, ends: Instant) -> Option<OwnedSemaphorePermit> {
    let permit = timeout_at(ends, permits.acquire_owned()).await.ok()?;
    Some(permit.expect("no semaphore of large bodies is ever closed"))
}

fn busy(what: String) -> Problem {
    Problem::busy(what, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Producer = Producer::Token([1; 32]);
    const B: Producer = Producer::Token([2; 32]);

    async fn permits(bodies: &LargeBodies, producer: Producer, count: usize) -> Vec<BodyPermit> {
        let mut permits = Vec::new();
        for _ in 0..count {
            permits.push(bodies.enter(producer).await.expect("a free permit"));
        }
        permits
    }

    async fn refused(bodies: &LargeBodies, producer: Producer) -> String {
        let begun = Instant::now();
        let problem = bodies.enter(producer).await.expect_err("no free permit");
        assert_eq!((problem.status, problem.retry_after_s, begun.elapsed()), (429, Some(1), WAIT_MAX));
        problem.detail.to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_has_its_share_and_others_the_rest() {
        let bodies = LargeBodies::new(3, 2);
        let mut held = permits(&bodies, A, 2).await;
        let detail = refused(&bodies, A).await;
        assert!(
            detail.starts_with("2 large bodies of the caller") && detail.contains("-per-caller)"),
            "{detail}"
        );
        let other = permits(&bodies, B, 1).await;
        let detail = refused(&bodies, B).await;
        assert!(detail.contains("3 large bodies already (--max-large-bodies)"), "{detail}");
        drop(held.pop());
        assert!(bodies.enter(A).await.is_ok(), "a dropped permit is free again");
        drop((held, other));
        assert!(bodies.shares().is_empty(), "callers that are gone are forgotten");
    }

    /// All clients of a proxy on this computer have one address.
    #[tokio::test(start_paused = true)]
    async fn callers_of_this_machine_share_all_places() {
        let bodies = LargeBodies::new(3, 1);
        let _held = permits(&bodies, Producer::Local, 3).await;
        assert!(refused(&bodies, Producer::Local).await.contains("--max-large-bodies)"));
    }

    /// A caller with a used-up share and many waiting calls must not keep other callers from a free permit.
    #[tokio::test(start_paused = true)]
    async fn calls_that_wait_for_their_share_do_not_block_others() {
        let bodies = LargeBodies::new(2, 1);
        let held = permits(&bodies, A, 1).await;
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let bodies = bodies.clone();
                tokio::spawn(async move { bodies.enter(A).await.is_ok() })
            })
            .collect();
        tokio::task::yield_now().await;
        let begun = Instant::now();
        assert!(bodies.enter(B).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO, "it need not wait");
        drop(held);
        let mut entered = 0;
        for call in waiting {
            entered += usize::from(call.await.expect("it did not panic"));
        }
        assert_eq!(entered, 100, "each had its permit after another");
        assert!(bodies.shares().is_empty());
    }
}
