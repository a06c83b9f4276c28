//! [`Submitted`]: the result of a submit, and [`SubmitError`]: why it was refused.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::waiting::Waiting;

/// The result of a [`submit`](crate::Purgatory::submit).
///
/// The result can be dropped: the purgatory does not need it.
pub enum Submitted<O> {
    /// The operation is complete already, and its `on_complete` has run.
    Completed(Arc<O>),
    /// The operation waits.
    Waiting(Waiting<O>),
}

impl<O> Submitted<O> {
    /// The operation, complete or not.
    #[must_use]
    pub fn operation(&self) -> &Arc<O> {
        match self {
            Self::Completed(operation) => operation,
            Self::Waiting(waiting) => waiting.operation(),
        }
    }

    /// Whether the operation is complete now: at the submission, or since then.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Completed(_) => true,
            Self::Waiting(waiting) => waiting.is_complete(),
        }
    }
}

/// An operation that was not accepted, and the reason. None of its `on_` methods was called or will be.
pub struct SubmitError<O> {
    /// The operation, given back.
    pub operation: Arc<O>,
    /// The reason of the refusal.
    pub why: SubmitRefusal,
}

/// The reason why a purgatory refuses an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubmitRefusal {
    /// The set of keys is empty.
    NoKeys,
    /// The timer is full, so it refuses the timeout.
    Full,
    /// The purgatory or its timer is shut down.
    ShutDown,
}

impl fmt::Display for SubmitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKeys => {
                "an operation without keys can only wait for its timeout: schedule that on the timer"
            }
            Self::Full => "the timer is full: submit again later, or build it with more `max_pending`",
            Self::ShutDown => {
                "the purgatory or its timer is shut down: complete the operation yourself, or drop it"
            }
        })
    }
}

impl Error for SubmitRefusal {}

impl<O> fmt::Debug for Submitted<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(_) => f.write_str("Completed"),
            Self::Waiting(waiting) => waiting.fmt(f),
        }
    }
}

impl<O> fmt::Debug for SubmitError<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitError").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<O> fmt::Display for SubmitError<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<O> Error for SubmitError<O> {}
