//! Near memory and its budget: which tasks are held whole, of which a stub is enough, and which leave.

use std::sync::Arc;

use super::Engine;
use super::dead::EXPIRY_BYTES;
use super::entries::{At, Slot, is_bulky};
use super::line::{InLine, ReadyPlace};
use super::queues::QueueNo;
use super::runs::{Ordered, Runs};
use super::stub::{ReadyKey, ReadyStub, STUB_BYTES, WaitingStub};
use crate::calls::State;
use crate::figures::Event;
use crate::name::QueueName;
use crate::seam::Place;
use crate::task::Task;
use crate::time::{Now, Timestamp};

/// What is in memory beside the entries.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// Tasks that are not due yet.
    waiting: Runs<WaitingStub>,
    /// Stubs in the lines of all queues.
    ready: u64,
    /// Bytes of what is in workers' hands: a part of what the entries take that stays.
    pub(super) leased_bytes: u64,
    /// The entry looked at last for something to let go.
    visited: Slot,
}

/// What may become of an entry that is durable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Rest {
    Whole,
    Stub,
    Out,
}

/// What the stub said of a task that has been found.
#[derive(Copy, Clone, Debug)]
pub(super) enum Met {
    Waiting,
    Ready { since: Timestamp },
}

impl Near {
    pub(super) fn stubs(&self) -> u64 {
        self.waiting.len() as u64 + self.ready
    }

    /// Whether there is a stub in any line.
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.waiting.first().map(|stub| stub.due_at)
    }
}

impl Engine {
    /// Bytes that near memory takes, about: tasks that are held whole, and 64 for each stub.
    #[must_use]
    pub fn near_bytes(&self) -> u64 {
        self.entries.bytes() + self.near.stubs() * STUB_BYTES + self.expiries.len() as u64 * EXPIRY_BYTES
    }

    /// Three quarters of the budget are in use: nothing more is loaded ahead, and what lies beyond what is loaded leaves.
    pub(super) fn is_full(&self) -> bool {
        let max = self.config.near_bytes_max;
        self.near_bytes() > max - max / 4
    }

    /// Half of the budget is free: more may be loaded ahead.
    pub(super) fn has_spare(&self) -> bool {
        self.near_bytes() <= self.config.near_bytes_max / 2
    }

    /// Whether there is too much that is held whole and need not be. An eighth of the budget is for the heads of the lines, whatever the
    /// stubs take.
    pub(super) fn sheds(&self) -> bool {
        self.is_full() && self.entries.bytes() - self.near.leased_bytes > self.config.near_bytes_max / 8
    }

    /// A durable entry that nothing needs leaves memory, or leaves a stub there, once no read under way can contradict it.
    pub(super) fn let_go(&mut self, slot: Slot, now: Now) {
        // A command may have let it go already.
        if !self.entries.has(slot) || self.entries.get(slot).dirty.is_some() {
            return;
        }
        let rest = self.rest_of(slot, now);
        if rest != Rest::Whole && self.reads_under_way() {
            return self.linger(slot);
        }
        self.rest(slot, rest);
    }

    /// The same for an entry that no read under way can contradict any more.
    pub(super) fn let_go_now(&mut self, slot: Slot, now: Now) {
        let rest = self.rest_of(slot, now);
        self.rest(slot, rest);
    }

    fn rest_of(&mut self, slot: Slot, now: Now) -> Rest {
        let place = Place::of(&self.entries.get(slot).task);
        if matches!(self.entries.get(slot).at, At::Far) && self.keeps(now, place) {
            // The horizon has come nearer since it was placed.
            self.place(slot, now);
        }
        let entry = self.entries.get(slot);
        match &entry.at {
            At::Far | At::Ended(_) => Rest::Out,
            At::Waiting(_) | At::Rewound if !self.keeps(now, place) => Rest::Out,
            At::Waiting(_) | At::Rewound if entry.bulky || self.sheds() => Rest::Stub,
            At::Ready { .. } if (entry.bulky || self.sheds()) && self.is_behind_head(slot, now) => Rest::Stub,
            At::Waiting(_) | At::Rewound | At::Ready { .. } | At::Leased(_) => Rest::Whole,
        }
    }

    /// Whether a ready task stands so far back in its line that its record is not needed soon.
    fn is_behind_head(&self, slot: Slot, now: Now) -> bool {
        let task = &self.entries.get(slot).task;
        let Some(queue) = self.queues.get(&task.queue) else { return false };
        let place = ReadyPlace::of(task, slot);
        if queue.is_parked(place, task.group()) {
            return true;
        }
        // Whoever waits is about to have it, unless nothing is handed out.
        if !queue.waiters.is_empty() && queue.allowance(now) > 0 {
            return false;
        }
        let head = self.config.bounds.head;
        self.near_bytes() > self.config.near_bytes_max
            || queue.line.stubs().first().is_some_and(|stub| stub.key() < place.key)
            || queue.line.whole().range(..place).take(head).count() == head
    }

    fn rest(&mut self, slot: Slot, rest: Rest) {
        if rest == Rest::Whole {
            return;
        }
        let task = Arc::clone(&self.entries.get(slot).task);
        let since = match self.entries.get(slot).at {
            At::Ready { since } => Some(since),
            _ => None,
        };
        if let (Rest::Stub, Some(since)) = (rest, since) {
            return self.shrink(slot, &task, since);
        }
        // A dead task that can be forgotten no more is not missed.
        let live = self
            .entries
            .get(slot)
            .state()
            .is_some_and(|state| state != State::Dead || self.refuses_changes().is_none());
        self.unplace(slot);
        self.entries.remove(slot);
        match rest {
            Rest::Stub => {
                self.watch_shrunk(&task);
                self.add_waiting_stub(&task);
            }
            Rest::Out if live => {
                self.unwatch_expiry(&task);
                self.left(Place::of(&task));
            }
            Rest::Out | Rest::Whole => {}
        }
    }

    /// Of a ready task only a stub stays, where the task stood.
    fn shrink(&mut self, slot: Slot, task: &Task, since: Timestamp) {
        let (place, stub) = (ReadyPlace::of(task, slot), ReadyStub::of(task, since));
        let queue = self.queues.open(&task.queue);
        let parked = task.group().filter(|group| queue.is_parked(place, Some(group)));
        queue.leave(place, task.group());
        match parked {
            Some(group) => {
                self.near.ready += 1;
                queue.park(group, InLine::Stub(stub));
            }
            None => self.add_ready_stub(&task.queue, stub, None),
        }
        self.watch_shrunk(task);
        self.entries.remove(slot);
    }

    /// Gives memory back, a bounded step at a time, if too much of it is in use.
    pub(super) fn shed(&mut self, now: Now) {
        let mut visits = self.config.bounds.shed_visits;
        while visits > 0
            && self.sheds()
            && let Some(slot) = self.entries.next_slot(self.near.visited)
        {
            visits -= 1;
            self.near.visited = slot;
            self.visit(slot, now);
        }
        // Only stubs beyond what loading ahead may bring: else what is dropped would be loaded again at once.
        let max = self.config.near_bytes_max;
        let mut drops = self.config.bounds.shed_drops;
        while drops > 0
            && self.near_bytes() > max - max / 8
            && self.near.stubs() * STUB_BYTES > max - max / 4
            && let Some(last) = self.near.waiting.last().copied()
            && last.due_at > self.must_until(now)
        {
            drops -= 1;
            self.near.waiting.pop_last();
            self.left(last.key());
        }
    }

    fn visit(&mut self, slot: Slot, now: Now) {
        if !self.entries.has(slot) {
            return;
        }
        let entry = self.entries.get(slot);
        let slot = match &entry.at {
            At::Waiting(_) | At::Rewound => Some(slot),
            // Whichever entry of a line is met, the line is shed from its end.
            At::Ready { .. } => self.queues.get(&entry.task.queue).and_then(|queue| {
                let parked = queue.is_parked(ReadyPlace::of(&entry.task, slot), entry.task.group());
                if parked { Some(slot) } else { queue.line.whole().last().map(|last| last.slot) }
            }),
            At::Far | At::Leased(_) | At::Ended(_) => None,
        };
        if let Some(slot) = slot
            && self.entries.get(slot).lingers.is_none()
        {
            self.let_go(slot, now);
        }
    }

    /// Takes a durable task from a scan into memory, as a stub if its record need not be there.
    pub(super) fn take_in(&mut self, now: Now, task: Arc<Task>) {
        if self.entries.by_id(task.id).is_some() || self.has_stub(&task) {
            return;
        }
        let whole = !is_bulky(&task) && !self.is_full();
        if whole || self.goes_on(&task) {
            self.load(now, task);
        } else if task.dead().is_some() {
            self.add_waiting_stub(&task);
        } else if task.due_at <= now.wall {
            let late_ms = self.late_ms(&task, now);
            self.add_ready_stub(&task.queue, ReadyStub::of(&task, now.wall), late_ms);
            self.watch_stub(&task, now);
        } else {
            self.watch_stub(&task, now);
            self.add_waiting_stub(&task);
        }
    }

    /// Stubs of what is due by now join their lines.
    pub(super) fn stubs_fall_due(&mut self, now: Now) {
        while let Some(stub) = self.near.waiting.first().copied().filter(|stub| stub.due_at <= now.wall) {
            self.near.waiting.pop_first();
            if stub.dead {
                self.forget_stub(stub.id);
                continue;
            }
            let late_ms = now.wall.ms_since(stub.due_at);
            self.join_line(stub.queue, stub.ready(now.wall), Some(late_ms));
        }
    }

    fn add_waiting_stub(&mut self, task: &Task) {
        let queue = self.queues.number(&task.queue).expect("a queue is there while it has live tasks");
        self.near.waiting.insert(WaitingStub::of(task, queue));
    }

    fn add_ready_stub(&mut self, queue: &QueueName, stub: ReadyStub, late_ms: Option<u64>) {
        let queue = self.queues.number(queue).expect("a queue is there while it has live tasks");
        self.join_line(queue, stub, late_ms);
    }

    /// `late_ms`: its instant has come, this long ago.
    fn join_line(&mut self, queue: QueueNo, stub: ReadyStub, late_ms: Option<u64>) {
        self.near.ready += 1;
        let queue = self.queues.numbered_mut(queue);
        queue.join_stub(stub);
        queue.expired.join(stub.id);
        if let Some(late_ms) = late_ms {
            self.stats.count(&mut queue.figures, Event::Fired { late_ms });
        }
        if !queue.waiters.is_empty() {
            self.to_serve.insert(queue.name.clone());
        }
    }

    /// Whether memory has a stub of this task. The store's record has the stub's place: a change of either would need the
    /// task whole.
    fn has_stub(&self, task: &Task) -> bool {
        self.near.waiting.get(Place::of(task)).is_some() || self.has_ready_stub(task)
    }

    pub(super) fn has_ready_stub(&self, task: &Task) -> bool {
        self.queues.get(&task.queue).is_some_and(|queue| queue.has_stub(ReadyKey::of(task), task.group()))
    }

    /// Takes the stub of this task away, for the task itself is there now.
    pub(super) fn take_stub(&mut self, task: &Task) -> Option<Met> {
        if self.near.waiting.remove(Place::of(task)).is_some() {
            return Some(Met::Waiting);
        }
        let no = self.queues.number(&task.queue)?;
        let stub = self.queues.numbered_mut(no).take_stub(ReadyKey::of(task), task.group())?;
        assert_eq!(stub.id, task.id, "a place is one task's");
        self.near.ready -= 1;
        Some(Met::Ready { since: stub.since })
    }
}
