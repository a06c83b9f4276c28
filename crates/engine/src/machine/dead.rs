//! Tasks that are given up: by their retry policy or because they expired; what becomes of them, and when they are forgotten.

use core::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use super::Engine;
use super::entries::{At, Slot};
use super::lookup::Keyed;
use crate::answer::{Answer, RedriveError, TaskView};
use crate::command::Redrive;
use crate::input::CallId;
use crate::seam::Found;
use crate::task::{Dead, Death, Failed, Failure, Outcome, Task};
use crate::time::{Now, Timestamp};

/// A task in memory that expires, in the order of time. Its id finds it again.
pub(super) type Expiry = (Timestamp, u64);

/// What an entry of that order takes, about.
pub(super) const EXPIRY_BYTES: u64 = 32;

/// How a lease ended that was not acked.
#[derive(Clone, Debug)]
pub(super) struct Lapse {
    pub(super) how: Failed,
    /// What its worker said.
    pub(super) reason: Option<Arc<str>>,
    /// When its worker wants it to be due again; `None`: as its policy says.
    pub(super) due_at: Option<Timestamp>,
}

impl Engine {
    /// A lease ended without an ack: the attempt counts. The task is ready in its old place, due again later, or dead.
    pub(super) fn lease_ended(&mut self, slot: Slot, now: Now, lapse: Lapse) {
        self.unplace(slot);
        let fence = self.next_lease;
        let counts = !crate::planted::is("attempt-not-counted");
        let task = &self.entries.get(slot).task;
        let attempts = task.attempts.saturating_add(1);
        let (retry, expire_at) = (task.retry(), task.expire_at());
        let due_at = match lapse.due_at {
            None if lapse.how == Failed::Nacked => {
                let wait_ms = retry.backoff.map(|backoff| backoff.wait_ms(attempts, self.chance(task)));
                wait_ms.filter(|&ms| ms > 0).and_then(|ms| self.nack_instant(now, ms))
            }
            due_at => due_at,
        };
        // It is not put off beyond the moment at which it is given up.
        let due_at = due_at.map(|due_at| due_at.min(expire_at.unwrap_or(Timestamp::MAX)));
        self.record(slot, |task| {
            fail(task, now, lapse.how, lapse.reason);
            task.attempts = task.attempts.saturating_add(u32::from(counts));
            task.lease_fence = fence;
            task.lease = None;
            if let Some(due_at) = due_at {
                task.due_at = due_at;
            }
        });
        if !counts {
            // With this bug memory knows of the attempt, and the store does not.
            Arc::make_mut(&mut self.entries.get_mut(slot).task).attempts += 1;
        }
        if retry.max_attempts.is_some_and(|max| attempts >= max) {
            return self.die(slot, now, Death::MaxAttempts);
        }
        if expire_at.is_some_and(|at| at <= now.wall) {
            return self.die(slot, now, Death::Expired);
        }
        match due_at {
            // Ready stays ready, also if the wall clock has stepped back since.
            None => self.make_ready(slot, now.wall),
            Some(_) => self.place(slot, now),
        }
    }

    /// A number that nobody chose, the same whenever this attempt of this task is asked for.
    fn chance(&self, task: &Task) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(b"backoff");
        hasher.write_u64(task.id);
        hasher.write_u64(task.lease_fence.0);
        hasher.finish()
    }

    /// Gives a task up that stands nowhere. It is kept for a while, for people to look at.
    pub(super) fn die(&mut self, slot: Slot, now: Now, why: Death) {
        let forgotten_at = now.wall.saturating_plus_ms(self.config.dead_ms);
        let fence = self.next_lease;
        self.record(slot, |task| {
            let dead = Dead { at: now.wall, due_at: task.due_at, why, keyless: false };
            task.extra_mut().dead = Some(dead);
            task.due_at = forgotten_at;
            task.lease_fence = fence;
            task.lease = None;
        });
        let task = Arc::clone(&self.entries.get(slot).task);
        self.unwatch_expiry(&task);
        let queue = self.queues.open(&task.queue);
        queue.live -= 1;
        queue.dead += 1;
        self.stats.dead_total += 1;
        self.place(slot, now);
    }

    /// A task in memory expires: it is watched.
    pub(super) fn watch_expiry(&mut self, task: &Task) {
        if let Some(at) = task.expire_at().filter(|_| task.dead().is_none()) {
            self.expiries.insert((at, task.id));
        }
    }

    pub(super) fn unwatch_expiry(&mut self, task: &Task) {
        if let Some(at) = task.expire_at() {
            self.expiries.remove(&(at, task.id));
        }
    }

    /// Gives up what has expired by now. What is in workers' hands may still be finished.
    pub(super) fn expire(&mut self, now: Now) {
        if self.refuses_changes().is_some() {
            return;
        }
        while let Some(&(at, id)) = self.expiries.first()
            && at <= now.wall
        {
            self.expiries.pop_first();
            match self.entries.by_id(id) {
                Some(slot) => self.expire_one(slot, now),
                // Only a stub is in memory, or the task has left it.
                None => self.lookups.want_overdue(id),
            }
        }
    }

    fn expire_one(&mut self, slot: Slot, now: Now) {
        let entry = self.entries.get(slot);
        let waits = match entry.at {
            At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. } => !entry.is_dead(),
            At::Leased(_) | At::Ended(_) => false,
        };
        if waits {
            self.unplace(slot);
            self.die(slot, now, Death::Expired);
        }
    }

    /// The store answered with a task of which memory had only a stub, when time had to do with it: it expired, or it was dead for so
    /// long that it is forgotten.
    pub(super) fn overdue_found(&mut self, now: Now, found: Found) {
        self.lookups.overdue_done();
        let Found::Live(task) = found else { return };
        let (id, dead) = (task.id, task.dead().is_some());
        self.load(now, task);
        let Some(slot) = self.entries.by_id(id) else { return };
        let expired = self.entries.get(slot).task.expire_at().is_some_and(|at| at <= now.wall);
        if !dead && expired && self.refuses_changes().is_none() {
            self.expire_one(slot, now);
        }
        self.let_go(slot, now);
    }

    /// A dead task whose time has come is forgotten.
    pub(super) fn forget(&mut self, slot: Slot, now: Now) {
        self.entries.get_mut(slot).at = At::Far;
        if self.refuses_changes().is_none() {
            self.end(now, slot, Outcome::Forgotten);
        }
    }

    /// Its key is about to be another task's: from now on it is found by its id alone.
    pub(super) fn take_key_from(&mut self, slot: Slot, now: Now) {
        self.record(slot, |task| {
            if let Some(dead) = &mut task.extra_mut().dead {
                dead.keyless = true;
            }
        });
        debug_assert!(self.entries.get(slot).is_dead(), "at {now:?}");
    }

    /// Looks for the dead task, then for whoever has its key.
    pub(super) fn redrive(&mut self, now: Now, call: CallId, redrive: Redrive) {
        match self.entries.by_id(redrive.id) {
            Some(slot) => self.redrive_known(now, call, redrive, slot),
            None => self.lookups.want_dead(call, redrive),
        }
    }

    /// The store answered with the task that is to be redriven.
    pub(super) fn dead_found(&mut self, now: Now, call: CallId, redrive: Redrive, found: Found) {
        if let Found::Live(task) = found {
            self.load(now, task);
        }
        match self.entries.by_id(redrive.id) {
            Some(slot) => self.redrive_known(now, call, redrive, slot),
            None => self.answer(call, Answer::Redrive(Err(RedriveError::NotFound))),
        }
    }

    fn redrive_known(&mut self, now: Now, call: CallId, redrive: Redrive, slot: Slot) {
        let entry = self.entries.get(slot);
        if !entry.is_dead() || entry.task.queue != redrive.queue {
            return self.answer(call, Answer::Redrive(Err(RedriveError::NotFound)));
        }
        let key = entry.task.key.clone();
        self.keyed(now, call, Keyed::Redrive { redrive, key });
    }

    /// Redrives a task whose key is in memory, or known to lead to nobody.
    pub(super) fn redrive_keyed(&mut self, now: Now, call: CallId, redrive: Redrive) {
        let Some(slot) = self.entries.by_id(redrive.id) else {
            // It left memory while its key was looked up.
            return self.redrive(now, call, redrive);
        };
        let answer = match self.refusal_of_changes() {
            Some(why) => Err(why.into()),
            None => self.decide_redrive(now, slot),
        };
        self.answer(call, Answer::Redrive(answer));
        self.let_go(slot, now);
    }

    fn decide_redrive(&mut self, now: Now, slot: Slot) -> Result<TaskView, RedriveError> {
        let task = Arc::clone(&self.entries.get(slot).task);
        if !self.entries.get(slot).is_dead() {
            return Err(RedriveError::NotFound);
        }
        if let Some(live) = self.live(&task.queue, &task.key) {
            let live = &self.entries.get(live).task;
            return Err(RedriveError::Live { id: live.id, version: live.version });
        }
        self.take_room(super::filling::task_bytes(&task, true))?;
        if let Some(other) = self.dead(&task.queue, &task.key).filter(|&other| other != slot) {
            self.take_key_from(other, now);
            self.let_go(other, now);
        }
        self.unplace(slot);
        let (fence, version) = (self.next_lease, self.applied.next());
        self.record(slot, |task| {
            let extra = task.extra_mut();
            extra.dead = None;
            extra.expire_at = None;
            task.attempts = 0;
            task.due_at = now.wall;
            task.version = version;
            task.lease_fence = fence;
        });
        self.entries.index_key(slot);
        let queue = self.queues.open(&task.queue);
        queue.dead -= 1;
        queue.live += 1;
        self.stats.scheduled_total += 1;
        self.place(slot, now);
        Ok(self.view(slot))
    }
}

/// Adds a failure to what is remembered of them.
pub(super) fn fail(task: &mut Task, now: Now, how: Failed, reason: Option<Arc<str>>) {
    let attempt = task.attempts.saturating_add(1);
    let failures = &mut task.extra_mut().failures;
    if failures.len() >= Failure::KEPT {
        failures.remove(0);
    }
    failures.push(Failure { at: now.wall, attempt, how, reason });
}
