//! [`Called`]: the wakers to call.

use std::task::Waker;

use crate::timer::guarded;

/// Wakers to be called once the lock is released. A waker is the user's code, so wakers are collected while the lock is held, and called or
/// dropped afterwards.
#[derive(Default)]
pub(super) struct Called {
    wake: Vec<Waker>,
    forget: Vec<Waker>,
}

impl Called {
    pub(super) fn wake(&mut self, waker: Waker) {
        self.wake.push(waker);
    }

    /// Keeps a waker that is no longer needed, so that it is dropped without the lock: dropping it runs user code, too.
    pub(super) fn forget(&mut self, waker: Waker) {
        self.forget.push(waker);
    }

    /// Calls the wakers. A waker that panics counts as called: the other waiters must be woken, too, and the caller may hold an element.
    pub(super) fn deliver(self) {
        for waker in self.wake {
            guarded(|| waker.wake());
        }
        for waker in self.forget {
            guarded(|| drop(waker));
        }
    }
}
