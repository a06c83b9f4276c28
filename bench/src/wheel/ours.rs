//! Ours: [`Wheel`].

use tickwheel_core::{Handle, TimerQueue, Wheel};

use super::subject::{Fired, Jump, Store, Subject, by_next_wake};

/// The wheel to use.
#[derive(Debug)]
pub(crate) struct Ours(Wheel<u64>);

impl Store for Ours {
    type Handle = Handle;

    fn new() -> Self {
        Self(Wheel::new(0))
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Handle {
        self.0.insert(deadline, value).expect("the deadline is after now")
    }

    #[inline]
    fn cancel(&mut self, handle: Handle) -> u64 {
        self.0.cancel(handle).expect("it is pending")
    }

    #[inline]
    fn replace(&mut self, handle: &mut Handle, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*handle);
        *handle = self.insert(deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: Handle) {}
}

impl Subject for Ours {
    #[inline]
    fn reschedule(&mut self, handle: &mut Handle, deadline: u64) {
        *handle = self.0.reschedule(*handle, deadline).expect("it is pending");
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        let mut fired = Fired::default();
        self.0.advance_with(now, |_, value| fired.one(value));
        fired
    }

    fn next(&mut self) -> Jump {
        by_next_wake(self, |this| this.0.next_wake())
    }

    fn heap_bytes(&self) -> Option<u64> {
        Some(self.0.heap_bytes() as u64)
    }
}
