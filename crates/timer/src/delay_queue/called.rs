//! [`Called`]: those whose turn it is.

use std::task::Waker;

use crate::timer::guarded;

/// Wakers on their way out of the lock. They are somebody else's code, so they are collected while it is held, and woken or
/// dropped when it is free.
#[derive(Default)]
pub(super) struct Called {
    wake: Vec<Waker>,
    forget: Vec<Waker>,
}

impl Called {
    pub(super) fn wake(&mut self, waker: Waker) {
        self.wake.push(waker);
    }

    /// For one that nobody needs any more, since dropping it runs code, too.
    pub(super) fn forget(&mut self, waker: Waker) {
        self.forget.push(waker);
    }

    /// A waker that panics is as good as woken: those behind it are waiting, and whoever called may hold an element.
    pub(super) fn deliver(self) {
        for waker in self.wake {
            guarded(|| waker.wake());
        }
        for waker in self.forget {
            guarded(|| drop(waker));
        }
    }
}
