//! [`ShardPages`]: the figures of all shards, page by page, also while a shard does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tickwheel_queue::{ListQueues, QUEUES_PAGE_MAX, Queue, QueueCounts, QueueName, ShardId, Stats};
use tokio::time::{Instant, timeout_at};

use crate::base::others::let_others;

/// A scrape waits this long for a shard. By default Prometheus waits 10 s for all.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// The counts of events that each shard told last, kept from scrape to scrape. A sum of all shards then never falls: Prometheus would take that for a
/// restart, and the next rise for work.
#[derive(Debug, Default)]
pub(crate) struct ShardTotals(BTreeMap<u32, Stats>);

/// Pages of the queues of the shards that answer; each is read when it is asked for.
pub(crate) struct ShardPages<'a> {
    queue: &'a Queue,
    totals: &'a mut ShardTotals,
    /// The shards that have answered every question.
    answering: Vec<ShardId>,
    silent: BTreeSet<u32>,
    /// The query for the next page; `None`: the last page was given.
    list: Option<ListQueues>,
}

impl<'a> ShardPages<'a> {
    pub(crate) fn new(queue: &'a Queue, totals: &'a mut ShardTotals) -> Self {
        let answering = queue.health_of_shards().into_iter().map(|(shard, _)| shard).collect();
        Self { queue, totals, answering, silent: BTreeSet::new(), list: Some(ListQueues::default()) }
    }

    /// The next page, which may be empty, and the figures of all shards; `None` after the last. Of a shard that does not answer, the figures have only
    /// the counts that it told last.
    pub(crate) async fn next(&mut self) -> Option<(Vec<QueueCounts>, Box<Stats>)> {
        let list = self.list.take()?;
        let until = Instant::now() + ANSWER_TIME_MAX;
        let shards = std::mem::take(&mut self.answering);
        let asked: Vec<_> = shards
            .into_iter()
            .map(|shard| (shard, timeout_at(until, self.queue.stats_of(shard, list.clone()))))
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for (shard, answer) in asked {
            if let Ok(Ok(stats)) = answer.await {
                self.totals.0.insert(shard.number(), stats.totals());
                self.answering.push(shard);
                answers.push(stats);
            } else {
                self.silent.insert(shard.number());
            }
        }
        let told = self.silent.iter().filter_map(|number| self.totals.0.get(number));
        let mut stats = Queue::sum_stats(&list, answers.into_iter().chain(told.cloned().map(Box::new)));
        // Awaiting answers that are ready at once does not yield, so this call does.
        let_others().await;
        let page = std::mem::take(&mut stats.page);
        self.list = page.next.map(|next| ListQueues { after: Some(next), max: QUEUES_PAGE_MAX, ..list });
        Some((page.queues, stats))
    }

    /// Whether a shard has answered, so that the figures of the present state are of something.
    pub(crate) fn has_answer(&self) -> bool {
        !self.answering.is_empty()
    }

    /// Whether the shard of this queue did not answer.
    pub(crate) fn is_silent(&self, queue: &QueueName) -> bool {
        self.silent.contains(&self.queue.shard_of(queue).number())
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::{Key, Put};

    use super::*;

    async fn scheduled(queue: &Queue, totals: &mut ShardTotals) -> (usize, u64, bool) {
        let mut pages = ShardPages::new(queue, totals);
        let (mut queues, mut scheduled) = (0, 0);
        while let Some((page, stats)) = pages.next().await {
            queues += page.len();
            scheduled = stats.scheduled_total;
        }
        (queues, scheduled, pages.has_answer())
    }

    #[tokio::test]
    async fn shards_that_do_not_answer_keep_their_counts() {
        let queue = Queue::options().shards(3).open_memory().expect("a queue");
        for n in 0..1_500 {
            let name = QueueName::new(&format!("q{n:04}")).expect("a name");
            queue.put(Put::new(&name, Key::new("a").expect("a key"))).await.expect("stored");
        }
        let mut totals = ShardTotals::default();
        assert_eq!(scheduled(&queue, &mut totals).await, (1_500, 1_500, true));
        queue.close();
        assert_eq!(scheduled(&queue, &mut totals).await, (0, 1_500, false));
    }
}
