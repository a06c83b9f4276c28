//! The refusal of a call.

use tickwheel_api::{BadRequest, Problem};

/// A refusal, and whether the server or the token's quota is its reason.
#[derive(Debug)]
pub(crate) struct Refusal {
    problem: Box<Problem>,
    /// The caller's token has used up its own quota. Otherwise a rule or a limit of the server is the reason.
    is_token_limit: bool,
}

impl Refusal {
    /// The refusal of a caller whose token has used up its quota.
    pub(crate) fn token_limit(problem: Problem) -> Self {
        Self { problem: Box::new(problem), is_token_limit: true }
    }

    /// The problem that the caller gets.
    pub(crate) fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Whether the caller's token has used up its quota.
    pub(crate) fn is_token_limit(&self) -> bool {
        self.is_token_limit
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Box::new(problem).into()
    }
}

impl From<Box<Problem>> for Refusal {
    fn from(problem: Box<Problem>) -> Self {
        let is_token_limit = problem.status == 429 && problem.detail == Problem::token_full().detail;
        Self { problem, is_token_limit }
    }
}

impl From<Refusal> for Box<Problem> {
    fn from(refusal: Refusal) -> Self {
        refusal.problem
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        *refusal.problem
    }
}

impl From<BadRequest> for Refusal {
    fn from(refusal: BadRequest) -> Self {
        Problem::bad_request(&refusal).into()
    }
}
