//! [`Nap`]: how the driver sleeps, and how it is woken just when it has to be.
//!
//! Ground rules:
//! - `until` is what the driver has looked at: a deadline at or after it needs no wake-up. It is 0
//!   while the driver is awake or woken, because a driver looks at every shard before it sleeps.
//! - The driver stores `until` first and looks at the shards then, each under its lock. A producer
//!   files first, under the same lock, and looks at `until` then. So either the driver finds the
//!   entry or the producer finds the driver asleep; the lock orders the two.
//! - It stores `until` while it still holds the turn that said so. Whoever changes the turn after it, under the same lock,
//!   wakes then: so the driver has either seen the change, or does not sleep.
//! - Whoever takes `until` to 0 wakes the driver, so that of many producers one pays for it.

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

/// Who lets the timer have its turns.
pub(super) enum Sleeper {
    /// A thread that sleeps in between.
    Thread(Thread),
    /// Whoever moves the clock; and whoever schedules something that is due already.
    ByHand(Weak<dyn Follower>),
}

const AWAKE: u64 = 0;

impl Nap {
    pub(super) const fn new() -> Self {
        Self { until: AtomicU64::new(AWAKE), sleeper: OnceLock::new() }
    }

    /// Says once who sleeps.
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

    /// What is due at `until` or later can wait from now on; said by a driver that holds its turn.
    pub(super) fn prepare(&self, until: Monotonic) {
        self.until.store(until.as_nanos(), Ordering::SeqCst);
    }

    /// As [`prepare`](Self::prepare), by hand, where several may have turns and the latest time counts.
    pub(super) fn raise(&self, until: Monotonic) {
        self.until.fetch_max(until.as_nanos(), Ordering::SeqCst);
    }

    /// The driver does not sleep after all, or has slept.
    pub(super) fn awake(&self) {
        self.until.store(AWAKE, Ordering::SeqCst);
    }

    /// Sleeps, at most so long; without end if `None`. It may end at any time, as a park may.
    pub(super) fn sleep(&self, longest: Option<Duration>) {
        // Woken since it prepared: the unpark may be spent already, by a body that waited for something on this thread.
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
