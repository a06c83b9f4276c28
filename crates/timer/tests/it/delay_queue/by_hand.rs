//! A queue on a clock that the test moves, and a future that the test polls.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tickwheel::{Clock, DelayQueue, ManualClock, Monotonic, Next, Timer, TimerBuilder};

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn at(ms: u64) -> Monotonic {
    Monotonic::from_nanos(ms * 1_000_000)
}

/// A queue, and its clock.
pub(crate) struct ByHand<T> {
    pub(crate) clock: ManualClock,
    pub(crate) timer: Timer,
    pub(crate) queue: DelayQueue<T>,
}

impl<T> ByHand<T> {
    pub(crate) fn new() -> Self {
        Self::of(|builder| builder)
    }

    pub(crate) fn of(set_up: impl FnOnce(TimerBuilder) -> TimerBuilder) -> Self {
        Self::with(ManualClock::new(), set_up)
    }

    pub(crate) fn starting_at(start: Monotonic) -> Self {
        Self::with(ManualClock::starting_at(start), |builder| builder)
    }

    fn with(clock: ManualClock, set_up: impl FnOnce(TimerBuilder) -> TimerBuilder) -> Self {
        let timer = set_up(Timer::builder()).clock(clock.clone()).build().expect("a timer");
        let queue = DelayQueue::new(&timer);
        Self { clock, timer, queue }
    }

    pub(crate) fn advance_to(&self, ms: u64) {
        let ahead = at(ms).checked_since(self.clock.now()).expect("time goes forward");
        self.clock.advance(ahead);
    }
}

/// A future of the queue that the test polls by hand.
pub(crate) struct Hand<'a, T> {
    next: Next<'a, T>,
    woken: Arc<Flag>,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<'a, T> Hand<'a, T> {
    pub(crate) fn new(next: Next<'a, T>) -> Self {
        Self { next, woken: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<Option<T>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(&mut self.next).poll(&mut Context::from_waker(&waker))
    }

    /// Polled and found waiting.
    pub(crate) fn waiting(next: Next<'a, T>) -> Self {
        let mut hand = Self::new(next);
        assert!(hand.poll().is_pending(), "it is to wait");
        assert!(!hand.woken(), "it waits, and has woken itself");
        hand
    }

    /// Moves the future to another task. The second result tells whether the first task is woken.
    pub(crate) fn moved(self) -> (Self, Woken) {
        let left = Woken(Arc::clone(&self.woken));
        (Self { next: self.next, woken: Arc::default() }, left)
    }

    /// Whether the task was woken since the last call of this method.
    pub(crate) fn woken(&self) -> bool {
        self.woken.0.swap(false, Ordering::SeqCst)
    }
}

/// A task that does not have its future any more. It tells whether the task was woken.
pub(crate) struct Woken(Arc<Flag>);

impl Woken {
    pub(crate) fn woken(&self) -> bool {
        self.0.0.load(Ordering::SeqCst)
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Waits for something that another thread is about to do.
pub(crate) fn until(happened: impl Fn() -> bool) {
    while !happened() {
        thread::yield_now();
    }
}
