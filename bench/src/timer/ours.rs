//! Ours: [`Timer`], with closures and a handle to cancel, and with its sleeps, as tokio's are used.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tickwheel::{Job, Monotonic, Sleep, SystemClock, Timeout, Timer};

use super::stamps::{Bell, Stamps};
use super::subject::{Counts, Producer, Service, Stamping};

/// A timer with a tick of so many microseconds. Bodies run on its own pool, or, `INLINE`, on its driver's thread.
#[derive(Debug)]
pub(crate) struct Ours<const TICK_US: u64, const INLINE: bool>(Timer);

/// One thread's way to it.
#[derive(Debug)]
pub(crate) struct Scheduler<'a>(&'a Timer);

fn start(tick_us: u64, inline: bool, clock: Option<SystemClock>) -> Timer {
    let mut builder = Timer::builder().tick(Duration::from_micros(tick_us));
    if inline {
        builder = builder.executor(Job::run);
    }
    // Without one it has its own, which is called directly.
    if let Some(clock) = clock {
        builder = builder.clock(clock);
    }
    builder.build().expect("a timer")
}

fn counts(timer: &Timer) -> Counts {
    let metrics = timer.metrics();
    Counts { cancelled: metrics.cancelled, cancelled_unfiled: metrics.cancelled_unfiled }
}

impl<const TICK_US: u64, const INLINE: bool> Service for Ours<TICK_US, INLINE> {
    const TICK_NANOS: Option<u64> = Some(TICK_US * 1_000);

    type Producer<'a> = Scheduler<'a>;

    fn start(clock: Option<SystemClock>) -> Self {
        Self(start(TICK_US, INLINE, clock))
    }

    fn producer(&self, _: u32) -> Scheduler<'_> {
        Scheduler(&self.0)
    }

    fn counts(&self) -> Option<Counts> {
        Some(counts(&self.0))
    }
}

impl Producer for Scheduler<'_> {
    type Claim = Timeout;

    #[inline]
    fn schedule(&mut self, delay: Duration) -> Timeout {
        self.0.schedule(delay, || ()).expect("there is no limit")
    }

    #[inline]
    fn cancel(&mut self, timeout: Timeout) -> bool {
        timeout.cancel()
    }
}

impl Stamping for Scheduler<'_> {
    #[inline]
    fn stamp_at(&mut self, due: Monotonic, stamps: &Arc<Stamps>, index: usize) {
        let stamps = Arc::clone(stamps);
        self.0.schedule_at(due, move || stamps.stamp(index)).expect("there is no limit");
    }
}

/// The same timer with its futures: polled once, which schedules them, and dropped to cancel them.
#[derive(Debug)]
pub(crate) struct Sleeps(Timer);

/// One thread's way to them.
#[derive(Debug)]
pub(crate) struct Sleeper<'a> {
    timer: &'a Timer,
    /// Sleeps that nobody cancels, and what they stamp.
    kept: Vec<(usize, Sleep)>,
}

impl Service for Sleeps {
    const TICK_NANOS: Option<u64> = Some(1_000_000);

    type Producer<'a> = Sleeper<'a>;

    fn start(clock: Option<SystemClock>) -> Self {
        Self(start(1_000, false, clock))
    }

    fn producer(&self, _: u32) -> Sleeper<'_> {
        Sleeper { timer: &self.0, kept: Vec::new() }
    }

    fn counts(&self) -> Option<Counts> {
        Some(counts(&self.0))
    }
}

impl Producer for Sleeper<'_> {
    type Claim = Sleep;

    #[inline]
    fn schedule(&mut self, delay: Duration) -> Sleep {
        let mut sleep = self.timer.sleep(delay);
        let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Pending, "the deadline is after now");
        sleep
    }

    #[inline]
    fn cancel(&mut self, _: Sleep) -> bool {
        true
    }
}

impl Stamping for Sleeper<'_> {
    #[inline]
    fn stamp_at(&mut self, due: Monotonic, stamps: &Arc<Stamps>, index: usize) {
        let mut sleep = self.timer.sleep_until(due);
        let waker = Waker::from(Arc::new(Bell::new(stamps, index)));
        if Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_ready() {
            stamps.stamp(index);
            return;
        }
        if self.kept.len() == self.kept.capacity() {
            self.kept.retain(|(index, _)| !stamps.has_fired(*index));
        }
        self.kept.push((index, sleep));
    }
}
