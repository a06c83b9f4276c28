//! A thread that waits for an element. Its waker unparks it; after an unpark without reason, the thread only looks once
//! more.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::next::Next;
use super::state::Look;
use super::wait::Wait;
use crate::Monotonic;
use crate::sync::thread;

/// Waits on a clock that runs by itself. The timeout of the park is the alarm, so the timer's thread is not needed.
pub(super) fn by_itself<T>(mut wait: Wait<'_, T>) -> Option<T> {
    let waker = unparker();
    loop {
        match wait.look(&waker) {
            Look::Taken(value) => return Some(value),
            Look::End => return None,
            Look::Wait(None | Some(Monotonic::MAX)) => thread::park(),
            Look::Wait(Some(until)) => thread::park_timeout(until.saturating_since(wait.shared.now())),
        }
    }
}

/// Waits on a clock that is moved by hand. The system does not know that clock, so the timer wakes the thread.
pub(super) fn by_timer<T>(next: Next<'_, T>) -> Option<T> {
    let waker = unparker();
    let mut next = pin!(next);
    loop {
        match next.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(taken) => return taken,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn unparker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}
