//! Adds tasks to the lines of their queues, takes tasks out of the lines, and counts the tasks and the events of each queue.

use std::collections::BTreeSet;

use super::Dispatch;
use super::line::{InLine, ReadyPlace};
use super::queue::Queue;
use super::ready::{ReadyKey, ReadyStub};
use crate::acquired::Population;
use crate::figures::Event;
use crate::ledger::Ledger;
use crate::name::QueueName;
use crate::residence::{QueueNo, Residence, RunningLease, Slot, WaitingStub};
use crate::runs::Ordered;
use crate::task::{Outcome, Task};
use crate::time::{Now, Timestamp};

impl Dispatch {
    /// Sets the counts of the live and the dead tasks that a queue has in the store. Runs when the engine starts.
    pub(crate) fn restore_population(&mut self, name: &QueueName, population: Population) {
        let queue = self.queues.open(name);
        (queue.live, queue.dead) = (population.live, population.dead);
        queue.used = true;
    }

    /// Counts a new task of its queue, as live or as dead.
    pub(crate) fn task_added(&mut self, task: &Task) {
        let queue = self.queues.open(&task.queue);
        *queue.tasks_like(task) += 1;
        queue.totals.added += 1;
        queue.used = true;
    }

    /// Counts the end of a task that was live or dead. If the queue is empty now, lists name it for at most another hour.
    pub(crate) fn task_ended(&mut self, ledger: &mut Ledger, task: &Task, outcome: Outcome) {
        let queue = self.queues.open(&task.queue);
        *queue.tasks_like(task) -= 1;
        queue.totals.ended += u64::from(outcome != Outcome::Forgotten);
        let event = match outcome {
            Outcome::Done(_) => Some(Event::Acked),
            Outcome::Cancelled | Outcome::Revoked(_) => Some(Event::Cancelled),
            Outcome::Forgotten => None,
        };
        if let Some(event) = event {
            ledger.counters_mut().count(&mut queue.figures, event);
        }
        self.queues.tidy(&task.queue);
    }

    /// Counts a live task that was given up: the task is dead now.
    pub(crate) fn task_died(&mut self, ledger: &mut Ledger, task: &Task) {
        let queue = self.queues.open(&task.queue);
        queue.live -= 1;
        queue.dead += 1;
        ledger.counters_mut().count(&mut queue.figures, Event::Dead);
    }

    /// Counts a dead task that is live again.
    pub(crate) fn task_revived(&mut self, task: &Task) {
        let queue = self.queues.open(&task.queue);
        queue.dead -= 1;
        queue.live += 1;
    }

    /// Counts a lease that ran out.
    pub(crate) fn lease_expired(&mut self, ledger: &mut Ledger, task: &Task) {
        let queue = self.queues.open(&task.queue);
        queue.totals.expiries += 1;
        ledger.counters_mut().count(&mut queue.figures, Event::Expired);
    }

    /// Notes that a stub of this queue has expired. `in_line`: its key, if the stub is ready, in the line or parked. Returns the name of the
    /// queue if this was not noted before.
    pub(crate) fn stub_expired(
        &mut self,
        no: QueueNo,
        id: u64,
        in_line: Option<ReadyKey>,
    ) -> Option<QueueName> {
        let queue = self.queues.numbered_mut(no);
        queue.expired.insert(id, in_line).then(|| queue.name.clone())
    }

    /// Removes the note that the stub of this task has expired, if there is such a note. After this call the task is counted by its record.
    pub(crate) fn end_expired_stub(&mut self, name: &QueueName, id: u64) {
        self.queues.open(name).expired.remove(id);
    }

    /// Whether this task is a stub in the line of its queue or among the parked tasks of its group.
    pub(crate) fn has_stub(&self, task: &Task) -> bool {
        self.queues.get(&task.queue).is_some_and(|queue| queue.has_stub(ReadyKey::of(task), task.group()))
    }

    /// Takes the stub of a ready task out of its line or out of the parked tasks, because the whole task is about to be in memory. Returns
    /// when the task became ready; `None`: the task has no such stub.
    pub(crate) fn take_stub(&mut self, task: &Task) -> Option<Timestamp> {
        let no = self.queues.number(&task.queue)?;
        let stub = self.queues.numbered_mut(no).take_stub(ReadyKey::of(task), task.group())?;
        assert_eq!(stub.id, task.id, "a place is one task's");
        Some(stub.since)
    }

    /// Returns an instant after which no ready task of this queue is due. `None`: no task is ready.
    pub(crate) fn last_due(&self, name: &QueueName) -> Option<Timestamp> {
        self.queues.get(name)?.last_due()
    }

    /// Whether the record of a ready task may leave memory: the task is parked, `Bounds::head` whole tasks or a stub are before it in its
    /// line, or the tasks in memory take more than the budget. Unless the task is parked, this is false while a call waits on the queue and
    /// the queue may hand out a task now.
    pub(crate) fn is_behind_head(&self, residence: &Residence, slot: Slot, now: Now) -> bool {
        let task = residence.task(slot);
        let Some(queue) = self.queues.get(&task.queue) else { return false };
        let place = ReadyPlace::of(task, slot);
        if queue.is_parked(place, task.group()) {
            return true;
        }
        // A waiting call may be about to get the task.
        if !queue.waiters.is_empty() && queue.allowance(now) > 0 {
            return false;
        }
        let head = self.bounds.head;
        residence.bytes() > residence.bytes_max()
            || queue.line.stubs().first().is_some_and(|stub| stub.key() < place.key)
            || queue.line.whole().range(..place).take(head).count() == head
    }

    /// Returns the entry to evict when the eviction meets this entry: this entry if it is parked, else the last whole task of its line.
    pub(crate) fn last_of_line(&self, task: &Task, slot: Slot) -> Option<Slot> {
        let queue = self.queues.get(&task.queue)?;
        if queue.is_parked(ReadyPlace::of(task, slot), task.group()) {
            return Some(slot);
        }
        queue.line.whole().last().map(|last| last.slot)
    }

    /// Adds a whole task to its line. `late_ms`: the task has just fired, with this lateness (ms), and the event is counted.
    pub(crate) fn join(&mut self, ledger: &mut Ledger, task: &Task, slot: Slot, late_ms: Option<u64>) {
        let place = ReadyPlace::of(task, slot);
        let queue = self.queues.open(&task.queue);
        let added = queue.join(place);
        assert!(added, "a task is ready once, but {place:?} already was");
        joined(queue, &mut self.to_serve, ledger, late_ms);
    }

    /// Adds a stub to the line of its queue. `late_ms`: the task has just fired, with this lateness (ms), and the event is counted.
    pub(crate) fn join_stub(
        &mut self,
        ledger: &mut Ledger,
        no: QueueNo,
        stub: ReadyStub,
        late_ms: Option<u64>,
    ) {
        let queue = self.queues.numbered_mut(no);
        queue.join_stub(stub);
        queue.expired.join(stub.id, stub.key());
        joined(queue, &mut self.to_serve, ledger, late_ms);
    }

    /// Replaces a whole ready task by its stub, in the same place of the line or of the parked tasks.
    pub(crate) fn shrink(&mut self, ledger: &mut Ledger, task: &Task, slot: Slot, since: Timestamp) {
        let no = self.number(&task.queue);
        let (place, stub) = (ReadyPlace::of(task, slot), ReadyStub::of(WaitingStub::of(task, no), since));
        let queue = self.queues.numbered_mut(no);
        let parked = task.group().filter(|group| queue.is_parked(place, Some(group)));
        queue.leave(place, task.group());
        match parked {
            Some(group) => queue.park(group, InLine::Stub(stub)),
            None => self.join_stub(ledger, no, stub, None),
        }
    }

    /// Takes a whole task out of its line or out of the parked tasks. Then one parked task of its group, if there is one, comes back into
    /// the line.
    pub(crate) fn leave(&mut self, task: &Task, slot: Slot) {
        let queue = self.queues.open(&task.queue);
        queue.leave(ReadyPlace::of(task, slot), task.group());
        make_way(queue, &mut self.to_serve, task);
    }

    /// Ends the lease of a task. Then one parked task of its group, if there is one, comes back into the line.
    pub(crate) fn end_lease(&mut self, task: &Task, lease: &RunningLease) {
        self.leases.end(lease);
        let queue = self.queues.open(&task.queue);
        queue.lease_ends(task.group());
        make_way(queue, &mut self.to_serve, task);
    }

    /// Takes a ready task out of its line or out of the parked tasks, for a worker, and counts the delivery. No parked task of its group
    /// comes back, because the worker has the task.
    pub(super) fn leave_for_worker(&mut self, ledger: &mut Ledger, task: &Task, slot: Slot) {
        let queue = self.queues.open(&task.queue);
        queue.leave(ReadyPlace::of(task, slot), task.group());
        ledger.counters_mut().count(&mut queue.figures, Event::Delivered);
    }
}

fn joined(queue: &mut Queue, to_serve: &mut BTreeSet<QueueName>, ledger: &mut Ledger, late_ms: Option<u64>) {
    if let Some(late_ms) = late_ms {
        ledger.counters_mut().count(&mut queue.figures, Event::Fired { late_ms });
    }
    if !queue.waiters.is_empty() {
        to_serve.insert(queue.name.clone());
    }
}

fn make_way(queue: &mut Queue, to_serve: &mut BTreeSet<QueueName>, task: &Task) {
    if queue.make_way(task.group()) {
        to_serve.insert(task.queue.clone());
    }
}
