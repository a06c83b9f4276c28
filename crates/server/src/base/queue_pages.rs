//! All queues, page by page: there may be 100,000 of them, and other calls need their turn between two pages.

use tickwheel_queue::{
    ListQueues, QUEUES_PAGE_MAX, Queue, QueueCounts, QueuePage, QueueTotals, Stats, Unavailable,
};

use crate::base::others::let_others;

/// Pages of queues; each is read when it is asked for.
pub(crate) struct QueuePages<'a> {
    queue: &'a Queue,
    /// The query for the next page; `None`: the last page was given.
    list: Option<ListQueues>,
}

impl<'a> QueuePages<'a> {
    pub(crate) fn new(queue: &'a Queue, list: ListQueues) -> Self {
        Self { queue, list: Some(list) }
    }

    /// The next page, which may be empty; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<QueueCounts>>, Unavailable> {
        let Some(list) = self.list.take() else { return Ok(None) };
        let page = self.queue.queues(list.clone()).await?;
        // Awaiting a page that is ready at once does not yield, so this call does.
        let_others().await;
        Ok(Some(self.take(list, page)))
    }

    /// The next page and the statistics. The counts are as correct as possible, also while the queue is read-only.
    pub(crate) async fn next_with_stats(
        &mut self,
    ) -> Result<Option<(Vec<QueueCounts>, Box<Stats>)>, Unavailable> {
        let Some(list) = self.list.take() else { return Ok(None) };
        let mut stats = self.queue.stats(list.clone()).await?;
        let_others().await;
        let page = core::mem::take(&mut stats.page);
        Ok(Some((self.take(list, page), stats)))
    }

    fn take(&mut self, list: ListQueues, page: QueuePage) -> Vec<QueueCounts> {
        // The caller needs more than the first page, perhaps because it may see few of the queues. With small pages
        // there would be many calls.
        self.list = page.next.map(|next| ListQueues { after: Some(next), max: QUEUES_PAGE_MAX, ..list });
        page.queues
    }
}

/// The sums of several queues.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) queues: u64,
    pub(crate) urgent: u64,
    pub(crate) ready: u64,
    pub(crate) leased: u64,
    pub(crate) scheduled: u64,
    pub(crate) dead: u64,
    pub(crate) totals: QueueTotals,
}

impl Sums {
    pub(crate) fn add(&mut self, queue: &QueueCounts) {
        self.queues += 1;
        self.urgent += queue.urgent;
        self.ready += queue.ready;
        self.leased += queue.leased;
        self.scheduled += queue.scheduled;
        self.dead += queue.dead;
        self.totals.add(&queue.totals);
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::{Key, Put, QueueName};

    use super::*;

    /// A bug that was found: a list with `limit=1` read two queues at a time, for a token that may see none of
    /// 100,000 queues.
    #[tokio::test]
    async fn only_the_first_page_is_small() {
        let queue = Queue::options().open_memory().expect("a queue");
        for n in 0..1_002 {
            let name = QueueName::new(&format!("q{n:04}")).expect("a name");
            queue.put(Put::new(&name, Key::new("a").expect("a key"))).await.expect("stored");
        }
        let mut pages = QueuePages::new(&queue, ListQueues { max: 2, ..ListQueues::default() });
        let (mut sizes, mut last) = (Vec::new(), None);
        while let Some(page) = pages.next().await.expect("a page") {
            sizes.push(page.len());
            last = page.last().map(|counts| counts.queue.as_str().to_owned());
        }
        assert_eq!((sizes, last.as_deref()), (vec![2, QUEUES_PAGE_MAX, QUEUES_PAGE_MAX], Some("q1001")));
    }
}
