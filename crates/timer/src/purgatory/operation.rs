//! [`Operation`]: the user's type that waits in a purgatory.

/// An operation that completes later: when a condition has become true, or when its time is up.
///
/// Methods take `&self`, because the submitter, the purgatory and the timer share the operation. The purgatory and the timer hold no lock
/// while they call a method, so a method may lock, submit, check and cancel. Two limits remain. First, `try_complete` must not check a key
/// of its own operation: each check would call it again. Second, if a completion ends other operations on its thread, their
/// `on_` methods run after it has returned; so it must not wait for them.
pub trait Operation: Send + Sync + 'static {
    /// Whether the condition is true. The method only checks, or collects results; the purgatory then completes the operation.
    ///
    /// Calls of `try_complete` for one operation never overlap, and none runs during or after `on_expire` and `on_complete`. The method may
    /// be called any number of times, on the thread of any submission or check, or on the executor of the timer. The change that makes the
    /// condition true has to be visible before the keys are checked. A check that comes while another thread runs the method makes that
    /// thread or the executor call it again.
    fn try_complete(&self) -> bool;

    /// Called exactly once at the end: by the condition, by `complete`, by the timeout or by a shutdown.
    ///
    /// When it is called, the operation is complete, has left all its keys, and its timeout is cancelled. It is not called for an operation
    /// that was cancelled.
    fn on_complete(&self);

    /// Called before `on_complete` if the timeout or a shutdown ended the operation.
    fn on_expire(&self) {}
}
