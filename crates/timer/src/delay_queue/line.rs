//! [`Line`]: who waits for an element, in order of arrival.
//!
//! Ground rules, under the queue's lock:
//! - Whoever stands first leads: it alone minds the head's deadline, and the others wait for their turn.
//! - A waker is there from when its owner looked at the queue until it is called. Who was called looks again or leaves, so it
//!   need not be called twice.

use std::collections::BTreeMap;
use std::task::Waker;

use super::called::Called;

/// What somebody who waits would like to hear of, besides an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// That the queue is empty.
    pub(super) empty: bool,
    /// That it stands first, even while there is no head: it waits by the timer, and is to notice when that is shut down.
    pub(super) first: bool,
}

struct Waiter {
    wish: Wish,
    /// None once it was called.
    waker: Option<Waker>,
}

/// Places in the line are numbered by arrival and never given twice.
#[derive(Default)]
pub(super) struct Line {
    standing: BTreeMap<u64, Waiter>,
    arrived: u64,
    /// How many wish to hear of an empty queue, so that most queues need not look for them.
    ending: usize,
}

impl Line {
    /// Stands at the end of the line, or where it stood, and swaps its waker for the one it had left. True if that is the front.
    pub(super) fn stand(&mut self, place: &mut Option<u64>, wish: Wish, waker: &mut Option<Waker>) -> bool {
        let place = *place.get_or_insert_with(|| {
            let arrived = self.arrived;
            self.arrived += 1;
            self.ending += usize::from(wish.empty);
            self.standing.insert(arrived, Waiter { wish, waker: None });
            arrived
        });
        let Some(waiter) = self.standing.get_mut(&place) else {
            panic!("place {place} is in use, but nobody stands there")
        };
        std::mem::swap(&mut waiter.waker, waker);
        self.standing.first_key_value().is_some_and(|(&first, _)| first == place)
    }

    /// Leaves the line, if it stands there. True if that was the front.
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

    /// Calls the one in front.
    pub(super) fn call_first(&mut self, called: &mut Called) {
        if let Some(mut first) = self.standing.first_entry() {
            first.get_mut().call(called);
        }
    }

    /// Calls the one in front if it wishes to know that it is.
    pub(super) fn call_first_by_wish(&mut self, called: &mut Called) {
        if let Some(mut first) = self.standing.first_entry()
            && first.get().wish.first
        {
            first.get_mut().call(called);
        }
    }

    /// Calls those who wish to know that the queue is empty.
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
