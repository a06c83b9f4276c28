//! [`Alarm`]: the timer's reference to an operation.

use std::hash::Hash;
use std::sync::Arc;

use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;

/// Expires its operation when it is dropped. That happens in the body of the timeout, or when the timer shuts down
/// and the body will never run. An operation that has already ended is not affected.
pub(super) struct Alarm<K: Hash + Eq, O: Operation>(Arc<Delayed<K, O>>);

impl<K: Hash + Eq, O: Operation> Alarm<K, O> {
    pub(super) fn new(delayed: Arc<Delayed<K, O>>) -> Self {
        Self(delayed)
    }

    /// The timeout ran; the drop does the rest.
    pub(super) fn ring(self) {}
}

impl<K: Hash + Eq, O: Operation> Drop for Alarm<K, O> {
    fn drop(&mut self) {
        let mut panics = Panics::default();
        self.0.expire(&mut panics);
        panics.resume();
    }
}
