//! The text that Prometheus reads: pages, metrics of the process, labels of queues.

pub(crate) mod accept;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod queue_labels;

use std::fmt;

use self::page::Page;
use crate::base::pieces::Pieces;

/// A part of the server with its own metrics.
pub(crate) trait Figures: Send + Sync {
    /// Writes its metrics.
    ///
    /// # Errors
    /// The page cannot be written.
    fn write(&self, page: &mut Page<Pieces>) -> fmt::Result;
}
