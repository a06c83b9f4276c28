//! The settings of a queue, as its owner configured them. They stay when the queue's tasks are gone.

use std::sync::Arc;

use crate::job::JobValue;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::ScheduleRecord;
use crate::task::Retry;
use crate::time::Timestamp;

/// How a queue hands its tasks out. A field that is `None` has no limit, or the server's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueSettings {
    /// The largest number of tasks that workers have at one time, at least 1.
    pub max_in_flight: Option<u64>,
    /// The largest number of tasks of one group that workers have at one time, at least 1. Tasks without a group are not counted.
    pub max_in_flight_per_group: Option<u64>,
    /// How many deliveries may begin in a period.
    pub rate: Option<Rate>,
    /// The largest number of live tasks. A put that would exceed it is refused.
    pub max_backlog: Option<u64>,
    /// The lease duration if the worker names none (ms).
    pub default_lease_ms: Option<u64>,
    /// How often and how soon a task is tried again, if the task itself does not say so.
    pub retry: Option<Retry>,
    /// How long it is remembered that a task has ended.
    pub history: Option<Retention>,
}

/// A bucket of tokens: it holds `burst`, each delivery takes one, and `tasks` come back in each `per_ms`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Deliveries per period, at least 1.
    pub tasks: u64,
    /// The length of the period (ms), at least 1.
    pub per_ms: u64,
    /// The largest number of deliveries that may begin at once after a quiet time, at least 1.
    pub burst: u64,
}

/// How long ended tasks are remembered: until either limit is reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The longest time (ms).
    pub keep_ms: u64,
    /// The number of ended tasks that are remembered, the last ones.
    pub keys: u64,
}

/// The durable record of a queue: its settings, and whether it is held.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueRecord {
    /// How the queue hands its tasks out.
    pub settings: QueueSettings,
    /// Nothing is leased before this instant; [`Timestamp::MAX`]: until it is resumed.
    pub paused_until: Option<Timestamp>,
    /// No task is added; workers finish the tasks that are there.
    pub draining: bool,
}

impl QueueSettings {
    /// Returns the setting that is not allowed, if there is one. A limit or a rate of 0 would hold tasks for ever, and a pause says that
    /// more clearly.
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
    /// Whether the record says anything. If not, it need not be kept.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// When the pause ends that is in force at this instant.
    #[must_use]
    pub fn pause_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.paused_until.filter(|&until| now < until)
    }

    /// Whether the queue is paused at this instant.
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

/// A configured record, as engine and store exchange it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The record of a queue.
    Queue(QueueRecord),
    /// The record of a schedule.
    Schedule(ScheduleRecord),
    /// The value of a job.
    Job(JobValue),
}

/// The new state of a rule; `None`: the rule is gone.
pub type RuleEffect = (RuleName, Option<Arc<Rule>>);
