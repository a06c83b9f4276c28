//! All queues, page by page: there may be 100,000 of them, and other calls are served between two pages.

use tickwheel_queue::{ListQueues, Queue, QueueCounts, QueuePage, Stats, Unavailable};

/// Pages of queues, the next of which is asked for when it is wanted.
pub(crate) struct QueuePages<'a> {
    queue: &'a Queue,
    /// What to ask for next; `None`: the last page was given.
    list: Option<ListQueues>,
}

impl<'a> QueuePages<'a> {
    pub(crate) fn new(queue: &'a Queue, list: ListQueues) -> Self {
        Self { queue, list: Some(list) }
    }

    /// The next page, which may be empty; `None` behind the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<QueueCounts>>, Unavailable> {
        let Some(list) = self.list.take() else { return Ok(None) };
        let page = self.queue.queues(list.clone()).await?;
        Ok(Some(self.take(list, page)))
    }

    /// The next page, with counts that are as right as may be also while the queue is read-only, and the figures beside it.
    pub(crate) async fn next_with_stats(
        &mut self,
    ) -> Result<Option<(Vec<QueueCounts>, Box<Stats>)>, Unavailable> {
        let Some(list) = self.list.take() else { return Ok(None) };
        let mut stats = self.queue.stats(list.clone()).await?;
        let page = core::mem::take(&mut stats.page);
        Ok(Some((self.take(list, page), stats)))
    }

    fn take(&mut self, list: ListQueues, page: QueuePage) -> Vec<QueueCounts> {
        self.list = page.next.map(|next| ListQueues { after: Some(next), ..list });
        page.queues
    }
}
