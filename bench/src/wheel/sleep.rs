//! A peer: tokio's own timer wheel, by one `Sleep` for each timer, on a paused clock.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use tokio::time::{Sleep, sleep_until};

use super::paused::Paused;
use super::subject::{Fired, Jump, Store, Subject};

/// A timer is a future that its owner keeps, and the owner knows what it is for.
#[derive(Debug)]
pub(crate) struct Owned {
    sleep: Pin<Box<Sleep>>,
    value: u64,
}

/// One waker for all timers: the least that can be done when one of them is due. A task for each of them costs more.
#[derive(Debug, Default)]
struct Bell {
    rung: AtomicU64,
    waiting: OnceLock<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.fetch_add(1, Ordering::Relaxed);
        if let Some(waiting) = self.waiting.get() {
            waiting.wake_by_ref();
        }
    }
}

/// The timers of a runtime.
#[derive(Debug)]
pub(crate) struct Sleeps {
    clock: Paused,
    bell: Arc<Bell>,
    waker: Waker,
    /// Timers that nobody will cancel, in the order in which they were given up.
    released: VecDeque<Owned>,
}

impl Sleeps {
    /// What has rung since the last call. The bell does not tell which.
    fn take_rung(&mut self) -> Fired {
        Fired { count: self.bell.rung.swap(0, Ordering::Relaxed), sum: 0 }
    }
}

impl Store for Sleeps {
    type Handle = Owned;

    fn new() -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        Self { clock: Paused::new(), bell, waker, released: VecDeque::new() }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Owned {
        let mut sleep = Box::pin(sleep_until(self.clock.instant(deadline)));
        // The first poll puts it into the wheel.
        let polled = sleep.as_mut().poll(&mut Context::from_waker(&self.waker));
        assert_eq!(polled, Poll::Pending, "the deadline is after now");
        Owned { sleep, value }
    }

    #[inline]
    fn cancel(&mut self, owned: Owned) -> u64 {
        owned.value
    }

    #[inline]
    fn replace(&mut self, owned: &mut Owned, deadline: u64, value: u64) -> u64 {
        let new = self.insert(deadline, value);
        self.cancel(std::mem::replace(owned, new))
    }

    #[inline]
    fn release(&mut self, owned: Owned) {
        if !owned.sleep.is_elapsed() {
            self.released.push_back(owned);
        }
    }
}

impl Subject for Sleeps {
    const KNOWS_VALUES: bool = false;

    #[inline]
    fn reschedule(&mut self, owned: &mut Owned, deadline: u64) {
        owned.sleep.as_mut().reset(self.clock.instant(deadline));
        let polled = owned.sleep.as_mut().poll(&mut Context::from_waker(&self.waker));
        assert_eq!(polled, Poll::Pending, "the deadline is after now");
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        self.clock.go_to(now, std::future::ready(()));
        while self.released.front().is_some_and(|owned| owned.sleep.is_elapsed()) {
            self.released.pop_front();
        }
        self.take_rung()
    }

    fn next(&mut self) -> Jump {
        let bell = Arc::clone(&self.bell);
        let ((), stops) = self.clock.wait_for(poll_fn(|context| {
            bell.waiting.get_or_init(|| context.waker().clone());
            if bell.rung.load(Ordering::Relaxed) == 0 { Poll::Pending } else { Poll::Ready(()) }
        }));
        Jump { fired: self.take_rung(), stops }
    }
}
