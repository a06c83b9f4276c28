//! A peer: `nexus-timer`, a wheel of linked lists in a slab.

use std::time::{Duration, Instant};

use nexus_timer::{TimerHandle, Wheel};

use super::subject::{Fired, Jump, Store, Subject, by_next_wake};

const HALF_A_TICK: Duration = Duration::from_micros(500);

/// The wheel with its defaults: ticks of 1 ms, 7 levels, and 4,096 entries for each chunk as in its documentation.
///
/// It multiplies by the reciprocal of a tick, rounded down, so the very start of a tick may count as the tick before: polled
/// exactly at its own `next_deadline` it can fire nothing, and say the same again. We mean the middle of a tick.
///
/// Its handles must not be dropped, so a variable that holds one is never empty: a timer that is never due lends its own
/// handle while the other one is away.
pub(crate) struct Nexus {
    wheel: Wheel<u64>,
    middle: Instant,
    due: Vec<u64>,
    spare: Option<TimerHandle<u64>>,
}

impl Nexus {
    /// The middle of a tick.
    #[inline]
    fn instant(&self, tick: u64) -> Instant {
        self.middle + Duration::from_millis(tick)
    }

    /// Takes the handle out of its variable and leaves the spare one there.
    fn take(&mut self, handle: &mut TimerHandle<u64>) -> TimerHandle<u64> {
        let never = Duration::from_secs(100 * 365 * 86_400);
        let spare = self.spare.take().unwrap_or_else(|| self.wheel.schedule(self.middle + never, u64::MAX));
        std::mem::replace(handle, spare)
    }

    /// The other way round.
    fn put(&mut self, handle: &mut TimerHandle<u64>, new: TimerHandle<u64>) {
        self.spare = Some(std::mem::replace(handle, new));
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        if let Some(spare) = self.spare.take() {
            self.wheel.free(spare);
        }
    }
}

impl Store for Nexus {
    type Handle = TimerHandle<u64>;

    fn new() -> Self {
        // Its clock is an argument; this is only where time begins.
        let start = Instant::now();
        let middle = start + HALF_A_TICK;
        Self { wheel: Wheel::unbounded(4_096, start), middle, due: Vec::new(), spare: None }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Handle {
        self.wheel.schedule(self.instant(deadline), value)
    }

    #[inline]
    fn cancel(&mut self, handle: Self::Handle) -> u64 {
        self.wheel.cancel(handle).expect("it is pending")
    }

    #[inline]
    fn replace(&mut self, handle: &mut Self::Handle, deadline: u64, value: u64) -> u64 {
        let old = self.take(handle);
        let cancelled = self.cancel(old);
        let new = self.insert(deadline, value);
        self.put(handle, new);
        cancelled
    }

    #[inline]
    fn release(&mut self, handle: Self::Handle) {
        self.wheel.free(handle);
    }
}

impl Subject for Nexus {
    #[inline]
    fn reschedule(&mut self, handle: &mut Self::Handle, deadline: u64) {
        let old = self.take(handle);
        let new = self.wheel.reschedule(old, self.instant(deadline));
        self.put(handle, new);
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        let mut fired = Fired::default();
        self.wheel.poll_and_rebalance(self.instant(now), &mut self.due);
        for value in self.due.drain(..) {
            fired.one(value);
        }
        fired
    }

    fn next(&mut self) -> Jump {
        by_next_wake(self, |this| {
            // It answers with the start of the tick, which is half a tick before the middle.
            let wake = this.wheel.next_deadline()? + HALF_A_TICK - this.middle;
            Some(u64::try_from(wake.as_millis()).expect("less than an age"))
        })
    }
}
