//! A queue as its owner sees it: its tasks, counted, and what its owner laid down.

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
    /// Due, and nobody has them.
    pub ready: u64,
    /// In workers' hands.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// Of those that are ready, with a priority below [`PRIORITY_DEFAULT`](crate::PRIORITY_DEFAULT).
    pub urgent: u64,
    /// When the oldest of those that are ready was due, whatever its priority; `None`: nothing is ready. Beyond 1,000 priorities in one line those that are
    /// the least urgent are not looked at.
    pub oldest_due: Option<Timestamp>,
    /// Nothing is leased.
    pub paused: bool,
    /// No task is added.
    pub draining: bool,
    /// What has happened in it since it appeared, but not before the machine's start.
    pub totals: QueueTotals,
    /// The same for those who watch it: these figures go on when it is empty.
    pub figures: QueueFigures,
    /// Its number among the queues that have appeared since the machine's start, from 1; 0: it is not there. A queue that is forgotten and appears again has a
    /// higher one.
    pub appeared: u64,
}

impl QueueCounts {
    /// Tasks that may still be delivered.
    #[must_use]
    pub fn live(&self) -> u64 {
        self.scheduled + self.ready + self.leased
    }
}

/// One page of the queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueuePage {
    /// The queues, in the order of their names.
    pub queues: Vec<QueueCounts>,
    /// The next page is behind this one; `None` at the end.
    pub next: Option<QueueName>,
}

/// One queue: its tasks, counted, and what its owner laid down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    /// Its tasks by state.
    pub counts: QueueCounts,
    /// How it hands them out.
    pub settings: QueueSettings,
    /// Until when it is paused; [`Timestamp::MAX`]: until it is resumed.
    pub paused_until: Option<Timestamp>,
    /// Whether it is there: it has tasks or settings, or somebody waits on it or uses it.
    pub exists: bool,
    /// The id of the task that is first in its line.
    pub first_ready: Option<u64>,
    /// Lease calls that wait on it.
    pub waiting: usize,
    /// In how many milliseconds its rate lets the next delivery begin; 0: now. `None`: it has no rate.
    pub next_delivery_ms: Option<u64>,
}

/// What has happened in a queue, counted.
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
    /// What happened in another queue as well.
    pub fn add(&mut self, other: &Self) {
        let Self { added, ended, pauses, expiries } = other;
        self.added += added;
        self.ended += ended;
        self.pauses += pauses;
        self.expiries += expiries;
    }
}
