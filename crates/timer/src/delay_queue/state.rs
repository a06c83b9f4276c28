//! [`State`]: elements, waiters, and the rules by which a waiter gets an element.
//!
//! Ground rules. If there is a waiter and a head, one of two things is true for the first waiter: its waker has been called and it has not
//! looked since, or it waits at most until the head's deadline. Three events could break this rule; after each of them the first waiter is
//! called:
//! - the head becomes earlier: [`State::change`];
//! - another waiter becomes the first, because the first one left for any reason: [`State::leave`];
//! - the queue is closed: [`State::close`].
//!
//! A head that becomes later needs no call; the first waiter then wakes once without an element.
//!
//! An element is removed only here, under the lock, by the caller that returns it. So an element is never lost when a future is dropped or
//! a thread gives up.

use std::task::Waker;

use super::called::Called;
use super::elements::Elements;
use super::line::{Line, Wish};
use crate::Monotonic;

pub(super) struct State<T> {
    pub(super) elements: Elements<T>,
    pub(super) line: Line,
    pub(super) closed: bool,
}

/// The result of a look for an element.
pub(super) enum Look<T> {
    Taken(T),
    /// The wait has ended without an element.
    End,
    /// No element is due: look again when the waker is called, or at this reading.
    Wait(Option<Monotonic>),
}

impl<T> State<T> {
    pub(super) fn new() -> Self {
        Self { elements: Elements::new(), line: Line::default(), closed: false }
    }

    /// Changes the elements, and calls the waiters that the change concerns.
    pub(super) fn change<R>(&mut self, called: &mut Called, change: impl FnOnce(&mut Elements<T>) -> R) -> R {
        let before = self.elements.head();
        let result = change(&mut self.elements);
        match (before, self.elements.head()) {
            (Some(_), None) => self.line.call_ending(called),
            (None, Some(_)) => self.line.call_first(called),
            (Some(before), Some(after)) if after < before => self.line.call_first(called),
            (Some(_), Some(_)) | (None, None) => (),
        }
        result
    }

    /// Takes the head if it is due at `now`. Otherwise, if the wait is not over, puts the waiter with `waker` into the line. Then `waker`
    /// has the old waker, which the caller has to drop without the lock.
    pub(super) fn look(
        &mut self,
        (place, wish, limit): (&mut Option<u64>, Wish, Monotonic),
        now: Monotonic,
        waker: &mut Option<Waker>,
        called: &mut Called,
    ) -> Look<T> {
        let head = self.elements.head();
        if head.is_some_and(|head| head.has_come(now)) {
            // The waiter leaves the line first, because otherwise it would call itself.
            let first = self.line.leave(place, called);
            let taken = self.change(called, |elements| elements.take_due(now));
            self.pass_on(first, called);
            return taken.map_or(Look::End, Look::Taken);
        }
        if self.closed || limit.has_come(now) || (wish.empty && head.is_none()) {
            self.leave(place, called);
            return Look::End;
        }
        let first = self.line.stand(place, wish, waker);
        let until = if first { head.unwrap_or(Monotonic::MAX).min(limit) } else { limit };
        Look::Wait((first || until < Monotonic::MAX).then_some(until))
    }

    /// Removes the waiter from the line, if it is there. If it was the first one, the next waiter becomes the leader.
    pub(super) fn leave(&mut self, place: &mut Option<u64>, called: &mut Called) {
        let first = self.line.leave(place, called);
        self.pass_on(first, called);
    }

    /// Closes the queue and ends every wait. Returns the remaining elements.
    pub(super) fn close(&mut self, called: &mut Called) -> impl Iterator<Item = T> + use<T> {
        self.closed = true;
        self.line.call_all(called);
        self.elements.take_all()
    }

    /// Calls the new first waiter if the old one has left, which `first` says.
    fn pass_on(&mut self, first: bool, called: &mut Called) {
        if first && !self.elements.is_empty() {
            self.line.call_first(called);
        } else if first {
            self.line.call_first_by_wish(called);
        }
    }
}
