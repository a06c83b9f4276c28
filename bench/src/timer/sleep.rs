//! A peer: tokio's timer, by one boxed `Sleep` for each timer, on a runtime of several threads.
//!
//! A `Sleep` is polled once, which registers it, and dropped to cancel it. Its waker does the little there is to do, on the
//! thread that drives the runtime's time. That is less than any task needs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tickwheel::{Monotonic, SystemClock};
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Instant, Sleep};

use super::stamps::{Bell, Stamps};
use super::subject::{Producer, Service, Stamping};

/// A runtime with its usual number of threads.
#[derive(Debug)]
pub(crate) struct Sleeps {
    runtime: Runtime,
}

/// A thread inside of it.
#[derive(Debug)]
pub(crate) struct Sleeper<'a> {
    /// Sleeps that nobody cancels, and what they stamp.
    kept: Vec<(usize, Pin<Box<Sleep>>)>,
    _entered: EnterGuard<'a>,
}

impl Service for Sleeps {
    type Producer<'a> = Sleeper<'a>;

    fn start(_: Option<SystemClock>) -> Self {
        let runtime = Builder::new_multi_thread().enable_time().build().expect("a runtime");
        Self { runtime }
    }

    fn producer(&self, _: u32) -> Sleeper<'_> {
        Sleeper { kept: Vec::new(), _entered: self.runtime.enter() }
    }
}

impl Producer for Sleeper<'_> {
    type Claim = Pin<Box<Sleep>>;

    #[inline]
    fn schedule(&mut self, delay: Duration) -> Pin<Box<Sleep>> {
        let mut sleep = Box::pin(tokio::time::sleep(delay));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Pending, "the deadline is after now");
        sleep
    }

    #[inline]
    fn cancel(&mut self, _: Pin<Box<Sleep>>) -> bool {
        true
    }
}

impl Stamping for Sleeper<'_> {
    #[inline]
    fn stamp_at(&mut self, due: Monotonic, stamps: &Arc<Stamps>, index: usize) {
        let mut sleep = Box::pin(tokio::time::sleep_until(Instant::from_std(stamps.epoch().instant(due))));
        let waker = Waker::from(Arc::new(Bell::new(stamps, index)));
        if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            stamps.stamp(index);
            return;
        }
        if self.kept.len() == self.kept.capacity() {
            self.kept.retain(|(index, _)| !stamps.has_fired(*index));
        }
        self.kept.push((index, sleep));
    }
}
