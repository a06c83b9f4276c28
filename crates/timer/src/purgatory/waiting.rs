//! [`Waiting`]: the caller's handle of an operation.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;

/// A waiting operation. Clones are handles of the same operation; dropping them changes nothing.
pub struct Waiting<O> {
    delayed: Arc<dyn Attended<O>>,
}

impl<O> Waiting<O> {
    pub(super) fn new<K: Hash + Eq + Send + Sync + 'static>(delayed: Arc<Delayed<K, O>>) -> Self
    where
        O: Operation,
    {
        Self { delayed }
    }

    /// The operation.
    #[must_use]
    pub fn operation(&self) -> &Arc<O> {
        self.delayed.operation()
    }

    /// Completes the operation, whatever its condition is. `true` for the one call that completed it.
    ///
    /// If another thread is trying the operation at this time, that thread calls `on_complete` as soon as the attempt is over, and this
    /// call does not wait for it. Within a completion on this thread, `on_complete` runs after that completion. Otherwise it has run on this thread
    /// when the call returns.
    ///
    /// # Panics
    /// If `on_complete` panics on this thread; the operation is complete in this case, too.
    pub fn complete(&self) -> bool {
        let mut panics = Panics::default();
        let completed = self.delayed.force(&mut panics);
        panics.resume();
        completed
    }

    /// Tries this operation again, and returns whether this call completed it. If another thread is trying it at this time, this call does
    /// not wait: that thread looks again, or leaves the look to the executor.
    ///
    /// # Panics
    /// If the operation panics on this thread.
    pub fn check(&self) -> bool {
        let mut panics = Panics::default();
        let completed = Arc::clone(&self.delayed).attempt(&mut panics);
        panics.resume();
        completed
    }

    /// Whether the end of the operation is decided, by its condition, by [`complete`](Self::complete) or by time. An operation that was
    /// cancelled is never complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.delayed.is_complete()
    }
}

impl<O> Clone for Waiting<O> {
    fn clone(&self) -> Self {
        Self { delayed: Arc::clone(&self.delayed) }
    }
}

impl<O> fmt::Debug for Waiting<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("is_complete", &self.is_complete()).finish_non_exhaustive()
    }
}

/// A waiting operation with keys of any type.
trait Attended<O>: Send + Sync {
    fn operation(&self) -> &Arc<O>;
    fn force(&self, panics: &mut Panics) -> bool;
    fn attempt(self: Arc<Self>, panics: &mut Panics) -> bool;
    fn is_complete(&self) -> bool;
}

impl<K: Hash + Eq + Send + Sync + 'static, O: Operation> Attended<O> for Delayed<K, O> {
    fn operation(&self) -> &Arc<O> {
        self.operation()
    }

    fn force(&self, panics: &mut Panics) -> bool {
        self.force(panics)
    }

    fn attempt(self: Arc<Self>, panics: &mut Panics) -> bool {
        Delayed::attempt(&self, panics)
    }

    fn is_complete(&self) -> bool {
        self.is_complete()
    }
}
