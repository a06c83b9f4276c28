//! A queue as its owner sees it: the numbers of its tasks, the counts of its events, and its settings.

use std::sync::Arc;

use crate::figures::QueueFigures;
use crate::name::QueueName;
use crate::settings::QueueSettings;
use crate::target::TargetRecord;
use crate::time::Timestamp;

/// The counts of one queue: how many tasks are in each state, and how many events there were.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueCounts {
    /// The name of the queue.
    pub queue: QueueName,
    /// Tasks that are not due yet.
    pub scheduled: u64,
    /// Tasks that are ready: no worker has them.
    pub ready: u64,
    /// Tasks that workers have leased.
    pub leased: u64,
    /// Dead tasks: they were given up and are not forgotten yet.
    pub dead: u64,
    /// Ready tasks whose priority number is below [`PRIORITY_DEFAULT`](crate::PRIORITY_DEFAULT). Such tasks go before tasks of the default
    /// priority.
    pub urgent: u64,
    /// The earliest `due_at` of a ready task, whatever its priority; `None`: no task is ready. If a line has more than 1,000 priorities,
    /// only the tasks of the 1,000 most urgent priorities are looked at.
    pub oldest_due: Option<Timestamp>,
    /// Whether the queue is paused: lease calls get no task of the queue. A call that leases one task by its id ignores the pause.
    pub paused: bool,
    /// Whether the queue drains: no live task is added, except by a row of the inbox.
    pub draining: bool,
    /// Counts of events since the queue last came into use, or since the engine's start if the start was later. A queue is in use while it
    /// has tasks, settings, a waiting lease call or a beanstalkd client.
    pub totals: QueueTotals,
    /// Counts of events for monitoring. These figures are kept while the queue is empty, until the queue is forgotten.
    pub figures: QueueFigures,
    /// The queue's number among the queues that have appeared since the engine's start, from 1; 0: the engine has no such queue. A queue
    /// that is forgotten and appears again gets a higher number.
    pub appeared: u64,
}

impl QueueCounts {
    /// Returns the number of tasks that may still be delivered: scheduled, ready and leased tasks together.
    #[must_use]
    pub fn live(&self) -> u64 {
        self.scheduled + self.ready + self.leased
    }
}

/// A page of a list of queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueuePage {
    /// The queues, in the order of their names.
    pub queues: Vec<QueueCounts>,
    /// The name of the queue behind which the next page begins; `None`: this page is the last one.
    pub next: Option<QueueName>,
}

/// A queue: its counts, its settings, its pause, its target, and the number of lease calls that wait on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    /// The numbers of tasks in each state, and the counts of events.
    pub counts: QueueCounts,
    /// How the queue hands its tasks out.
    pub settings: QueueSettings,
    /// The instant at which the pause ends; [`Timestamp::MAX`]: the queue is paused until it is resumed. `None`: the queue is not paused.
    pub paused_until: Option<Timestamp>,
    /// Where the tasks of the queue are pushed to; `None`: only workers that ask get the tasks.
    pub target: Option<Arc<TargetRecord>>,
    /// Whether the queue is in use: the queue has tasks or settings, a lease call waits on it, or a beanstalkd client uses it.
    pub exists: bool,
    /// Whether lists of queues name the queue: it has tasks, settings or a waiting lease call, or had some within the last hour.
    pub listed: bool,
    /// The number of schedules that put tasks into the queue.
    pub schedules: u64,
    /// The id of the first task in the queue's line; `None`: the line is empty.
    pub first_ready: Option<u64>,
    /// The number of lease calls that wait on the queue.
    pub waiting: usize,
    /// The time until the queue's rate lets the next delivery begin (ms); 0: now. `None`: the queue has no rate.
    pub next_delivery_ms: Option<u64>,
}

impl QueueView {
    /// Whether there is anything of the queue to see: the queue is in use, has schedules, or was in use within the last hour. `false` for a
    /// misspelt name.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.exists || self.listed || self.schedules > 0
    }
}

/// Counts of the events in a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueTotals {
    /// Tasks added.
    pub added: u64,
    /// Tasks acked, cancelled or revoked.
    pub ended: u64,
    /// Pause calls that were accepted, also those with a pause of 0 ms.
    pub pauses: u64,
    /// Leases that ran out.
    pub expiries: u64,
}

impl QueueTotals {
    /// Adds the counts of `other` to these counts.
    pub fn add(&mut self, other: &Self) {
        let Self { added, ended, pauses, expiries } = other;
        self.added += added;
        self.ended += ended;
        self.pauses += pauses;
        self.expiries += expiries;
    }
}
