//! The definite answers to a cancel.

use crate::ProblemKind;
use serde::{Deserialize, Serialize};

/// What a cancel found. Exactly one of them, decided at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// 200: no delivery of the task starts from now on.
    Cancelled,
    /// 200, with `revoke=true`: a worker has the task; its token answers `revoked` from now on, and the task
    /// does not come back.
    Revoked,
    /// 409: a worker has the task. It stays there; `revoke=true` takes it.
    Leased,
    /// 404: the last task of this key was acked.
    Done,
    /// 404: no live task has this key, and none was done lately.
    NotFound,
}

impl CancelOutcome {
    /// Every outcome.
    pub const ALL: [Self; 5] = [Self::Cancelled, Self::Revoked, Self::Leased, Self::Done, Self::NotFound];

    /// The name on the wire: `not_found`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Revoked => "revoked",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::NotFound => "not_found",
        }
    }

    /// The problem that it is for whoever asked; `None` if it took effect.
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

/// The body of a cancel that took effect: `{"result": "cancelled"}`. The other outcomes are a
/// [`Problem`](crate::Problem) with the same member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAnswer {
    /// `cancelled` or `revoked`.
    pub result: CancelOutcome,
}
