//! [`ShardPages`]: the figures of all shards, page by page, also while a shard does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tickwheel_queue::{ListQueues, QUEUES_PAGE_MAX, Queue, QueueCounts, QueueName, ShardId, Stats};
use tokio::time::{Instant, timeout_at};

use crate::base::others::let_others;

/// A scrape waits this long for a shard. By default Prometheus waits 10 s for all.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

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

    /// The next page, which may be empty, and the figures of all shards; `None` after the last. A shard that does not answer adds only the counts that
    /// it told last.
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
            answers.push((shard, answer.await.ok().and_then(Result::ok)));
        }
        // Awaiting answers that are ready at once does not yield, so this call does.
        let_others().await;
        Some(self.add(list, answers))
    }

    fn add(
        &mut self,
        list: ListQueues,
        of_shards: Vec<(ShardId, Option<Box<Stats>>)>,
    ) -> (Vec<QueueCounts>, Box<Stats>) {
        let mut answers = Vec::with_capacity(of_shards.len());
        for (shard, stats) in of_shards {
            if let Some(stats) = stats {
                self.totals.0.insert(shard.number(), stats.totals());
                self.answering.push(shard);
                answers.push(stats);
            } else {
                self.silent.insert(shard.number());
            }
        }
        let told = self.silent.iter().filter_map(|number| self.totals.0.get(number));
        let mut stats = Queue::sum_stats(&list, answers.into_iter().chain(told.cloned().map(Box::new)));
        let page = std::mem::take(&mut stats.page);
        self.list = page.next.map(|next| ListQueues { after: Some(next), max: QUEUES_PAGE_MAX, ..list });
        (page.queues, stats)
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

    /// The second shard answers the first page only.
    #[test]
    fn a_silent_shard_adds_the_counts_that_it_told_last() {
        let queue = Queue::options().shards(2).open_memory().expect("a queue");
        let shards: Vec<ShardId> = queue.health_of_shards().into_iter().map(|(shard, _)| shard).collect();
        let told = |scheduled_total, waiting| {
            Some(Box::new(Stats { scheduled_total, waiting, room: 9, ..Stats::default() }))
        };
        let mut totals = ShardTotals::default();
        let mut pages = ShardPages::new(&queue, &mut totals);
        let mut add = |answers: [Option<Box<Stats>>; 2]| {
            pages.answering.clear();
            let of_shards = shards.iter().copied().zip(answers).collect();
            let (_, stats) = pages.add(ListQueues::default(), of_shards);
            (stats.scheduled_total, stats.waiting, stats.room, pages.has_answer(), pages.answering.len())
        };
        assert_eq!(add([told(5, 1), told(70, 2)]), (75, 3, 9, true, 2));
        assert_eq!(add([told(6, 1), None]), (76, 1, 9, true, 1));
        assert_eq!(add([None, None]), (76, 0, u64::MAX, false, 0));
        let name = |n: u32| QueueName::new(&format!("q{n}")).expect("a name");
        assert!((0..9).all(|n| pages.is_silent(&name(n))), "no shard answers");
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
