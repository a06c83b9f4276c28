//! [`Wait`]: one waiter for an element.

use std::task::Waker;

use super::line::Wish;
use super::shared::Shared;
use super::state::Look;
use crate::Monotonic;

/// Leaves the line when it is dropped; the next waiter then moves up.
pub(super) struct Wait<'a, T> {
    pub(super) shared: &'a Shared<T>,
    wish: Wish,
    limit: Monotonic,
    place: Option<u64>,
}

impl<'a, T> Wait<'a, T> {
    /// A wait for an element, until `limit`.
    pub(super) fn new(shared: &'a Shared<T>, wish: Wish, limit: Monotonic) -> Self {
        Self { shared, wish, limit, place: None }
    }

    /// Takes a due element, or takes a place in the line to be woken by `waker`.
    pub(super) fn look(&mut self, waker: &Waker) -> Look<T> {
        let mut waker = Some(waker.clone());
        let now = self.shared.now();
        let me = (&mut self.place, self.wish, self.limit);
        self.shared.with(|state, called| state.look(me, now, &mut waker, called))
    }

    pub(super) fn leave(&mut self) {
        if self.place.is_some() {
            self.shared.with(|state, called| state.leave(&mut self.place, called));
        }
    }
}

impl<T> Drop for Wait<'_, T> {
    fn drop(&mut self) {
        self.leave();
    }
}
