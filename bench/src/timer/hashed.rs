//! A peer: the timer with a thread of `hierarchical_hash_wheel_timer`, with closures, and numbers to cancel by.
//!
//! Its callers send everything to its thread, so nobody learns whether a cancel came in time: each counts as one that did.
//! Delays are cut to whole milliseconds from the last tick, so that it can be early.

use std::sync::Arc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{ClosureTimer, OneShotClosureState, PeriodicClosureState, Timer};
use tickwheel::{Clock, Monotonic, SystemClock};

use super::stamps::Stamps;
use super::subject::{Producer, Service, Stamping};

/// The timer and its thread.
pub(crate) struct Hashed {
    timer: TimerWithThread<u64, OneShotClosureState<u64>, PeriodicClosureState<u64>>,
}

/// One thread's sender. Its numbers begin with the thread's own.
pub(crate) struct Sender {
    timer: TimerRef<u64, OneShotClosureState<u64>, PeriodicClosureState<u64>>,
    next: u64,
}

impl Sender {
    #[inline]
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Service for Hashed {
    type Producer<'a> = Sender;

    fn start(_: Option<SystemClock>) -> Self {
        Self { timer: TimerWithThread::new().expect("a thread") }
    }

    fn producer(&self, number: u32) -> Sender {
        Sender { timer: self.timer.timer_ref(), next: u64::from(number + 1) << 40 }
    }
}

impl Drop for Hashed {
    fn drop(&mut self) {
        self.timer.shutdown_async().expect("its thread listens");
    }
}

impl Producer for Sender {
    type Claim = u64;

    #[inline]
    fn schedule(&mut self, delay: Duration) -> u64 {
        let number = self.number();
        self.timer.schedule_action_once(number, delay, |_| ());
        number
    }

    #[inline]
    fn cancel(&mut self, number: u64) -> bool {
        self.timer.cancel(&number);
        true
    }
}

impl Stamping for Sender {
    #[inline]
    fn stamp_at(&mut self, due: Monotonic, stamps: &Arc<Stamps>, index: usize) {
        let delay = due.saturating_since(stamps.epoch().clock.now());
        let number = self.number();
        let stamps = Arc::clone(stamps);
        self.timer.schedule_action_once(number, delay, move |_| stamps.stamp(index));
    }
}
