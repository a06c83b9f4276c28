//! The settings of a queue, applied to its tasks: how long a lease lasts, the retries, the limits.

use super::Dispatch;
use crate::calls::{ImportError, LEASE_MS_DEFAULT, PutError, RedriveError};
use crate::name::QueueName;
use crate::residence::{At, Residence, Slot};
use crate::task::{Ended, Retry, Task};
use crate::time::Now;

/// Why a queue gets no more live tasks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoMore {
    /// The queue drains.
    Draining,
    /// The queue has as many live tasks as its settings allow.
    BacklogFull { limit: u64 },
}

macro_rules! say_no_more {
    ($($error:ident)*) => {$(
        impl From<NoMore> for $error {
            fn from(why: NoMore) -> Self {
                match why {
                    NoMore::Draining => Self::Draining,
                    NoMore::BacklogFull { limit } => Self::BacklogFull { limit },
                }
            }
        }
    )*};
}
say_no_more!(PutError RedriveError ImportError);

impl Dispatch {
    /// Returns how long a lease lasts (ms): as the worker asked (`asked`), else as the task says, else as its queue says, else the default.
    pub(crate) fn lease_ms(&self, task: &Task, asked: Option<u64>) -> u64 {
        let of_queue = || self.queues.get(&task.queue)?.record.settings.default_lease_ms;
        asked.or_else(|| task.extra().ttr_ms).or_else(of_queue).unwrap_or(LEASE_MS_DEFAULT)
    }

    /// Returns how often and how soon a task is tried again: as the task says, else as the settings of its queue say, else as the target of
    /// its queue says, else the default.
    pub(crate) fn retry_of(&self, task: &Task) -> Retry {
        let of_queue = || {
            let record = &self.queues.get(&task.queue)?.record;
            record.settings.retry.or_else(|| record.target.as_ref()?.retry)
        };
        task.extra().retry.or_else(of_queue).unwrap_or_default()
    }

    /// Returns the limit of live tasks of the queue if the queue has reached the limit. `None`: one more task is allowed.
    fn backlog_limit(&self, name: &QueueName) -> Option<u64> {
        let queue = self.queues.get(name)?;
        queue.record.settings.max_backlog.filter(|&max| queue.live >= max)
    }

    /// Returns the number of live tasks of the queue.
    pub(crate) fn live(&self, name: &QueueName) -> u64 {
        self.queues.get(name).map_or(0, |queue| queue.live)
    }

    /// Checks that the queue may get one more live task: the queue does not drain, and its limit of live tasks is not reached.
    pub(crate) fn may_grow(&self, name: &QueueName) -> Result<(), NoMore> {
        if self.queues.get(name).is_some_and(|queue| queue.record.draining) {
            return Err(NoMore::Draining);
        }
        self.backlog_limit(name).map_or(Ok(()), |limit| Err(NoMore::BacklogFull { limit }))
    }

    /// Whether a worker may extend its lease of this task. True if the task is leased. For a task that is not leased, the worker has a
    /// token of an earlier epoch, and may go on only if the in-flight limits of the queue allow one more task in workers' hands.
    pub(crate) fn may_go_on(&self, residence: &Residence, slot: Slot) -> bool {
        let entry = residence.get(slot);
        let Some(queue) = self.queues.get(&entry.task.queue) else { return true };
        let settings = &queue.record.settings;
        let of_group = entry.task.group().and_then(|group| queue.groups.get(group)).map_or(0, |of| of.leased);
        matches!(entry.at, At::Leased(_))
            || settings.max_in_flight.is_none_or(|max| queue.leased < max)
                && settings.max_in_flight_per_group.is_none_or(|max| of_group < max)
    }

    /// Returns how many tasks of this task's group are in workers' hands. `None`: the task is not ready, it has no group, or its queue has
    /// no limit for groups.
    pub(crate) fn group_in_flight(&self, residence: &Residence, slot: Slot) -> Option<u64> {
        let entry = residence.get(slot);
        let (group, queue) = (entry.task.group()?, self.queues.get(&entry.task.queue)?);
        queue.record.settings.max_in_flight_per_group.filter(|_| matches!(entry.at, At::Ready { .. }))?;
        Some(queue.groups.get(group).map_or(0, |of| of.leased))
    }

    /// Takes one token for each of `count` tasks of a queue that are handed out, if the queue has a rate.
    pub(super) fn take_tokens(&mut self, now: Now, name: &QueueName, count: usize) {
        if let Some(bucket) = &mut self.queues.open(name).bucket {
            bucket.take(count as u64, now.mono_ns);
        }
    }

    /// Notes when the rate of a queue admits the next delivery, if calls wait and tasks are in the line but no token is left. Otherwise
    /// removes the note.
    pub(super) fn watch_rate(&mut self, now: Now, name: &QueueName) {
        let bucket = match self.queues.get(name) {
            Some(queue) if !queue.waiters.is_empty() && !queue.line.is_empty() => queue.bucket,
            _ => None,
        };
        let at_ms = bucket.filter(|bucket| bucket.tokens(now.mono_ns) == 0).map(|bucket| bucket.next_ms());
        self.rate_wake_ups.set(name, at_ms);
    }

    /// Puts the token of a delivery back, because the delivery reached no worker and must not count against the rate.
    pub(crate) fn put_token_back(&mut self, task: &Task) {
        if let Some(bucket) = &mut self.queues.open(&task.queue).bucket {
            bucket.put_back();
        }
    }

    /// Whether the engine still remembers a task that ended. The settings of its queue say for how long; without such a setting
    /// `history_ms` (ms) holds. The store may keep the record of the end for longer.
    pub(crate) fn remembers(&self, now: Now, ended: &Ended, history_ms: u64) -> bool {
        let keep_ms =
            || self.queues.get(&ended.queue)?.record.settings.history.map(|history| history.keep_ms);
        ended.at.saturating_plus_ms(keep_ms().unwrap_or(history_ms)) > now.falls_due()
    }
}
