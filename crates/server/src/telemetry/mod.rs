//! Metrics, spans and log lines: refusals, times of calls, deliveries, notices of the queue.

pub(crate) mod deliveries;
pub(crate) mod metrics;
pub(crate) mod notices;
pub(crate) mod refusals;
pub(crate) mod requests;
pub(crate) mod serving;
pub(crate) mod span;
