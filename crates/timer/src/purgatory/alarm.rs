//! [`Alarm`]: what the timer keeps for an operation.

use std::hash::Hash;
use std::sync::Arc;

use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;

/// Expires its operation when it is dropped, wherever that is: in the body of the timeout, or because the timer
/// shut down and the body will never run. An operation that has ended by then takes no notice.
pub(super) struct Alarm<K: Hash + Eq, O: Operation>(Arc<Delayed<K, O>>);

impl<K: Hash + Eq, O: Operation> Alarm<K, O> {
    pub(super) fn new(delayed: Arc<Delayed<K, O>>) -> Self {
        Self(delayed)
    }

    /// The time has come.
    pub(super) fn ring(self) {}
}

impl<K: Hash + Eq, O: Operation> Drop for Alarm<K, O> {
    fn drop(&mut self) {
        let mut panics = Panics::default();
        self.0.expire(&mut panics);
        panics.resume();
    }
}
