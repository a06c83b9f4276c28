//! The text that Prometheus reads: pages, metrics of the process, labels of queues.

pub(crate) mod accept;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod queue_labels;
pub(crate) mod shard_pages;

use std::fmt;

use self::page::Page;
use self::queue_labels::QueueLabels;
use self::shard_pages::ShardTotals;
use crate::base::pieces::Pieces;

/// The values that are kept from scrape to scrape.
#[derive(Debug, Default)]
pub(crate) struct Scrapes {
    pub(crate) labels: QueueLabels,
    pub(crate) totals: ShardTotals,
    /// Whether some queues had no label in the last scrape.
    pub(crate) without_label: bool,
}

/// A part of the server with its own metrics.
pub(crate) trait Figures: Send + Sync {
    /// Writes its metrics.
    ///
    /// # Errors
    /// The page cannot be written.
    fn write(&self, page: &mut Page<Pieces>) -> fmt::Result;
}
