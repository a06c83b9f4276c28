//! [`Delayed`]: an operation that waits.
//!
//! Ground rules:
//! - `state` decides who may call the operation, and how it ends. Whoever ends it does what follows: the gauge, the
//!   keys, the timeout, then the operation's own methods.
//! - `timeout` is put in by the submit, while it owns the operation, and taken out by whoever ends it. The lock
//!   is held for that only.
//! - No lock is held while a method of the operation runs.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use super::operation::Operation;
use super::panics::Panics;
use super::room::Room;
use super::state::{End, Settled, State};
use crate::Timeout;
use crate::sync::{Mutex, lock};

/// An operation with its keys and its timeout. The lists of its keys have it, its alarm in the timer, and handles.
pub(super) struct Delayed<K, O> {
    operation: Arc<O>,
    state: State,
    /// The number of its submission, by which lists are ordered.
    number: u64,
    keys: Box<[K]>,
    timeout: Mutex<Option<Timeout>>,
    /// Weak: an operation may wait longer than anybody can check its keys.
    room: Weak<Room<K, O>>,
}

impl<K: Hash + Eq, O: Operation> Delayed<K, O> {
    /// Owned by the caller, who has to settle it.
    pub(super) fn new(operation: Arc<O>, number: u64, keys: Box<[K]>, room: Weak<Room<K, O>>) -> Self {
        Self { operation, state: State::running(), number, keys, timeout: Mutex::new(None), room }
    }

    pub(super) fn operation(&self) -> &Arc<O> {
        &self.operation
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn keys(&self) -> &[K] {
        &self.keys
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state.is_complete()
    }

    /// Keeps the timeout, for whoever ends the operation.
    pub(super) fn arm(&self, timeout: Timeout) {
        *lock(&self.timeout) = Some(timeout);
    }

    /// Tries it, or leaves that to its owner. Whether this attempt completed it.
    pub(super) fn attempt(&self, panics: &mut Panics) -> bool {
        self.state.begin() && {
            let said = self.look(panics);
            self.settle(said, panics) == Settled::Completed
        }
    }

    /// The owner's question.
    pub(super) fn look(&self, panics: &mut Panics) -> bool {
        panics.catch(|| self.operation.try_complete()).unwrap_or(false)
    }

    /// The owner's attempt is over; sees to whatever was asked for meanwhile, and returns what came of it in the end:
    /// never [`Again`](Settled::Again).
    pub(super) fn settle(&self, mut said: bool, panics: &mut Panics) -> Settled {
        loop {
            let settled = self.state.settle(said);
            match settled {
                Settled::Completed | Settled::Forced => self.finish(false, panics),
                Settled::Expired => self.finish(true, panics),
                Settled::Again => {
                    said = self.look(panics);
                    continue;
                }
                Settled::Idle => {}
                // It may have been put on a key, or armed, after it was cancelled.
                Settled::Cancelled => self.detach(),
            }
            return settled;
        }
    }

    /// Completes it whatever its condition says. Whether this call was the one.
    pub(super) fn force(&self, panics: &mut Panics) -> bool {
        let end = self.state.force();
        if end == End::Now {
            self.finish(false, panics);
        }
        end != End::Late
    }

    /// Time is up. Whether this call answered it.
    pub(super) fn expire(&self, panics: &mut Panics) -> bool {
        let end = self.state.expire();
        if end == End::Now {
            self.finish(true, panics);
        }
        end == End::Now
    }

    /// Takes it away from everybody. Whether this call was the one.
    pub(super) fn cancel(&self) -> bool {
        let cancelled = self.state.cancel();
        if cancelled {
            self.leave();
        }
        cancelled
    }

    /// Takes it away, and off whatever it was put on since somebody else did. Whether this call was the one.
    pub(super) fn withdraw(&self) -> bool {
        let withdrawn = self.cancel();
        if !withdrawn {
            self.detach();
        }
        withdrawn
    }

    fn finish(&self, expired: bool, panics: &mut Panics) {
        self.leave();
        if expired {
            panics.catch(|| self.operation.on_expire());
        }
        panics.catch(|| self.operation.on_complete());
    }

    /// It has ended.
    fn leave(&self) {
        if let Some(room) = self.room.upgrade() {
            room.count_ended();
        }
        self.detach();
    }

    /// Takes it off its keys and out of the timer, as far as it is there.
    fn detach(&self) {
        if let Some(room) = self.room.upgrade() {
            room.unwatch(self);
        }
        let timeout = lock(&self.timeout).take();
        if let Some(timeout) = timeout {
            timeout.cancel();
        }
    }
}
