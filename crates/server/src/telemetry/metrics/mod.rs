//! The text that Prometheus reads: pages, figures of the process, labels of queues.

pub(crate) mod accept;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod queue_labels;
