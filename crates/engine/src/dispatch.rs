//! [`Dispatch`]: which task goes to which worker next, and which worker has which task.

mod bucket;
mod choice;
mod deliver;
mod leases;
mod limits;
mod line;
mod lines;
mod prefetch;
mod queue;
mod queues;
mod ready;
mod records;
mod wake_ups;

use std::collections::BTreeSet;

pub(crate) use self::deliver::{Delivery, Taking};
pub(crate) use self::leases::{BegunLease, Holder, Leases};
pub(crate) use self::prefetch::Fetch;
pub(crate) use self::queues::Queues;
pub(crate) use self::ready::ReadyStub;
use self::wake_ups::WakeUps;
use crate::acquired::Acquired;
use crate::bounds::Bounds;
use crate::figures::Event;
use crate::ledger::Ledger;
use crate::name::QueueName;
use crate::residence::Residence;
use crate::slot::{QueueNo, Slot};
use crate::task::LeaseNo;
use crate::time::{Now, Seq, Timestamp};
use crate::token::Token;

/// The lines of ready tasks, the limits of their queues, the calls that wait for the tasks, and the leases that run.
///
/// # Invariants
/// - A ready task stands in its queue's line, or is parked in its group. A call that waits for tasks gets none while an earlier call waits
///   that may have them.
/// - A limit, a rate or a pause is checked whenever tasks are handed out, and nowhere else.
#[derive(Debug)]
pub(crate) struct Dispatch {
    secret: [u8; 16],
    bounds: Bounds,
    queues: Queues,
    /// Queues with waiting calls that may get something now.
    to_serve: BTreeSet<QueueName>,
    /// When the rate of a queue admits the next delivery (monotonic ms), for queues with waiting calls. An entry may be stale.
    rate_wake_ups: WakeUps<u64>,
    /// When the pause of a queue ends, unless its owner has to end it.
    pause_ends: WakeUps<Timestamp>,
    /// Queues where the records at the head of the line have to be fetched.
    to_prefetch: BTreeSet<QueueName>,
    leases: Leases,
    /// Queues that have a record of their own.
    records: usize,
    /// The last change of a queue's record.
    changed: Seq,
}

impl Dispatch {
    pub(crate) fn new(acquired: &Acquired, bounds: Bounds, now: Now) -> Self {
        Self {
            secret: acquired.secret,
            queues: Queues::new(bounds.empty_queues),
            bounds,
            to_serve: BTreeSet::new(),
            rate_wake_ups: WakeUps::default(),
            pause_ends: WakeUps::default(),
            to_prefetch: BTreeSet::new(),
            leases: Leases::new(acquired.ownership.epoch, now),
            records: 0,
            changed: Seq::ZERO,
        }
    }

    /// Time has passed. Queues that were emptied an hour ago are forgotten. A queue whose rate admits a delivery by now is to be served.
    pub(crate) fn pass_time(&mut self, now: Now) {
        self.queues.pass_time(now);
        while let Some(name) = self.rate_wake_ups.pop(now.mono_tick()) {
            self.to_serve.insert(name);
        }
    }

    /// When time alone will next change something here, by the wall clock. `writes`: whether changes are taken, so that the end of a pause
    /// can be written down.
    pub(crate) fn next_wake(&self, writes: bool) -> Option<Timestamp> {
        self.pause_ends.next().filter(|_| writes)
    }

    /// When time alone will next change something here, by the monotonic clock (ms).
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        [self.leases.next_end_ms(), self.rate_wake_ups.next()].into_iter().flatten().min()
    }

    /// The number of a queue. The queue exists as long as it has tasks.
    pub(crate) fn number(&self, name: &QueueName) -> QueueNo {
        self.queues.number(name).expect("a queue is there while it has tasks")
    }

    /// Checks whether the queue is empty and is to be forgotten.
    pub(crate) fn tidy(&mut self, name: &QueueName) {
        self.queues.tidy(name);
    }

    /// A client of beanstalkd uses the queue. This use alone does not put the queue into lists.
    pub(crate) fn begin_use(&mut self, name: &QueueName) {
        self.queues.open(name).users += 1;
    }

    /// A client of beanstalkd stops using the queue.
    pub(crate) fn end_use(&mut self, name: &QueueName) {
        let users = &mut self.queues.open(name).users;
        *users = users.saturating_sub(1);
        self.queues.tidy(name);
    }

    /// All queues, to list them and to say what happened in them.
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Counts an event of a task of this queue: once for the shard, and once for the queue.
    pub(crate) fn count(&mut self, ledger: &mut Ledger, queue: &QueueName, event: Event) {
        ledger.counters_mut().count(&mut self.queues.open(queue).figures, event);
    }

    /// Leases a task to a worker until the wall clock would show `until`, which the worker is told. The lease runs by the monotonic clock,
    /// and ends no earlier than `until` as long as both clocks run alike. Before this call the entry stands nowhere.
    pub(crate) fn begin_lease(&mut self, residence: &mut Residence, slot: Slot, begun: BegunLease, now: Now) {
        let lease = self.leases.begin(slot, begun, now);
        residence.lease_begins(slot, lease);
        let task = residence.task(slot);
        self.queues.open(&task.queue).lease_begins(task.group());
    }

    /// The leases that run.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Takes the tasks whose leases have run out by now. The entries of these tasks still say that they are leased.
    pub(crate) fn pop_ended(&mut self, now: Now) -> Vec<Slot> {
        self.leases.pop_ended(now)
    }

    /// The number of the next lease. If a task has this number as its fence, tokens of earlier leases are void for the task.
    pub(crate) fn fence(&self) -> LeaseNo {
        self.leases.next()
    }

    /// The task and the lease that a token speaks for; `None`: no engine of this shard issued it.
    pub(crate) fn verify(&self, token: &Token) -> Option<(u64, LeaseNo)> {
        token.verify(&self.secret)
    }
}
