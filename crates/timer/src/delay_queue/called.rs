//! [`Called`]: the waiters to be woken.

use std::task::Waker;

use crate::timer::guarded;

/// Wakers to be called once the lock is free. A waker is the user's code, so it is collected while the lock is held,
/// and woken or dropped afterwards.
#[derive(Default)]
pub(super) struct Called {
    wake: Vec<Waker>,
    forget: Vec<Waker>,
}

impl Called {
    pub(super) fn wake(&mut self, waker: Waker) {
        self.wake.push(waker);
    }

    /// Keeps a waker that is no longer needed, since dropping it runs user code, too.
    pub(super) fn forget(&mut self, waker: Waker) {
        self.forget.push(waker);
    }

    /// A waker that panics counts as woken: the others are still waiting, and the caller may hold an element.
    pub(super) fn deliver(self) {
        for waker in self.wake {
            guarded(|| waker.wake());
        }
        for waker in self.forget {
            guarded(|| drop(waker));
        }
    }
}
