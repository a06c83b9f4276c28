//! [`State`]: elements, their waiters, and the rules by which they meet.
//!
//! Ground rules. While there is a waiter and a head, one of two things holds for the first waiter: it has been called
//! and has not looked since, or it waits until no later than the head's deadline. Three events could break this rule,
//! and each calls the first waiter:
//! - the head becomes earlier: [`State::change`];
//! - another waiter becomes the first, because the first one left for any reason: [`State::leave`];
//! - the queue is closed: [`State::close`].
//!
//! A head that becomes later needs no call; the first waiter then wakes once without need.
//!
//! An element leaves only here, under the lock, to the caller that returns it. So no element is lost by a future that
//! is dropped or a thread that gives up, wherever it was.

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
    /// This waiter will get none.
    End,
    /// Not yet: look again when called, or at this instant.
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

    /// Takes the head if it is due at `now`. Otherwise, if there is anything to wait for until `limit`, takes a place
    /// in the line with `waker`, and returns in it the waker to be dropped without the lock.
    pub(super) fn look(
        &mut self,
        (place, wish, limit): (&mut Option<u64>, Wish, Monotonic),
        now: Monotonic,
        waker: &mut Option<Waker>,
        called: &mut Called,
    ) -> Look<T> {
        let head = self.elements.head();
        if head.is_some_and(|head| head.has_come(now)) {
            // Leave the line first, or the waiter would call itself.
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

    /// Leaves the line, if it has a place there, and passes the lead on.
    pub(super) fn leave(&mut self, place: &mut Option<u64>, called: &mut Called) {
        let first = self.line.leave(place, called);
        self.pass_on(first, called);
    }

    /// Closes the queue and ends every wait. The remaining elements go to the caller.
    pub(super) fn close(&mut self, called: &mut Called) -> impl Iterator<Item = T> + use<T> {
        self.closed = true;
        self.line.call_all(called);
        self.elements.take_all()
    }

    /// Calls the new first waiter, if `first` says that the old one has left.
    fn pass_on(&mut self, first: bool, called: &mut Called) {
        if first && !self.elements.is_empty() {
            self.line.call_first(called);
        } else if first {
            self.line.call_first_by_wish(called);
        }
    }
}
