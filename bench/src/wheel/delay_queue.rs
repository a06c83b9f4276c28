//! A peer: tokio-util's `DelayQueue`, on a paused clock.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use super::paused::Paused;
use super::subject::{Fired, Jump, Store, Subject};

/// The queue and the runtime that its one `Sleep` needs.
#[derive(Debug)]
pub(crate) struct Delays {
    queue: DelayQueue<u64>,
    clock: Paused,
}

/// Takes out what is ready.
fn take_ready(queue: &mut DelayQueue<u64>, context: &mut Context<'_>) -> Fired {
    let mut fired = Fired::default();
    while let Poll::Ready(Some(expired)) = queue.poll_expired(context) {
        fired.one(expired.into_inner());
    }
    fired
}

impl Store for Delays {
    type Handle = Key;

    fn new() -> Self {
        let clock = Paused::new();
        Self { queue: DelayQueue::new(), clock }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Key {
        self.queue.insert_at(value, self.clock.instant(deadline))
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> u64 {
        self.queue.remove(&key).into_inner()
    }

    #[inline]
    fn replace(&mut self, key: &mut Key, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*key);
        *key = self.insert(deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: Key) {}
}

impl Subject for Delays {
    #[inline]
    fn reschedule(&mut self, key: &mut Key, deadline: u64) {
        self.queue.reset_at(key, self.clock.instant(deadline));
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        let queue = &mut self.queue;
        self.clock.go_to(now, poll_fn(|context| Poll::Ready(take_ready(queue, context))))
    }

    fn next(&mut self) -> Jump {
        let queue = &mut self.queue;
        let (fired, stops) = self.clock.wait_for(poll_fn(|context| match take_ready(queue, context) {
            Fired { count: 0, .. } => Poll::Pending,
            fired => Poll::Ready(fired),
        }));
        Jump { fired, stops }
    }
}
