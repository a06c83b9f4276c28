//! [`Dispatch`]: which task each worker gets next, and which worker has which task.

mod bucket;
mod choice;
mod deliver;
mod leases;
mod limits;
mod line;
mod population;
mod prefetch;
mod queue;
mod queues;
mod ready;
mod records;
mod targets;
mod wake_ups;

use core::hash::Hasher;
use std::collections::BTreeSet;

use siphasher::sip::SipHasher13;

pub(crate) use self::deliver::{Delivery, Taking};
pub(crate) use self::leases::{BegunLease, Holder, Leases};
pub(crate) use self::prefetch::Fetch;
pub(crate) use self::queues::Queues;
pub(crate) use self::ready::{ReadyKey, ReadyStub};
use self::targets::Targets;
use self::wake_ups::WakeUps;
use crate::acquired::Acquired;
use crate::bounds::Bounds;
use crate::figures::Event;
use crate::ledger::Ledger;
use crate::name::QueueName;
use crate::residence::{QueueNo, Residence, Slot};
use crate::task::LeaseNo;
use crate::time::{Now, Seq, Timestamp};
use crate::token::Token;

/// The lines of ready tasks, the limits of the queues, the calls that wait for tasks, and the running leases.
///
/// # Invariants
/// - A ready task is in its queue's line, or is parked in its group. A waiting call gets no task while a call with a lower number waits
///   that may have the task.
/// - Limits, rates and pauses are checked whenever a lease call gets tasks. A call that leases one task by its id ignores them. The
///   in-flight limits are also checked when a worker extends a lease of an earlier epoch and the task is not leased in this epoch.
#[derive(Debug)]
pub(crate) struct Dispatch {
    secret: [u8; 16],
    bounds: Bounds,
    queues: Queues,
    /// Queues that [`Delivery::serve`] looks at next, because a call that waits on them may be answered now.
    to_serve: BTreeSet<QueueName>,
    /// When the rate of a queue admits the next delivery (monotonic ms), for queues with waiting calls. An entry may be out of date; its
    /// wake-up then changes nothing.
    rate_wake_ups: WakeUps<u64>,
    /// When the pause of a queue ends. Pauses that only the owner ends are not included.
    pause_ends: WakeUps<Timestamp>,
    /// Queues for which the records at the head of the line have to be fetched.
    to_prefetch: BTreeSet<QueueName>,
    leases: Leases,
    /// How many queues have a record of their own.
    records: usize,
    /// The targets of the queues that have one.
    targets: Targets,
    /// The seq of the last change of any queue's record since the engine started.
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
            targets: Targets::default(),
            changed: Seq::ZERO,
        }
    }

    /// Lets time pass: forgets queues that were emptied an hour ago or earlier, and marks the queues whose rate admits a delivery by now.
    pub(crate) fn pass_time(&mut self, now: Now) {
        self.queues.pass_time(now);
        while let Some(name) = self.rate_wake_ups.pop(now.mono_tick()) {
            self.to_serve.insert(name);
        }
    }

    /// Returns when the next pause ends, by the wall clock. `writes`: whether the engine takes changes. If not, returns `None`, because the
    /// end of a pause cannot be written to the store.
    pub(crate) fn next_wake(&self, writes: bool) -> Option<Timestamp> {
        self.pause_ends.next().filter(|_| writes)
    }

    /// Returns when the next lease may end or the next rate admits a delivery, by the monotonic clock (ms).
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        [self.leases.next_end_ms(), self.rate_wake_ups.next()].into_iter().flatten().min()
    }

    /// Returns the number of a queue. The queue must exist, as it does while it has tasks.
    pub(crate) fn number(&self, name: &QueueName) -> QueueNo {
        self.queues.number(name).expect("a queue is there while it has tasks")
    }

    /// Removes the queue if it is not in use and no list has to name it any more; see [`Queues::tidy`].
    pub(crate) fn tidy(&mut self, name: &QueueName) {
        self.queues.tidy(name);
    }

    /// Adds one beanstalkd client to the users of the queue. This use alone does not put the queue into lists.
    pub(crate) fn begin_use(&mut self, name: &QueueName) {
        self.queues.open(name).users += 1;
    }

    /// Takes one beanstalkd client from the users of the queue. A queue that is not in use any more is then tidied; see [`Queues::tidy`].
    pub(crate) fn end_use(&mut self, name: &QueueName) {
        let users = &mut self.queues.open(name).users;
        *users = users.saturating_sub(1);
        self.queues.tidy(name);
    }

    /// Returns all queues, for lists and for statistics.
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Returns all queues, to count on from an earlier engine.
    pub(crate) fn queues_mut(&mut self) -> &mut Queues {
        &mut self.queues
    }

    /// Counts an event of a task of this queue: once for the shard, and once for the queue.
    pub(crate) fn count(&mut self, ledger: &mut Ledger, queue: &QueueName, event: Event) {
        ledger.counters_mut().count(&mut self.queues.open(queue).figures, event);
    }

    /// Leases a task to a worker until the wall clock shows `begun.until`, the instant that the worker gets to know. The lease runs by the
    /// monotonic clock, and runs out no earlier than `begun.until` while both clocks run at the same speed. Before this call the entry must
    /// be in no line and in no wheel.
    pub(crate) fn begin_lease(&mut self, residence: &mut Residence, slot: Slot, begun: BegunLease, now: Now) {
        let lease = self.leases.begin(slot, begun, now);
        residence.lease_begins(slot, lease);
        let task = residence.task(slot);
        self.queues.open(&task.queue).lease_begins(task.group());
    }

    /// Returns the running leases.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Returns the slots of the tasks whose leases have run out by now, each lease once. The entries of these tasks are still marked as
    /// leased.
    pub(crate) fn pop_ended(&mut self, now: Now) -> Vec<Slot> {
        self.leases.pop_ended(now)
    }

    /// Returns the number of the next lease. With this number as the fence of a task, all earlier tokens of the task are void.
    pub(crate) fn fence(&self) -> LeaseNo {
        self.leases.next()
    }

    /// Returns the instance number of the shard, which follows from the secret.
    pub(crate) fn instance(&self) -> u32 {
        instance_of(&self.secret)
    }

    /// Returns the task and the lease that a token names. `None`: no engine of this shard issued the token.
    pub(crate) fn verify(&self, token: &Token) -> Option<(u64, LeaseNo)> {
        token.verify(&self.secret)
    }
}

/// Returns the instance number of the shard with this secret, as [`Engine::instance`](crate::Engine::instance) does: the low 32 bits of a hash. Other systems know tasks by this number, so the
/// computation never changes.
#[must_use]
pub fn instance_of(secret: &[u8; 16]) -> u32 {
    let mut hasher = SipHasher13::new_with_key(secret);
    // The prefix makes the number differ from the other hashes that have the same secret as their key.
    hasher.write(b"instance of the shard");
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are in the ids of webhooks that were sent, so they must not change.
    #[test]
    fn the_instance_of_a_secret_never_changes() {
        assert_eq!(instance_of(b"0123456789abcdef"), 3_204_011_591);
        assert_eq!(instance_of(&[7; 16]), 2_590_973_178);
    }
}
