//! [`State`]: elements, those who wait for them, and the rules by which they meet.
//!
//! Ground rules. While somebody stands in line and there is a head, the one in front has been called and has not looked
//! since, or it waits until no later than the head's deadline. Three events could break this, and each calls it:
//! - the head becomes earlier: [`State::change`];
//! - another one becomes the first, because the first left, whatever for: [`State::leave`];
//! - the queue is closed: [`State::close`].
//!
//! A head that becomes later needs no call; the one in front wakes for nothing, once.
//!
//! An element leaves only here, under the lock, into the hands of the one who returns it. So nothing is lost by a future that
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

/// What somebody found who looked for an element.
pub(super) enum Look<T> {
    Taken(T),
    /// There will be none for this one.
    End,
    /// Not yet: look again when called, or at this instant.
    Wait(Option<Monotonic>),
}

impl<T> State<T> {
    pub(super) fn new() -> Self {
        Self { elements: Elements::new(), line: Line::default(), closed: false }
    }

    /// Changes the elements, and calls whom the change concerns.
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

    /// Takes the head if it is due at `now`. Otherwise decides whether there is anything to wait for until `limit`, and if so
    /// stands in line with `waker`, which is swapped for one that is to be dropped without the lock.
    pub(super) fn look(
        &mut self,
        (place, wish, limit): (&mut Option<u64>, Wish, Monotonic),
        now: Monotonic,
        waker: &mut Option<Waker>,
        called: &mut Called,
    ) -> Look<T> {
        let head = self.elements.head();
        if head.is_some_and(|head| head.has_come(now)) {
            // Out of the line first, or it would call itself.
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

    /// Leaves the line, if it stands there, and passes on what it minded.
    pub(super) fn leave(&mut self, place: &mut Option<u64>, called: &mut Called) {
        let first = self.line.leave(place, called);
        self.pass_on(first, called);
    }

    /// Takes nothing more in, and ends every wait. What is left goes to the caller.
    pub(super) fn close(&mut self, called: &mut Called) -> impl Iterator<Item = T> + use<T> {
        self.closed = true;
        self.line.call_all(called);
        self.elements.take_all()
    }

    /// The one in front is another one now, if `first` has left.
    fn pass_on(&mut self, first: bool, called: &mut Called) {
        if first && !self.elements.is_empty() {
            self.line.call_first(called);
        } else if first {
            self.line.call_first_by_wish(called);
        }
    }
}
