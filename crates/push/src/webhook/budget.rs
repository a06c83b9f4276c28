//! [`Connections`]: how many connections all webhooks of a process may have, and how many those of one owner.
//!
//! ```text
//! a new connection:  a permit of the owner, then one of all
//!                    none is free -> an unused connection is closed: of the owner, or of anybody
//!                    none is unused -> waits its turn
//! ```
//!
//! A permit belongs to a connection from before its making until it is closed, also while nothing is sent over it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One owner has at most one of this many parts of all connections.
const OWNER_SHARE: usize = 4;

/// The connections that the webhooks of a process may have. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    all: Permits,
    share_max: usize,
    owners: Mutex<BTreeMap<Option<Arc<str>>, Arc<Permits>>>,
}

/// The connections that the webhooks of one owner may have. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConnectionShare {
    own: Arc<Permits>,
    budget: Arc<Budget>,
}

/// Some permits, and those who keep unused connections that hold such permits.
#[derive(Debug)]
struct Permits {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    pools: Mutex<Vec<Weak<dyn Pool>>>,
}

/// Keeps unused connections.
pub(super) trait Pool: Send + Sync + std::fmt::Debug {
    /// Closes the connection that is unused the longest. Returns whether there was one.
    fn close_one(&self) -> bool;
}

/// The right to one connection. Dropping it gives the permits back.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Connections {
    /// Makes a budget of `max` connections, at least 4. One owner has at most a quarter of them.
    #[must_use]
    pub fn new(max: usize) -> Self {
        let max = max.clamp(OWNER_SHARE, Semaphore::MAX_PERMITS);
        Self(Arc::new(Budget {
            all: Permits::new(max),
            share_max: max / OWNER_SHARE,
            owners: Mutex::default(),
        }))
    }

    /// The most connections of one owner.
    #[must_use]
    pub fn share_max(&self) -> usize {
        self.0.share_max
    }

    /// Returns the share of an owner. `None` is an owner, too.
    #[must_use]
    pub fn share_of(&self, owner: Option<&str>) -> ConnectionShare {
        let mut owners = locked(&self.0.owners);
        // An owner whose webhooks are gone has no permits in use.
        owners.retain(|_, permits| Arc::strong_count(permits) > 1);
        let new = || Arc::new(Permits::new(self.0.share_max));
        let own = Arc::clone(owners.entry(owner.map(Arc::from)).or_insert_with(new));
        ConnectionShare { own, budget: Arc::clone(&self.0) }
    }
}

impl Default for Connections {
    /// A budget without a limit.
    fn default() -> Self {
        Self::new(Semaphore::MAX_PERMITS)
    }
}

impl ConnectionShare {
    /// Takes part with unused connections.
    pub(super) fn add(&self, pool: &Arc<impl Pool + 'static>) {
        let pool: Arc<dyn Pool> = Arc::clone(pool) as Arc<dyn Pool>;
        for permits in [&*self.own, &self.budget.all] {
            let mut pools = locked(&permits.pools);
            pools.retain(|pool| pool.strong_count() > 0);
            pools.push(Arc::downgrade(&pool));
        }
    }

    /// Waits for the right to one connection.
    pub(super) async fn permit(&self) -> ConnectionPermit {
        // In this order, an owner that has its share holds nothing that others wait for.
        let own = self.own.take().await;
        ConnectionPermit { _own: own, _all: self.budget.all.take().await }
    }

    /// Whether a webhook waits for the permit of an unused connection of this owner.
    pub(super) fn is_wanted(&self) -> bool {
        [&*self.own, &self.budget.all].iter().any(|permits| permits.waiting.load(Ordering::SeqCst) > 0)
    }
}

impl Permits {
    fn new(max: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max)), waiting: AtomicUsize::new(0), pools: Mutex::default() }
    }

    async fn take(&self) -> OwnedSemaphorePermit {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return permit;
        }
        // From now on no connection is kept unused, so one that is not seen here is closed by its owner.
        let _waits = Waits::new(&self.waiting);
        let pools: Vec<_> = locked(&self.pools).iter().filter_map(Weak::upgrade).collect();
        // Closed outside of the lock.
        pools.iter().find(|pool| pool.close_one());
        Arc::clone(&self.free).acquire_owned().await.expect("the budget is never closed")
    }
}

/// A counted wait. Dropping it ends the count.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one step, so that a panic leaves nothing half done.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// The permit, if it can be had at once.
    fn poll(waits: &mut Pin<Box<impl Future<Output = ConnectionPermit>>>) -> Option<ConnectionPermit> {
        match waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    /// A pool whose connections are permits alone.
    #[derive(Debug, Default)]
    struct Unused(Mutex<Vec<ConnectionPermit>>);

    impl Pool for Unused {
        fn close_one(&self) -> bool {
            locked(&self.0).pop().is_some()
        }
    }

    #[tokio::test]
    async fn an_owner_has_a_quarter_and_the_others_do_not_wait_for_it() {
        let connections = Connections::new(8);
        let (shop, bank) = (connections.share_of(Some("shop/")), connections.share_of(Some("bank/")));
        let [first, _second] = [shop.permit().await, shop.permit().await];
        let mut third = Box::pin(shop.permit());
        assert!(poll(&mut third).is_none(), "the owner has its share");
        let again = connections.share_of(Some("shop/"));
        let mut fourth = Box::pin(again.permit());
        assert!(poll(&mut fourth).is_none(), "it is the same share");
        let _others = [bank.permit().await, bank.permit().await];
        drop(first);
        assert!(poll(&mut third).is_some());
    }

    #[tokio::test]
    async fn all_owners_together_have_no_more_than_there_are() {
        let connections = Connections::new(4);
        let owners: Vec<_> = (0..5).map(|n| connections.share_of(Some(&format!("{n}/")))).collect();
        let mut held = Vec::new();
        for owner in &owners[..4] {
            held.push(owner.permit().await);
        }
        let mut fifth = Box::pin(owners[4].permit());
        assert!(poll(&mut fifth).is_none());
        held.pop();
        assert!(poll(&mut fifth).is_some());
    }

    /// The story: one webhook kept unused connections, and another one of the same owner waited until a receiver closed them.
    #[tokio::test]
    async fn an_unused_connection_makes_way() {
        let connections = Connections::new(4);
        let share = connections.share_of(None);
        let pool = Arc::new(Unused::default());
        share.add(&pool);
        let unused = share.permit().await;
        locked(&pool.0).push(unused);
        assert!(!share.is_wanted());
        let held = share.permit().await;
        assert!(locked(&pool.0).is_empty(), "it was closed");
        let mut waits = Box::pin(share.permit());
        assert!(poll(&mut waits).is_none());
        assert!(share.is_wanted(), "the holder keeps nothing now");
        drop(waits);
        assert!(!share.is_wanted());
        drop(held);
    }
}
