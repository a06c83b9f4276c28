//! The definite outcomes of a cancel.

use crate::declare::choice;
use crate::problems::problem_kind::ProblemKind;

choice! {
    /// The outcome of a cancel. It is decided at one point in time, and there is exactly one.
    pub enum CancelOutcome {
        /// 200: no delivery of the task starts from now on.
        Cancelled = "cancelled",
        /// 200, with `revoke=true`: a worker had the task. Calls with its token are answered `revoked` from now on, and the task
        /// does not come back.
        Revoked = "revoked",
        /// 409: a worker has the task and keeps it; `revoke=true` would take it.
        Leased = "leased",
        /// 404: the last task of this key was acked.
        Done = "done",
        /// 404: no live task has this key, and the history has no acked one.
        NotFound = "not_found",
    }
}

impl CancelOutcome {
    /// The kind of problem that the caller is answered; `None` if the cancel took effect.
    pub fn problem_kind(self) -> Option<ProblemKind> {
        match self {
            Self::Cancelled | Self::Revoked => None,
            Self::Leased => Some(ProblemKind::Leased),
            Self::Done => Some(ProblemKind::Done),
            Self::NotFound => Some(ProblemKind::NotFound),
        }
    }

    /// The status of the HTTP answer, and of a batch line's result.
    pub fn status(self) -> u16 {
        match self {
            Self::Cancelled | Self::Revoked => 200,
            Self::Leased => 409,
            Self::Done | Self::NotFound => 404,
        }
    }
}
