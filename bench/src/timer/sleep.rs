//! A peer: tokio's timer, by one boxed `Sleep` for each timer, on a runtime of several threads.
//!
//! A `Sleep` is polled once, which registers it, and dropped to cancel it. Its waker does the little there is to do, on the
//! thread that drives the runtime's time. That is less than any task needs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tickwheel::Monotonic;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Instant, Sleep};

use super::stamps::{Epoch, Stamps};
use super::subject::{Producer, Service, Stamping};

/// A runtime with its usual number of threads.
#[derive(Debug)]
pub(crate) struct Sleeps {
    runtime: Runtime,
    epoch: Epoch,
}

/// A thread inside of it.
#[derive(Debug)]
pub(crate) struct Sleeper<'a> {
    epoch: Epoch,
    /// Sleeps that nobody cancels.
    kept: Vec<Pin<Box<Sleep>>>,
    _entered: EnterGuard<'a>,
}

/// What a waker does here.
struct Bell {
    stamps: Arc<Stamps>,
    index: usize,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.stamps.stamp(self.index);
    }
}

impl Service for Sleeps {
    type Producer<'a> = Sleeper<'a>;

    fn start(epoch: Epoch) -> Self {
        let runtime = Builder::new_multi_thread().enable_time().build().expect("a runtime");
        Self { runtime, epoch }
    }

    fn producer(&self, _: u32) -> Sleeper<'_> {
        Sleeper { epoch: self.epoch, kept: Vec::new(), _entered: self.runtime.enter() }
    }

    fn settle(&self) {
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
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
        let mut sleep = Box::pin(tokio::time::sleep_until(Instant::from_std(self.epoch.instant(due))));
        let waker = Waker::from(Arc::new(Bell { stamps: Arc::clone(stamps), index }));
        if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            stamps.stamp(index);
            return;
        }
        if self.kept.len() == self.kept.capacity() {
            self.kept.retain(|sleep| !sleep.is_elapsed());
        }
        self.kept.push(sleep);
    }
}
