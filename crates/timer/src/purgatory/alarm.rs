//! [`Alarm`]: the timer's reference to an operation.

use std::hash::Hash;
use std::sync::Arc;

use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;

/// Expires its operation when it is dropped. The body of the timeout drops it; if the timer shuts down, it is dropped without the body. An
/// operation that has already ended is not affected.
pub(super) struct Alarm<K, O>(Arc<Delayed<K, O>>)
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation;

impl<K: Hash + Eq + Send + Sync + 'static, O: Operation> Alarm<K, O> {
    pub(super) fn new(delayed: Arc<Delayed<K, O>>) -> Self {
        Self(delayed)
    }

    /// The body of the timeout. The drop of `self` expires the operation.
    pub(super) fn ring(self) {}
}

impl<K: Hash + Eq + Send + Sync + 'static, O: Operation> Drop for Alarm<K, O> {
    fn drop(&mut self) {
        let mut panics = Panics::default();
        self.0.expire(&mut panics);
        panics.resume();
    }
}
