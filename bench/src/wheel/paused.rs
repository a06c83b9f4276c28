//! [`Paused`]: a tokio runtime whose clock stands still until it is told to go.

use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::Instant;

/// A runtime on this thread, entered for as long as this lives, so that a timer can be made without asking for the
/// runtime each time.
#[derive(Debug)]
pub(crate) struct Paused {
    runtime: &'static Runtime,
    start: Instant,
    now: u64,
    _entered: EnterGuard<'static>,
}

impl Paused {
    /// At tick 0. The runtime is never freed: one for each sample, and a sample has its own process.
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime: &'static Runtime = Box::leak(Box::new(runtime.expect("a runtime of one thread")));
        let entered = runtime.enter();
        Self { runtime, start: Instant::now(), now: 0, _entered: entered }
    }

    /// The instant of a tick.
    #[inline]
    pub(crate) fn instant(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }

    /// Lets the clock go on to `now`, and then does something. Without tokio's budget for one poll, which would make a
    /// loop over ready timers stop halfway.
    #[inline]
    pub(crate) fn go_to<T>(&mut self, now: u64, then: impl Future<Output = T>) -> T {
        let step = Duration::from_millis(now - self.now);
        self.now = now;
        self.runtime.block_on(tokio::task::unconstrained(async move {
            tokio::time::advance(step).await;
            then.await
        }))
    }

    /// Waits for something. With nothing else to do the clock jumps. Returns also how often the thread would have slept.
    pub(crate) fn wait_for<T>(&mut self, future: impl Future<Output = T>) -> (T, u64) {
        let metrics = self.runtime.metrics();
        let before = metrics.worker_park_count(0);
        let output = self.runtime.block_on(tokio::task::unconstrained(future));
        let passed = Instant::now() - self.start;
        self.now = u64::try_from(passed.as_millis()).expect("less than an age");
        (output, metrics.worker_park_count(0) - before)
    }
}
