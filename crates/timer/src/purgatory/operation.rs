//! [`Operation`]: the user's type that waits in a purgatory.

/// Something that is done later: when a condition has come true, or when its time is up.
///
/// Methods take `&self`: the submitter, the purgatory and the timer share the operation. None of the methods is ever
/// called while the purgatory or the timer holds a lock, so all of them may lock, submit, check and cancel as they
/// like. Two limits remain. `try_complete` must not check a key of its own operation: it would be asked again for
/// ever. And a completion that checks a key completes what waits there before it returns, on the same stack.
pub trait Operation: Send + Sync + 'static {
    /// Whether the condition has come true. The method only looks, or collects results; the purgatory does what
    /// follows.
    ///
    /// Calls of `try_complete` for one operation never overlap, and none runs beside or after `on_expire` and
    /// `on_complete`. It may be called any number of times, on the thread of any submit or check. The change that
    /// makes the condition true has to be visible before the keys are checked. A check that comes while another
    /// thread is still looking makes that thread look again.
    fn try_complete(&self) -> bool;

    /// The end, exactly once: by the condition, by force, by time or by shutdown.
    ///
    /// By then the operation is complete, has left all its keys, and its timeout is cancelled. Only an operation that
    /// was cancelled never gets here.
    fn on_complete(&self);

    /// Called before `on_complete` if the end came by time or by a shutdown.
    fn on_expire(&self) {}
}
