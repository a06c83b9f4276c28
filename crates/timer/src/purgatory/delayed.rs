//! [`Delayed`]: an operation that waits.
//!
//! Ground rules:
//! - `state` decides which thread may call the operation, and how it ends. The thread that ends the operation updates the gauge, the keys
//!   and the timeout, and then calls the methods of the operation.
//! - The submission stores `timeout` while it owns the operation, and the thread that ends the operation takes it out. The lock of
//!   `timeout` is held for these accesses only.
//! - No lock is held while a method of the operation runs.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use super::completions::complete;
use super::handover::{self, hand_over};
use super::operation::Operation;
use super::panics::Panics;
use super::room::Room;
use super::state::{End, Settled, State};
use crate::Timeout;
use crate::sync::{Mutex, lock};
use crate::timer::Core;

/// An operation with its keys and its timeout. The lists of its keys, its alarm in the timer, and its handles refer to it.
pub(super) struct Delayed<K, O> {
    operation: Arc<O>,
    state: State,
    /// The number of the submission; the lists are ordered by this number.
    number: u64,
    keys: Box<[K]>,
    timeout: Mutex<Option<Timeout>>,
    /// Weak, because an operation may outlive the purgatory in which its keys are checked.
    room: Weak<Room<K, O>>,
    /// The timer whose executor takes looks that are handed over. Weak, because the timer refers to the operation.
    core: Weak<Core>,
}

impl<K: Hash + Eq + Send + Sync + 'static, O: Operation> Delayed<K, O> {
    /// A new operation, owned by the caller. The caller has to settle it.
    pub(super) fn new(operation: Arc<O>, number: u64, keys: Box<[K]>, room: &Arc<Room<K, O>>) -> Self {
        let (room, core) = (Arc::downgrade(room), Arc::downgrade(room.timer().core()));
        Self { operation, state: State::running(), number, keys, timeout: Mutex::new(None), room, core }
    }

    pub(super) fn core(&self) -> &Weak<Core> {
        &self.core
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

    /// Stores the timeout until the operation ends.
    pub(super) fn arm(&self, timeout: Timeout) {
        *lock(&self.timeout) = Some(timeout);
    }

    /// Tries the operation; if it has an owner, asks the owner to try it again. Returns whether this call completed it.
    pub(super) fn attempt(self: &Arc<Self>, panics: &mut Panics) -> bool {
        self.state.begin() && self.look_and_settle(panics) == Settled::Completed
    }

    /// Tries the operation if it is owed a look. Ends the handover.
    pub(super) fn take_over(self: &Arc<Self>, panics: &mut Panics) {
        if self.state.take_over() {
            self.look_and_settle(panics);
        }
    }

    /// Makes an attempt as the owner.
    fn look_and_settle(self: &Arc<Self>, panics: &mut Panics) -> Settled {
        let said = self.look(panics);
        self.settle(said, panics)
    }

    /// Calls `try_complete` once, as the owner.
    pub(super) fn look(&self, panics: &mut Panics) -> bool {
        panics.catch(|| self.operation.try_complete()).unwrap_or(false)
    }

    /// Ends the owner's attempt: handles the notes that other threads left meanwhile, and returns the final result, which is never
    /// [`Again`](Settled::Again). The owner looks again once. It leaves a further look to the executor, unless it is handing one over.
    pub(super) fn settle(self: &Arc<Self>, mut said: bool, panics: &mut Panics) -> Settled {
        let mut leaves = false;
        loop {
            let settled = self.state.settle(said, leaves);
            match settled {
                Settled::Completed | Settled::Forced => self.finish(false, panics),
                Settled::Expired => self.finish(true, panics),
                Settled::Again => {
                    said = self.look(panics);
                    leaves = !handover::is_within();
                    continue;
                }
                Settled::HandOver => hand_over(self),
                Settled::Idle => {}
                // The operation may have been put on a key, or its timeout may have been set, after it was cancelled.
                Settled::Cancelled => self.detach(),
            }
            return settled;
        }
    }

    /// Completes the operation whatever its condition is. Returns whether this call completed it.
    pub(super) fn force(&self, panics: &mut Panics) -> bool {
        let end = self.state.force();
        if end == End::Now {
            self.finish(false, panics);
        }
        end != End::Late
    }

    /// Expires the operation. Returns whether this call expired it.
    pub(super) fn expire(self: &Arc<Self>, panics: &mut Panics) -> bool {
        match self.state.expire() {
            End::Now => {
                self.finish(true, panics);
                true
            }
            End::Look => self.look_and_settle(panics) == Settled::Expired,
            End::Noted | End::Late => false,
        }
    }

    /// Cancels the operation. Returns whether this call cancelled it.
    pub(super) fn cancel(&self) -> bool {
        let cancelled = self.state.cancel();
        if cancelled {
            self.leave();
        }
        cancelled
    }

    /// Withdraws the operation, also from keys on which it was put after another thread cancelled it. Returns whether this call ended it.
    pub(super) fn withdraw(&self) -> bool {
        let withdrawn = self.cancel();
        if !withdrawn {
            self.detach();
        }
        withdrawn
    }

    fn finish(&self, expired: bool, panics: &mut Panics) {
        self.leave();
        complete(&self.operation, expired, panics);
    }

    /// Lowers the gauge, and removes the ended operation from its keys and the timer.
    fn leave(&self) {
        if let Some(room) = self.room.upgrade() {
            room.count_ended();
        }
        self.detach();
    }

    /// Removes the operation from its keys and from the timer, if it is there.
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
