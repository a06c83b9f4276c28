//! What the server counts and tells: refusals, times of calls, spans, notices of the queue.

pub(crate) mod deliveries;
pub(crate) mod metrics;
pub(crate) mod notices;
pub(crate) mod refusals;
pub(crate) mod requests;
pub(crate) mod span;
