//! The limits of contention: a wheel behind one lock, and no timer around it. Nothing waits, nothing fires.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Clock, Monotonic, SystemClock};
use tickwheel_core::{Handle, TimerQueue, Wheel};

use super::subject::{Producer, Service};

const MILLI: NonZeroU64 = NonZeroU64::new(1_000_000).expect("not 0");

/// The wheel and its lock. `READS_CLOCK` if each schedule asks for the time first, as that of any real timer must;
/// otherwise all of them come at the time of the start.
#[derive(Debug)]
pub(crate) struct Locked<const READS_CLOCK: bool> {
    wheel: Mutex<Wheel<u64>>,
    clock: SystemClock,
}

impl<const READS_CLOCK: bool> Locked<READS_CLOCK> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Wheel<u64>> {
        self.wheel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's way to it.
#[derive(Debug)]
pub(crate) struct Locker<'a, const READS_CLOCK: bool>(&'a Locked<READS_CLOCK>);

impl<const READS_CLOCK: bool> Service for Locked<READS_CLOCK> {
    type Producer<'a> = Locker<'a, READS_CLOCK>;

    fn start(clock: Option<SystemClock>) -> Self {
        Self { wheel: Mutex::new(Wheel::new(0)), clock: clock.unwrap_or_default() }
    }

    fn producer(&self, _: u32) -> Locker<'_, READS_CLOCK> {
        Locker(self)
    }
}

impl<const READS_CLOCK: bool> Producer for Locker<'_, READS_CLOCK> {
    type Claim = Handle;

    #[inline]
    fn schedule(&mut self, delay: Duration) -> Handle {
        let now = if READS_CLOCK { self.0.clock.now() } else { Monotonic::ZERO };
        let deadline = now.saturating_add(delay).ceil_ticks(MILLI);
        self.0.lock().insert(deadline, 0).expect("the deadline is after now")
    }

    #[inline]
    fn cancel(&mut self, handle: Handle) -> bool {
        self.0.lock().cancel(handle).is_some()
    }
}
