//! The definite answers to a cancel.

use crate::ProblemKind;
use crate::declare::body::body;
use crate::declare::choice::choice;
use crate::declare::kind::{Kind, choice};
use crate::declare::part::has;
use crate::declare::schema::one_of;

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

body! {
    /// The task is not delivered any more.
    ///
    /// The body of a cancel that took effect: `{"result": "cancelled"}`. The other outcomes are a [`Problem`](crate::Problem) with the same
    /// member.
    #[derive(Copy)]
    pub struct CancelAnswer: answer "Cancelled" {
        /// `revoked`: a worker had the task.
        result: CancelOutcome = has(choice().described(|| one_of(&["cancelled", "revoked"])));
    }
}
