//! Problems: the answers to calls that were refused.

pub(crate) mod cancel_outcome;
pub(crate) mod problem;
pub(crate) mod problem_kind;
