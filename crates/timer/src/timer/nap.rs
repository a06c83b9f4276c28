//! [`Nap`]: the sleep of the driver, and its wake-up in time.
//!
//! Ground rules:
//! - `until` is the limit of the driver's knowledge: a new deadline at or after it needs no wake-up. It is 0 while the driver is awake or
//!   has been woken, because a driver looks at every shard before it sleeps.
//! - The driver first stores `until` and then looks at the shards, each under its lock. A producer first files its entry, under the same
//!   lock, and then reads `until`. The lock orders these steps. So the driver finds the entry, or the producer finds that the driver sleeps
//!   and wakes it.
//! - The driver stores `until` while it still holds the turn that computed it. A thread that changes the turn later, under the same lock,
//!   wakes the driver afterwards. So either the driver has seen the change, or it does not sleep.
//! - The thread that sets `until` to 0 wakes the driver, so only one of many producers pays for the wake-up.

use std::sync::{OnceLock, Weak};
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread::{self, Thread};
use crate::{Follower, Monotonic};

/// The state of the sleep; see the module.
pub(crate) struct Nap {
    until: AtomicU64,
    sleeper: OnceLock<Sleeper>,
}

/// The runner of the turns of the timer.
pub(super) enum Sleeper {
    /// A thread that sleeps between turns.
    Thread(Thread),
    /// The thread that moves the clock, or a thread that schedules a task that is due already.
    ByHand(Weak<dyn Follower>),
}

const AWAKE: u64 = 0;

impl Nap {
    pub(super) const fn new() -> Self {
        Self { until: AtomicU64::new(AWAKE), sleeper: OnceLock::new() }
    }

    /// Sets what runs the turns. Called once.
    pub(super) fn belongs_to(&self, sleeper: Sleeper) {
        let set = self.sleeper.set(sleeper);
        debug_assert!(set.is_ok(), "a timer has one driver");
    }

    /// Wakes the driver if it would sleep beyond this deadline.
    #[inline]
    pub(super) fn wake_before(&self, deadline: Monotonic) {
        if deadline.as_nanos() < self.until.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Wakes the driver if it sleeps.
    pub(super) fn wake(&self) {
        match self.sleeper.get() {
            Some(Sleeper::Thread(thread)) => {
                let slept = self.until.swap(AWAKE, Ordering::SeqCst) != AWAKE;
                if slept {
                    thread.unpark();
                }
            }
            Some(Sleeper::ByHand(follower)) => {
                if let Some(follower) = follower.upgrade() {
                    follower.moved();
                }
            }
            None => {}
        }
    }

    /// Called by a driver that holds its turn: entries that are due at `until` or later can wait.
    pub(super) fn prepare(&self, until: Monotonic) {
        self.until.store(until.as_nanos(), Ordering::SeqCst);
    }

    /// Like [`prepare`](Self::prepare), for a manual clock: several threads may run turns, and the latest time counts.
    pub(super) fn raise(&self, until: Monotonic) {
        self.until.fetch_max(until.as_nanos(), Ordering::SeqCst);
    }

    /// Called by a driver that has slept, or that does not sleep after all.
    pub(super) fn awake(&self) {
        self.until.store(AWAKE, Ordering::SeqCst);
    }

    /// Sleeps for at most `longest`; `None` is no limit. The sleep may end at any earlier time, as a park may.
    pub(super) fn sleep(&self, longest: Option<Duration>) {
        // The driver was woken after it prepared. A body that waited on this thread may have used up the unpark.
        if self.until.load(Ordering::SeqCst) == AWAKE {
            return;
        }
        match longest {
            Some(longest) => thread::park_timeout(longest),
            None => thread::park(),
        }
        self.awake();
    }
}
