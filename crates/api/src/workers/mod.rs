//! Workers: leases, and what a worker does with a token.

pub(crate) mod lease;
pub(crate) mod leases;
pub(crate) mod tokens;
