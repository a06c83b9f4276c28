//! [`Nap`]: the driver's sleep, and its wake-up at the right time.
//!
//! Ground rules:
//! - `until` is the limit up to which the driver has looked: a deadline at or after it needs no wake-up. It is 0
//!   while the driver is awake or woken, because a driver looks at every shard before it sleeps.
//! - The driver stores `until` first and looks at the shards then, each under its lock. A producer
//!   files first, under the same lock, and looks at `until` then. So either the driver finds the
//!   entry or the producer finds the driver asleep; the lock orders the two.
//! - The driver stores `until` while it still holds the turn that computed it. A thread that changes the turn after
//!   that, under the same lock, wakes the driver afterwards. So the driver has either seen the change, or does not
//!   sleep.
//! - The thread that sets `until` to 0 wakes the driver, so that only one of many producers pays for it.

use std::sync::{OnceLock, Weak};
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread::{self, Thread};
use crate::{Follower, Monotonic};

/// See the module.
pub(crate) struct Nap {
    until: AtomicU64,
    sleeper: OnceLock<Sleeper>,
}

/// Runs the turns of the timer.
pub(super) enum Sleeper {
    /// A thread that sleeps between them.
    Thread(Thread),
    /// The thread that moves the clock, or one that schedules something that is due already.
    ByHand(Weak<dyn Follower>),
}

const AWAKE: u64 = 0;

impl Nap {
    pub(super) const fn new() -> Self {
        Self { until: AtomicU64::new(AWAKE), sleeper: OnceLock::new() }
    }

    /// Sets, once, who runs the turns.
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

    /// A driver that holds its turn says: entries that are due at `until` or later can wait.
    pub(super) fn prepare(&self, until: Monotonic) {
        self.until.store(until.as_nanos(), Ordering::SeqCst);
    }

    /// As [`prepare`](Self::prepare), with a manual clock, where several threads may run turns and the latest time
    /// counts.
    pub(super) fn raise(&self, until: Monotonic) {
        self.until.fetch_max(until.as_nanos(), Ordering::SeqCst);
    }

    /// The driver is awake: it has slept, or does not sleep after all.
    pub(super) fn awake(&self) {
        self.until.store(AWAKE, Ordering::SeqCst);
    }

    /// Sleeps for at most `longest`; without a limit if `None`. The sleep may end at any time, as a park may.
    pub(super) fn sleep(&self, longest: Option<Duration>) {
        // The driver was woken since it prepared. The unpark may be spent already, by a body that waited on this
        // thread.
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
