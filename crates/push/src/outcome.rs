//! [`Outcome`]: how the attempt to send one message ended, and what becomes of its task.

use std::fmt::Display;
use std::sync::Arc;

use tickwheel_queue::Undeliverable;

/// How one attempt to send a message ended.
///
/// The outcome says whose fault a failure is. A failure of the *task* counts as an attempt of the task, and the task waits as its retry
/// policy says. A failure of the *target* counts for the breaker only: the task is given back, and no attempt of it is used up. So an
/// outage of the target, however long, does not kill tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The other side confirmed. The task is acked.
    Delivered,
    /// The task failed: the other side answered with an error, or did not answer in time.
    TaskFailed {
        /// The reason, for users that look at the task later.
        reason: Arc<str>,
        /// The time for which the other side wants no repetition (ms). The wait by the policy applies if it is longer.
        retry_after_ms: Option<u64>,
    },
    /// The target failed: it could not be reached, or said that it takes nothing now.
    TargetFailed {
        /// The reason, for operators.
        reason: Arc<str>,
        /// The breaker opens at once, for at least this time (ms): the target asked for silence, or is known to be down. With 0 it opens for
        /// the time of its plan. `None`: the failure is one of several in a row.
        open_ms: Option<u64>,
        /// Whether the target itself asked for this time, so that people are told that.
        asked: bool,
    },
    /// The settings of the operator block the address of the target, so nothing was sent. The breaker opens at once, and the task is given
    /// back: no number of such tries uses up an attempt.
    Blocked {
        /// The reason, for operators.
        reason: Arc<str>,
    },
    /// The target will never take this task. The task is dead at once.
    Undeliverable {
        /// The kind of the refusal.
        why: Undeliverable,
        /// The reason, for users that look at the task later.
        reason: Arc<str>,
    },
    /// The target wants no messages any more. The target is disabled, and the task is given back.
    Disabled {
        /// The reason, for operators.
        reason: Arc<str>,
    },
}

impl Outcome {
    /// All words of [`name`](Self::name).
    pub const NAMES: [&'static str; 5] = ["acked", "failed", "dead", "given_back", "blocked"];

    /// Returns a failure of the task with this reason.
    pub fn task_failed(reason: impl Into<Arc<str>>) -> Self {
        Self::TaskFailed { reason: reason.into(), retry_after_ms: None }
    }

    /// Returns a failure of the target with this reason.
    pub fn target_failed(reason: impl Into<Arc<str>>) -> Self {
        Self::TargetFailed { reason: reason.into(), open_ms: None, asked: false }
    }

    /// Returns the outcome of a message that the target will never take.
    pub fn undeliverable(why: Undeliverable, reason: impl Into<Arc<str>>) -> Self {
        Self::Undeliverable { why, reason: reason.into() }
    }

    /// Returns the outcome of a message that does not go into the templates of its target.
    pub(crate) fn unfillable(why: impl Display) -> Self {
        Self::undeliverable(Undeliverable::Template, why.to_string())
    }

    /// Returns the reason of a failure; `None`: the message was delivered.
    #[must_use]
    pub fn reason(&self) -> Option<&Arc<str>> {
        match self {
            Self::Delivered => None,
            Self::TaskFailed { reason, .. }
            | Self::TargetFailed { reason, .. }
            | Self::Blocked { reason }
            | Self::Undeliverable { reason, .. }
            | Self::Disabled { reason } => Some(reason),
        }
    }

    /// Returns the word for this outcome in metrics and lists: `acked`, `failed`, `blocked`, `given_back` or `dead`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delivered => "acked",
            Self::Blocked { .. } => "blocked",
            Self::TaskFailed { .. } => "failed",
            Self::TargetFailed { .. } | Self::Disabled { .. } => "given_back",
            Self::Undeliverable { .. } => "dead",
        }
    }
}
