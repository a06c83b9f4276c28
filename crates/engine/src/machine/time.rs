//! Time passes: tasks fall due, leases run out. And the one place that says where a task stands.

use std::sync::Arc;

use tickwheel_core::{Handle, TimerQueue};

use super::Engine;
use super::dead::Lapse;
use super::entries::{At, Held, Slot};
use super::leases::{Holder, Running};
use super::line::ReadyPlace;
use crate::figures::Event;
use crate::planted;
use crate::task::{LeaseNo, Task};
use crate::time::{Now, Timestamp};
use crate::wheel::WheelView;

/// How late a task is ready, milliseconds. What was put when its instant was over already is late by its owner's wish.
fn lateness_ms(task: &Task, now: Now) -> u64 {
    now.wall.ms_since(task.due_at.max(task.put_at))
}

impl Engine {
    /// Makes ready what is due and ends the leases that ran out, in this order: an expired lease puts its task in its old
    /// place among those that are due.
    pub(super) fn pass_time(&mut self, now: Now) {
        self.queues.pass_time(now);
        let mut due: Vec<Slot> = Vec::new();
        self.wheel.advance_with(now.wall.as_tick(), |_, slot| due.push(slot));
        while let Some(&(due_at, slot)) = self.rewound.first()
            && due_at <= now.wall
        {
            self.rewound.pop_first();
            due.push(slot);
        }
        for slot in due {
            // With this bug the wheel still has places that a reschedule left; those that were reused fire too.
            let left = || !self.entries.has(slot) || !matches!(self.entries.get(slot).at, At::Waiting(_));
            if planted::is("old-instant-fires") && left() {
                continue;
            }
            self.entries.get_mut(slot).at = At::Far;
            self.fall_due(slot, now);
        }

        self.stubs_fall_due(now);
        self.expire(now);
        self.end_pauses(now);
        self.gates_open(now);
        self.schedules_fall_due(now);

        let mut ended: Vec<Slot> = Vec::new();
        self.lease_wheel.advance_with(now.mono_tick(), |_, slot| ended.push(slot));
        if planted::is("wall-clock-wait") {
            let by_wall = |&slot: &Slot| matches!(&self.entries.get(slot).at, At::Leased(held) if held.until <= now.wall);
            ended = self
                .leases
                .values()
                .map(|running| running.slot)
                .filter(|slot| ended.contains(slot) || by_wall(slot))
                .collect();
        }
        // Once the store has failed the end of a lease cannot be written down: the task stays with its worker, and the next
        // life gives it to somebody else.
        if self.failed.is_some() {
            return;
        }
        for slot in ended {
            let task = Arc::clone(&self.entries.get(slot).task);
            let queue = self.queues.open(&task.queue);
            queue.totals.expiries += 1;
            self.stats.count(&mut queue.figures, Event::Expired);
            self.lease_ended(slot, now, Lapse::EXPIRED);
        }
    }

    pub(super) fn view_of_wheel(&self, now: Now) -> WheelView {
        WheelView { now: now.wall, tasks: self.wheel.len() as u64, rings: self.wheel.rings() }
    }

    /// The instant of an entry has come, which stands nowhere.
    fn fall_due(&mut self, slot: Slot, now: Now) {
        if self.entries.get(slot).is_dead() {
            return self.forget(slot, now);
        }
        let late_ms = lateness_ms(&self.entries.get(slot).task, now);
        self.join_ready(slot, now.wall, Some(late_ms));
    }

    /// Puts a task of the store, whose entry stands nowhere, where its `due_at` says. One that was ready in a life before has fired then.
    pub(super) fn place_stored(&mut self, slot: Slot, now: Now) {
        let task = &self.entries.get(slot).task;
        if task.dead().is_none() && task.due_at <= now.wall && self.late_ms(task, now).is_none() {
            return self.make_ready(slot, now.wall);
        }
        self.place(slot, now);
    }

    /// How late a task of the store is ready, which is due; `None`: it was ready before this life began, and was counted then.
    pub(super) fn late_ms(&self, task: &Task, now: Now) -> Option<u64> {
        let fires_now = task.due_at.max(task.put_at) > self.ready_before;
        fires_now.then(|| lateness_ms(task, now))
    }

    /// Puts an entry that stands nowhere where its `due_at` says.
    pub(super) fn place(&mut self, slot: Slot, now: Now) {
        let due_at = self.entries.get(slot).task.due_at;
        if due_at <= now.wall {
            return self.fall_due(slot, now);
        }
        self.entries.get_mut(slot).at = if due_at > self.keep_until(now) {
            At::Far
        } else {
            match self.wheel.insert(due_at.as_tick(), slot) {
                Ok(handle) => At::Waiting(handle),
                // The wheel has passed it, the wall clock has not: it stepped back.
                Err(_) => {
                    self.rewound.insert((due_at, slot));
                    At::Rewound
                }
            }
        };
    }

    /// Puts an entry that stands nowhere into its line again, where it was before, or at a wish: its instant did not come just now.
    pub(super) fn make_ready(&mut self, slot: Slot, since: Timestamp) {
        self.join_ready(slot, since, None);
    }

    /// `late_ms`: its instant has come, this long ago.
    fn join_ready(&mut self, slot: Slot, since: Timestamp, late_ms: Option<u64>) {
        let entry = self.entries.get_mut(slot);
        entry.at = At::Ready { since };
        let place = ReadyPlace::of(&entry.task, slot);
        let queue = entry.task.queue.clone();
        let line = self.queues.open(&queue);
        let added = line.join(place);
        assert!(added, "a task is ready once, but {place:?} already was");
        if let Some(late_ms) = late_ms {
            self.stats.count(&mut line.figures, Event::Fired { late_ms });
        }
        if !line.waiters.is_empty() {
            self.to_serve.insert(queue);
        }
    }

    /// Puts a task in a worker's hands until the wall clock would show `until`, which its worker is told. The lease runs by the
    /// monotonic clock and ends no earlier than that, as long as both clocks run alike. The entry stands nowhere.
    pub(super) fn hold(
        &mut self,
        slot: Slot,
        no: LeaseNo,
        ready_since: Timestamp,
        until: Timestamp,
        holder: Holder,
        now: Now,
    ) {
        let timer = self.start_lease_timer(slot, until, now);
        self.leases.insert(no, Running { slot, holder });
        self.near.leased_bytes += self.entries.bytes_of(slot);
        let entry = self.entries.get_mut(slot);
        entry.at = At::Leased(Held { no, timer, until, ready_since, paced: false });
        let task = Arc::clone(&entry.task);
        self.queues.open(&task.queue).lease_begins(task.group());
    }

    fn start_lease_timer(&mut self, slot: Slot, until: Timestamp, now: Now) -> Handle {
        let deadline = if planted::is("lease-ends-before-told") {
            // Both ends of a lease are rounded up for themselves.
            now.mono_ns.div_ceil(1_000_000).saturating_add(until.ms_since(now.wall))
                - u64::from(now.wall_sub_ns > 0)
        } else {
            now.mono_deadline(until)
        };
        let deadline = deadline.clamp(self.lease_wheel.now() + 1, u64::MAX - 1);
        match self.lease_wheel.insert(deadline, slot) {
            Ok(handle) => handle,
            Err(refused) => {
                unreachable!("deadline {deadline} is inside the wheel's range: {:?}", refused.why)
            }
        }
    }

    /// Takes an entry out of whatever index it stands in. Its caller gives it a new place at once.
    pub(super) fn unplace(&mut self, slot: Slot) {
        let entry = self.entries.get_mut(slot);
        let task = &entry.task;
        match core::mem::replace(&mut entry.at, At::Far) {
            At::Far | At::Ended(_) => {}
            At::Waiting(handle) => {
                if !planted::is("old-instant-fires") {
                    let found = self.wheel.cancel(handle);
                    assert_eq!(found, Some(slot), "a waiting task is in the wheel");
                }
            }
            At::Rewound => {
                self.rewound.remove(&(task.due_at, slot));
            }
            At::Ready { .. } => {
                let (task, place) = (Arc::clone(task), ReadyPlace::of(task, slot));
                let queue = self.queues.open(&task.queue);
                queue.leave(place, task.group());
                if queue.make_way(task.group()) {
                    self.to_serve.insert(task.queue.clone());
                }
            }
            At::Leased(held) => {
                let task = Arc::clone(task);
                self.leases.remove(&held.no);
                self.near.leased_bytes -= self.entries.bytes_of(slot);
                self.lease_wheel.cancel(held.timer);
                let queue = self.queues.open(&task.queue);
                queue.lease_ends(task.group());
                if queue.make_way(task.group()) {
                    self.to_serve.insert(task.queue.clone());
                }
            }
        }
    }
}
