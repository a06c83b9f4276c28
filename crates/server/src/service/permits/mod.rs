//! The permits that callers share, and their limits.

pub(crate) mod limits;
pub(crate) mod shares;
pub(crate) mod slots;
