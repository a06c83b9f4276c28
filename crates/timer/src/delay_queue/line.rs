//! [`Line`]: who waits for an element, in order of arrival.
//!
//! Ground rules, under the queue's lock:
//! - The first waiter in the line leads: it alone waits for the head's deadline, and the others wait for their turn.
//! - The line holds a waiter's waker from the waiter's last look at the queue until it is called. A waiter that was
//!   called looks again or leaves, so no second call is needed.

use std::collections::BTreeMap;
use std::task::Waker;

use super::called::Called;

/// The events, besides an element, that a waiter wants to be called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The queue becomes empty.
    pub(super) empty: bool,
    /// The waiter becomes the first, even while there is no head: it waits by the timer, and has to notice when that
    /// is shut down.
    pub(super) first: bool,
}

struct Waiter {
    wish: Wish,
    /// `None` once it was called.
    waker: Option<Waker>,
}

/// The waiters, by their place. Places are numbered by arrival and never given twice.
#[derive(Default)]
pub(super) struct Line {
    standing: BTreeMap<u64, Waiter>,
    arrived: u64,
    /// The number of waiters that wish to hear of an empty queue; with 0 no search is needed.
    ending: usize,
}

impl Line {
    /// Takes a place at the end of the line, or keeps the one it has, and swaps `waker` with the waker of that place.
    /// True if the place is the first.
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

    /// Leaves the line, if it has a place there. True if that was the first place.
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

    /// Calls the first waiter.
    pub(super) fn call_first(&mut self, called: &mut Called) {
        if let Some(mut first) = self.standing.first_entry() {
            first.get_mut().call(called);
        }
    }

    /// Calls the first waiter if it wishes to know that it is the first.
    pub(super) fn call_first_by_wish(&mut self, called: &mut Called) {
        if let Some(mut first) = self.standing.first_entry()
            && first.get().wish.first
        {
            first.get_mut().call(called);
        }
    }

    /// Calls the waiters that wish to know that the queue is empty.
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
