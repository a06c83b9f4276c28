//! The settings of a queue, applied to its tasks: the length of a lease, the retries, the limits.

use super::Dispatch;
use crate::calls::{LEASE_MS_DEFAULT, PutError};
use crate::name::QueueName;
use crate::residence::{At, Residence};
use crate::slot::Slot;
use crate::task::{Ended, Retry, Task};
use crate::time::Now;

impl Dispatch {
    /// The length of a lease (ms): as the worker asks (`asked`), else as the task says, else as its queue says, else the default.
    pub(crate) fn lease_ms(&self, task: &Task, asked: Option<u64>) -> u64 {
        let of_queue = || self.queues.get(&task.queue)?.record.settings.default_lease_ms;
        asked.or_else(|| task.extra().ttr_ms).or_else(of_queue).unwrap_or(LEASE_MS_DEFAULT)
    }

    /// How often and how soon a task is tried again: as the task says, else as its queue says.
    pub(crate) fn retry_of(&self, task: &Task) -> Retry {
        let of_queue = || self.queues.get(&task.queue)?.record.settings.retry;
        task.extra().retry.or_else(of_queue).unwrap_or_default()
    }

    /// How many live tasks the queue may have, if it has this many or more. `None`: it may have more.
    pub(crate) fn backlog_limit(&self, name: &QueueName) -> Option<u64> {
        let queue = self.queues.get(name)?;
        queue.record.settings.max_backlog.filter(|&max| queue.live >= max)
    }

    /// Whether one more task may be put into the queue.
    pub(crate) fn may_grow(&self, name: &QueueName) -> Result<(), PutError> {
        if self.queues.get(name).is_some_and(|queue| queue.record.draining) {
            return Err(PutError::Draining);
        }
        self.backlog_limit(name).map_or(Ok(()), |limit| Err(PutError::BacklogFull { limit }))
    }

    /// Whether a worker of an earlier life may go on with its task. It may not if other leases have used up the limits since.
    pub(crate) fn may_go_on(&self, residence: &Residence, slot: Slot) -> bool {
        let entry = residence.get(slot);
        let Some(queue) = self.queues.get(&entry.task.queue) else { return true };
        let settings = &queue.record.settings;
        let of_group = entry.task.group().and_then(|group| queue.groups.get(group)).map_or(0, |of| of.leased);
        matches!(entry.at, At::Leased(_))
            || settings.max_in_flight.is_none_or(|max| queue.leased < max)
                && settings.max_in_flight_per_group.is_none_or(|max| of_group < max)
    }

    /// How many tasks of the group of a ready task are in workers' hands, if its queue limits them.
    pub(crate) fn group_in_flight(&self, residence: &Residence, slot: Slot) -> Option<u64> {
        let entry = residence.get(slot);
        let (group, queue) = (entry.task.group()?, self.queues.get(&entry.task.queue)?);
        queue.record.settings.max_in_flight_per_group.filter(|_| matches!(entry.at, At::Ready { .. }))?;
        Some(queue.groups.get(group).map_or(0, |of| of.leased))
    }

    /// Takes the tokens for tasks of a queue that are handed out: they count against its rate.
    pub(super) fn take_tokens(&mut self, now: Now, name: &QueueName, count: usize) {
        if let Some(bucket) = &mut self.queues.open(name).bucket {
            bucket.take(count as u64, now.mono_ns);
        }
    }

    /// If calls wait for tasks that a rate holds up, notes when the rate admits the next delivery.
    pub(super) fn watch_rate(&mut self, now: Now, name: &QueueName) {
        let bucket = match self.queues.get(name) {
            Some(queue) if !queue.waiters.is_empty() && !queue.line.is_empty() => queue.bucket,
            _ => None,
        };
        let at_ms = bucket.filter(|bucket| bucket.tokens(now.mono_ns) == 0).map(|bucket| bucket.next_ms());
        self.rate_wake_ups.set(name, at_ms);
    }

    /// A delivery reached no worker: it does not count against the rate.
    pub(crate) fn put_token_back(&mut self, task: &Task) {
        if let Some(bucket) = &mut self.queues.open(&task.queue).bucket {
            bucket.put_back();
        }
    }

    /// Whether a task that ended is still to be remembered. The queue says for how long, else `history_ms` does. The store may know the
    /// task for longer.
    pub(crate) fn remembers(&self, now: Now, ended: &Ended, history_ms: u64) -> bool {
        let keep_ms =
            || self.queues.get(&ended.queue)?.record.settings.history.map(|history| history.keep_ms);
        ended.at.saturating_plus_ms(keep_ms().unwrap_or(history_ms)) > now.wall
    }
}
