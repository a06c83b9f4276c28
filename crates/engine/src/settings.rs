//! What a queue's owner lays down: it stays when the queue's tasks are gone.

use std::sync::Arc;

use crate::job::JobValue;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::ScheduleRecord;
use crate::task::Retry;
use crate::time::Timestamp;

/// How a queue hands its tasks out. Whatever is `None` has no limit, or the server's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueSettings {
    /// So many tasks may be in workers' hands at one time, at least 1.
    pub max_in_flight: Option<u64>,
    /// So many tasks of one group may be in workers' hands at one time, at least 1. Tasks without a group are not counted.
    pub max_in_flight_per_group: Option<u64>,
    /// How many deliveries may begin in a while.
    pub rate: Option<Rate>,
    /// A put is refused that would make a task more than so many live ones.
    pub max_backlog: Option<u64>,
    /// The lease of a worker who names no length, milliseconds.
    pub default_lease_ms: Option<u64>,
    /// How often and how soon a task is tried again that says nothing of it.
    pub retry: Option<Retry>,
    /// How long it is remembered that a task has ended.
    pub history: Option<Retention>,
}

/// A bucket of tokens: it holds `burst`, each delivery takes one, and `tasks` come back in each `per_ms`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Deliveries, at least 1.
    pub tasks: u64,
    /// In so many milliseconds, at least 1.
    pub per_ms: u64,
    /// So many may begin at once after a quiet while, at least 1.
    pub burst: u64,
}

/// How much is remembered of tasks that ended, whichever ends first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Retention {
    /// For so long, milliseconds.
    pub keep_ms: u64,
    /// The last so many.
    pub keys: u64,
}

/// The durable record of a queue: its settings, and whether it is held.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueRecord {
    /// How it hands its tasks out.
    pub settings: QueueSettings,
    /// Nothing is leased before this instant; [`Timestamp::MAX`]: until it is resumed.
    pub paused_until: Option<Timestamp>,
    /// No task is added; those that are there are worked off.
    pub draining: bool,
}

impl QueueSettings {
    /// What cannot be, if there is anything: a limit or a rate of nothing would hold tasks for ever, and a pause says so better.
    #[must_use]
    pub fn mistake(&self) -> Option<&'static str> {
        let none = |limit: Option<u64>| limit == Some(0);
        match self {
            _ if none(self.max_in_flight) || none(self.max_in_flight_per_group) => {
                Some("a limit in flight of 0")
            }
            _ if self.rate.is_some_and(|rate| [rate.tasks, rate.per_ms, rate.burst].contains(&0)) => {
                Some("a rate of 0 tasks, of 0 ms, or without a burst")
            }
            _ if none(self.default_lease_ms) => Some("a default lease of 0 ms"),
            _ => None,
        }
    }
}

impl QueueRecord {
    /// Whether it says anything. If not, it need not be kept.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// When the pause ends that there is at this instant.
    #[must_use]
    pub fn pause_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.paused_until.filter(|&until| now < until)
    }

    /// Whether it is paused at this instant.
    #[must_use]
    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.pause_end(now).is_some()
    }
}

/// The name of a [`Rule`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RuleName {
    /// The record of this queue.
    Queue(QueueName),
    /// The schedule of this name in this queue.
    Schedule(QueueName, ScheduleName),
    /// The job with this number.
    Job(u64),
}

/// What an owner laid down, as engine and store hand it to each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Of a queue.
    Queue(QueueRecord),
    /// Of a schedule.
    Schedule(ScheduleRecord),
    /// Of a job.
    Job(JobValue),
}

/// What became of a rule: it stands like this, or `None`: it is gone.
pub type RuleEffect = (RuleName, Option<Arc<Rule>>);
