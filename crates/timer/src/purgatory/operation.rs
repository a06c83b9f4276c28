//! [`Operation`]: what waits in a purgatory.

/// Something that is done later: when a condition has come true, or when its time is up.
///
/// Methods take `&self`: an operation is shared between whoever submitted it, the purgatory and the
/// timer. None of them is ever called while the purgatory or the timer holds a lock, so all of them
/// may lock, submit, check and cancel as they like. Two limits remain. `try_complete` must not check a
/// key of its own operation: it would be asked again for ever. And a completion that checks a key
/// completes what waits there before it returns, on the same stack.
pub trait Operation: Send + Sync + 'static {
    /// Whether the condition has come true. It only looks, or collects; what follows from it is up to
    /// the purgatory.
    ///
    /// It never runs twice at once for one operation, and never beside or after `on_expire` and
    /// `on_complete`. It may run any number of times, on the thread of any submit or check. Whatever
    /// makes the condition true has to be visible before the keys are checked; a check that comes
    /// while another thread is still looking makes that thread look again.
    fn try_complete(&self) -> bool;

    /// The end, exactly once, however it came: by the condition, by force, by time or by shutdown.
    ///
    /// By then the operation is complete, off all its keys, and its timeout is cancelled. Only an
    /// operation that was cancelled never gets here.
    fn on_complete(&self);

    /// Comes before `on_complete` if time, or a shutdown, was the end.
    fn on_expire(&self) {}
}
