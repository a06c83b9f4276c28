//! A queue as its owner sees it: its counted tasks, and its settings.

use crate::figures::QueueFigures;
use crate::name::QueueName;
use crate::settings::QueueSettings;
use crate::time::Timestamp;

/// How many tasks a queue has in each state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueCounts {
    /// The queue.
    pub queue: QueueName,
    /// Not due yet.
    pub scheduled: u64,
    /// Due, and no worker has them.
    pub ready: u64,
    /// Leased by workers.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// Ready tasks with a priority below [`PRIORITY_DEFAULT`](crate::PRIORITY_DEFAULT).
    pub urgent: u64,
    /// The `due_at` of the oldest ready task, whatever its priority; `None`: nothing is ready. If a line has more than 1,000 priorities,
    /// the least urgent ones are not looked at.
    pub oldest_due: Option<Timestamp>,
    /// No task is leased while this is true.
    pub paused: bool,
    /// No task is added while this is true.
    pub draining: bool,
    /// Counts of events since the queue appeared, but not from before the engine's start.
    pub totals: QueueTotals,
    /// Counts for monitoring: these figures go on when the queue is empty.
    pub figures: QueueFigures,
    /// The queue's number among the queues that have appeared since the engine's start, from 1; 0: the queue does not exist. A queue that
    /// is forgotten and appears again has a higher number.
    pub appeared: u64,
}

impl QueueCounts {
    /// Tasks that may still be delivered.
    #[must_use]
    pub fn live(&self) -> u64 {
        self.scheduled + self.ready + self.leased
    }
}

/// A page of the queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueuePage {
    /// The queues, in the order of their names.
    pub queues: Vec<QueueCounts>,
    /// The next page is behind this one; `None` at the end.
    pub next: Option<QueueName>,
}

/// A queue: its counted tasks, and its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    /// The tasks by state.
    pub counts: QueueCounts,
    /// How the queue hands its tasks out.
    pub settings: QueueSettings,
    /// Until when the queue is paused; [`Timestamp::MAX`]: until it is resumed.
    pub paused_until: Option<Timestamp>,
    /// Whether the queue exists: it has tasks or settings, or a lease call waits on it, or a client uses it.
    pub exists: bool,
    /// The id of the first ready task in the queue's line.
    pub first_ready: Option<u64>,
    /// Lease calls that wait on the queue.
    pub waiting: usize,
    /// The time until the queue's rate lets the next delivery begin (ms); 0: now. `None`: the queue has no rate.
    pub next_delivery_ms: Option<u64>,
}

/// Counts of the events in a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueTotals {
    /// Tasks added.
    pub added: u64,
    /// Tasks acked, cancelled or revoked.
    pub ended: u64,
    /// Calls to pause it.
    pub pauses: u64,
    /// Leases that ran out.
    pub expiries: u64,
}

impl QueueTotals {
    /// Adds the events of another queue.
    pub fn add(&mut self, other: &Self) {
        let Self { added, ended, pauses, expiries } = other;
        self.added += added;
        self.ended += ended;
        self.pauses += pauses;
        self.expiries += expiries;
    }
}
