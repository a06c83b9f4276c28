//! All queues of a grant, page by page.

use tickwheel_queue::{ListQueues, Queue, QueueCounts, Stats, Unavailable};

use crate::access::tokens::Grant;
use crate::base::queue_pages::QueuePages;

/// Pages of the queues that a grant covers.
pub(crate) struct KnownQueues<'a> {
    pages: QueuePages<'a>,
    grant: &'a Grant,
}

impl<'a> KnownQueues<'a> {
    pub(super) fn new(queue: &'a Queue, grant: &'a Grant, list: ListQueues) -> Self {
        Self { pages: QueuePages::new(queue, list), grant }
    }

    /// The next page, which may be empty; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<QueueCounts>>, Unavailable> {
        Ok(self.pages.next().await?.map(|page| self.known(page)))
    }

    /// The next page, and the statistics of the whole server.
    pub(crate) async fn next_with_stats(
        &mut self,
    ) -> Result<Option<(Vec<QueueCounts>, Box<Stats>)>, Unavailable> {
        Ok(self.pages.next_with_stats().await?.map(|(page, stats)| (self.known(page), stats)))
    }

    fn known(&self, mut page: Vec<QueueCounts>) -> Vec<QueueCounts> {
        page.retain(|counts| self.grant.covers(&counts.queue));
        page
    }
}
