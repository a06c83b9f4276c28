//! Makes a task for an instant of a schedule.

use std::sync::Arc;

use crate::ledger::{schedule_bytes, task_bytes};
use crate::schedule::{FoundInstant, ScheduleId, ScheduleRecord, occurrence_key};
use crate::task::Task;
use crate::tasks::Tasks;
use crate::time::Timestamp;

impl Tasks<'_> {
    /// Makes the task of an instant of a schedule, unless a live task has the same key or the queue takes no more tasks. The caller has
    /// looked up the key of the task: a live task with the key is in memory, if there is one.
    pub(crate) fn occurrence(&mut self, id: &ScheduleId, at: Timestamp) {
        if !self.recurrence.is_making(id, at) || !self.ledger.takes_changes() {
            return;
        }
        let mut record = ScheduleRecord::clone(self.recurrence.get(id).expect("it has a phase"));
        let key = occurrence_key(&id.1, at);
        let of_waiting = record.waiting.first() == Some(&at);
        if record.has_to_wait() {
            // A task of the name has become live while the key was looked up.
            return if of_waiting {
                self.recurrence.wait(id.clone());
            } else {
                self.recurrence.occur(self.ledger, self.now.unheld(), id, at);
            };
        }
        if of_waiting {
            record.waiting.remove(0);
        } else {
            record.decide(FoundInstant::one(at));
        }
        if self.residence.live(&id.0, &key).is_some() {
            record.skipped = record.skipped.saturating_add(1);
            record.next = record.after_a_delay(self.now);
            return self.recurrence.step(self.ledger, id, record);
        }
        if self.dispatch.may_grow(&id.0).is_err() {
            if !of_waiting {
                return self.recurrence.leave_out(self.ledger, self.now.unheld(), id, at);
            }
            record.skipped = record.skipped.saturating_add(1);
            return self.recurrence.step(self.ledger, id, record);
        }
        let dead = self.residence.dead(&id.0, &key);
        let buried = dead.map_or(0, |dead| task_bytes(self.residence.task(dead), false));
        let due_at = at.saturating_plus_ms(self.recurrence.jitter_of(id, at, record.schedule.jitter_ms));
        let terms = record.schedule.terms.clone();
        let (priority, extra) = (terms.priority, terms.kept(self.now.latest()).boxed());
        let fresh = Task::new(id.0.clone(), key, Arc::clone(&record.schedule.body));
        let task = Task { due_at, put_at: self.now.wall, priority, extra, ..fresh };
        // The schedule's progress is written down with the task, so room is taken for both.
        let needed = task_bytes(&task, false) + buried + schedule_bytes(id, &record);
        if self.ledger.take_room(needed).is_err() {
            return self.recurrence.stall(id.clone());
        }
        // Both changes have to be durable together. With the progress alone, the instant would get no task. With the task alone, the
        // instant would get a second task.
        let slot = self.together(|tasks| {
            let slot = tasks.add(task, dead);
            record.made = record.made.saturating_add(1);
            record.last = Some(record.last.map_or(at, |last| last.max(at)));
            record.running.clone_from(&tasks.recurrence.get(id).expect("it has a phase").running);
            record.next = None;
            tasks.recurrence.step(tasks.ledger, id, record);
            slot
        });
        self.enter(slot);
        self.place(slot);
    }
}
