//! The settings and the record of a queue, and the rules, which engine and store exchange.

use std::sync::Arc;

use crate::calls::JobValue;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::ScheduleRecord;
use crate::target::TargetRecord;
use crate::task::Retry;
use crate::time::Timestamp;

/// How a queue hands its tasks out. A field that is `None` means no limit, or the server's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueSettings {
    /// The largest number of tasks that workers have at one time, at least 1.
    pub max_in_flight: Option<u64>,
    /// The largest number of tasks of one group that workers have at one time, at least 1. Tasks without a group are not counted.
    pub max_in_flight_per_group: Option<u64>,
    /// How many deliveries may begin in a period.
    pub rate: Option<Rate>,
    /// The largest number of live tasks. A put, an import or a redrive that would exceed this limit is refused, and a schedule leaves the
    /// instant out.
    pub max_backlog: Option<u64>,
    /// The lease duration if the worker names none (ms).
    pub default_lease_ms: Option<u64>,
    /// How often and how soon a failed task is tried again, if the task has no retry policy of its own.
    pub retry: Option<Retry>,
    /// How long, and for how many tasks, the store remembers that a task has ended.
    pub history: Option<Retention>,
}

/// A token bucket: the bucket holds at most `burst` tokens, each delivery takes one token, and `tasks` tokens come back in each `per_ms`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Deliveries per period, at least 1.
    pub tasks: u64,
    /// The length of the period (ms), at least 1.
    pub per_ms: u64,
    /// The largest number of deliveries that may begin at once after a quiet time, at least 1.
    pub burst: u64,
}

/// How long ended tasks are remembered: until either of the two limits is reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The longest time for which an ended task is remembered (ms).
    pub keep_ms: u64,
    /// The largest number of ended tasks that are remembered. The oldest are forgotten first.
    pub keys: u64,
}

/// The durable record of a queue: its settings, its pause, whether the queue drains, and its target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueRecord {
    /// How the queue hands its tasks out.
    pub settings: QueueSettings,
    /// Lease calls get no task before this instant; [`Timestamp::MAX`]: until the queue is resumed. `None`: there is no pause.
    pub paused_until: Option<Timestamp>,
    /// Whether the queue drains: no live task is added, except by a row of the inbox, and workers finish the tasks of the queue.
    pub draining: bool,
    /// Where the tasks of the queue are pushed to; `None`: only workers that ask get the tasks.
    pub target: Option<Arc<TargetRecord>>,
}

impl QueueSettings {
    /// Returns a text that names the first setting that is not allowed; `None`: all settings are allowed. An in-flight limit or a rate of 0
    /// is not allowed: it would hold tasks for ever, and a pause does the same more clearly.
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
    /// Whether the record has only default values. Such a record need not be kept.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns when the pause that is in force at `now` ends; `None`: no pause is in force at `now`.
    #[must_use]
    pub fn pause_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.paused_until.filter(|&until| now < until)
    }

    /// Whether the queue is paused at `now`.
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

/// The record of a queue, of a schedule or of a job, as engine and store exchange it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The record of a queue.
    Queue(QueueRecord),
    /// The record of a schedule.
    Schedule(ScheduleRecord),
    /// The value of a job.
    Job(JobValue),
}

/// The name of a rule and its new state; `None`: the rule is gone.
pub type RuleEffect = (RuleName, Option<Arc<Rule>>);
