//! [`Line`]: the waiters for an element, in order of arrival.
//!
//! Ground rules, under the queue's lock:
//! - The first waiter in the line is the leader: it alone waits for the deadline of the head. The other waiters wait until the leader
//!   leaves.
//! - The line holds a waiter's waker from the time the waiter looked at the queue until the waker is called. A waiter whose waker was
//!   called looks again or leaves, so a second call is not needed.

use std::collections::BTreeMap;
use std::task::Waker;

use super::called::Called;

/// The events, other than a due element, for which a waiter wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The queue becomes empty.
    pub(super) empty: bool,
    /// The waiter becomes the first one while the queue has no head. Such a waiter waits by the timer, and has to notice when the timer is
    /// shut down.
    pub(super) first: bool,
}

struct Waiter {
    wish: Wish,
    /// The waiter's waker; `None` after it was called.
    waker: Option<Waker>,
}

/// The waiters, by their place. Places are numbered by arrival, and no number is used twice.
#[derive(Default)]
pub(super) struct Line {
    standing: BTreeMap<u64, Waiter>,
    arrived: u64,
    /// The number of waiters that want to be woken when the queue is empty. If it is 0, no search is needed.
    ending: usize,
}

impl Line {
    /// Adds the waiter at the end of the line, or keeps its place if it has one, and swaps `waker` with the waker in that place. True if
    /// the place is the first one.
    pub(super) fn stand(&mut self, place: &mut Option<u64>, wish: Wish, waker: &mut Option<Waker>) -> bool {
        let place = *place.get_or_insert_with(|| {
            let arrived = self.arrived;
            self.arrived += 1;
            self.ending += usize::from(wish.empty);
            self.standing.insert(arrived, Waiter { wish, waker: None });
            arrived
        });
        let Some(waiter) = self.standing.get_mut(&place) else {
            panic!("place {place} is in use, but it has no waiter")
        };
        std::mem::swap(&mut waiter.waker, waker);
        self.standing.first_key_value().is_some_and(|(&first, _)| first == place)
    }

    /// Removes the waiter from the line, if it is there. True if it was the first one.
    pub(super) fn leave(&mut self, place: &mut Option<u64>, called: &mut Called) -> bool {
        let Some(place) = place.take() else { return false };
        let first = self.standing.first_key_value().is_some_and(|(&first, _)| first == place);
        if let Some(waiter) = self.standing.remove(&place) {
            self.ending -= usize::from(waiter.wish.empty);
            if let Some(waker) = waiter.waker {
                called.forget(waker);
            }
        }
        first
    }

    /// Calls the waker of the first waiter.
    pub(super) fn call_first(&mut self, called: &mut Called) {
        if let Some(mut first) = self.standing.first_entry() {
            first.get_mut().call(called);
        }
    }

    /// Calls the waker of the first waiter, if this waiter wants to be told that it is the first.
    pub(super) fn call_first_by_wish(&mut self, called: &mut Called) {
        if let Some(mut first) = self.standing.first_entry()
            && first.get().wish.first
        {
            first.get_mut().call(called);
        }
    }

    /// Calls the wakers of the waiters that want to be told that the queue is empty.
    pub(super) fn call_ending(&mut self, called: &mut Called) {
        if self.ending > 0 {
            self.standing
                .values_mut()
                .filter(|waiter| waiter.wish.empty)
                .for_each(|waiter| waiter.call(called));
        }
    }

    pub(super) fn call_all(&mut self, called: &mut Called) {
        self.standing.values_mut().for_each(|waiter| waiter.call(called));
    }
}

impl Waiter {
    fn call(&mut self, called: &mut Called) {
        if let Some(waker) = self.waker.take() {
            called.wake(waker);
        }
    }
}
