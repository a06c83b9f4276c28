//! Tasks that are given up: by their retry policy or because they expired; what becomes of them, and when they are forgotten.

use core::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use super::Engine;
use super::entries::{At, Slot};
use super::filling::task_bytes;
use super::lookup::Keyed;
use super::queues::QueueNo;
use crate::calls::{Answer, Redrive, RedriveError, TaskView};
use crate::figures::Event;
use crate::input::CallId;
use crate::name::QueueName;
use crate::seam::Found;
use crate::task::{Dead, Death, Failed, Failure, Outcome, Redriven, Task};
use crate::time::{Now, Timestamp};

/// A task in memory that expires, in the order of time. Its id finds it again.
pub(super) type Expiry = (Timestamp, u64, QueueNo);

/// With less room than that in the store time changes no task and makes none: what has expired, and the instants of schedules, wait.
pub(super) const ROOM_MIN: u64 = 1 << 20;

/// The instants at which tasks are forgotten that a worker gave up begin here, a thousand years after the first of all: in the order in
/// which they were given up, and never.
pub(super) const BURIED_FROM: Timestamp = match Timestamp::from_ms(1_000 * 365_250 * 86_400) {
    Some(instant) => instant,
    None => unreachable!(),
};

/// What an entry of that order takes, about.
pub(super) const EXPIRY_BYTES: u64 = 48;

/// How a lease ended that was not acked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Lapse {
    pub(super) how: Failed,
    /// When the task is due again, unless it is given up.
    pub(super) again: Again,
    /// Another priority for it.
    pub(super) priority: Option<u32>,
    /// What its worker said.
    pub(super) reason: Option<Arc<str>>,
}

/// When a task is due again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Again {
    /// At once, in its old place.
    AtOnce,
    /// As its retry policy says.
    ByPolicy,
    /// Then.
    At(Timestamp),
}

impl Lapse {
    /// It ran out.
    pub(super) const EXPIRED: Self =
        Self { how: Failed::LeaseEnded, again: Again::AtOnce, priority: None, reason: None };
}

impl Engine {
    /// A lease ended without an ack: the attempt counts. The task is ready in its old place, due again later, or dead.
    pub(super) fn lease_ended(&mut self, slot: Slot, now: Now, lapse: Lapse) {
        if crate::planted::is("death-parted-from-attempt") {
            return self.count_attempt(slot, now, lapse);
        }
        // The attempt and the death that follows from it are one change: a crash must not keep the first alone.
        self.together(|engine| engine.count_attempt(slot, now, lapse));
    }

    fn count_attempt(&mut self, slot: Slot, now: Now, lapse: Lapse) {
        self.unplace(slot);
        let fence = self.next_lease;
        let counts = !crate::planted::is("attempt-not-counted");
        let task = &self.entries.get(slot).task;
        let attempts = task.attempts.saturating_add(1);
        let retry = self.retry_of(task);
        let death = match task.expire_at() {
            _ if lapse.how == Failed::Buried && !crate::planted::is("burial-forgotten") => {
                Some(Death::Buried)
            }
            _ if retry.max_attempts.is_some_and(|max| attempts >= max) => Some(Death::MaxAttempts),
            Some(at) if at <= now.wall => Some(Death::Expired),
            _ => None,
        };
        let due_at = match death {
            Some(_) => None,
            None => self.due_again(now, task, attempts, lapse.again),
        };
        self.record(slot, |task| {
            fail(task, now, lapse.how, lapse.reason);
            if lapse.how == Failed::Nacked {
                task.extra_mut().tally.delay_ms = Some(due_at.map_or(0, |due_at| due_at.ms_since(now.wall)));
            }
            task.priority = lapse.priority.unwrap_or(task.priority);
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
        if let Some(why) = death {
            return self.die(slot, now, why);
        }
        // Its expiry may have passed while it was leased, and the clock may have stepped back since.
        let task = Arc::clone(&self.entries.get(slot).task);
        self.watch_expiry(&task);
        match due_at {
            // Ready stays ready, also if the wall clock has stepped back since.
            None => self.make_ready(slot, now.wall),
            Some(_) => self.place(slot, now),
        }
    }

    /// When a task whose attempt failed is due again; `None`: at once, in its old place.
    fn due_again(&self, now: Now, task: &Task, attempts: u32, again: Again) -> Option<Timestamp> {
        let due_at = match again {
            Again::AtOnce => return None,
            Again::ByPolicy => {
                let backoff =
                    self.retry_of(task).backoff.filter(|_| !crate::planted::is("backoff-forgotten"))?;
                let wait_ms = backoff.wait_ms(attempts, self.chance(task)).min(self.config.farthest_ms);
                self.nack_instant(now, Some(wait_ms).filter(|&ms| ms > 0)?)?
            }
            Again::At(due_at) => due_at,
        };
        // It is not put off beyond the moment at which it is given up.
        Some(due_at.min(task.expire_at().unwrap_or(Timestamp::MAX)))
    }

    /// A number that nobody chose, the same whenever this attempt of this task is asked for.
    fn chance(&self, task: &Task) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(b"backoff");
        hasher.write_u64(task.id);
        hasher.write_u64(task.lease_fence.0);
        hasher.finish()
    }

    /// When a task is forgotten that is given up now.
    pub(super) fn forgotten_at(&mut self, now: Now, why: Death) -> Timestamp {
        match why {
            Death::MaxAttempts | Death::Expired => now.wall.saturating_plus_ms(self.config.dead_ms),
            Death::Buried => {
                // Never; and each after those before it, though they were buried in one millisecond, or the clock has stepped back.
                let in_order = self.last_burial.saturating_plus_ms(1);
                self.last_burial = BURIED_FROM.saturating_plus_ms(now.wall.as_tick()).max(in_order);
                self.last_burial
            }
        }
    }

    /// Gives a task up that stands nowhere. It is kept for a while, for people to look at.
    pub(super) fn die(&mut self, slot: Slot, now: Now, why: Death) {
        let forgotten_at = self.forgotten_at(now, why);
        let fence = self.next_lease;
        self.together(|engine| {
            engine.record(slot, |task| {
                let dead = Dead { at: now.wall, due_at: task.due_at, why, keyless: false };
                task.extra_mut().dead = Some(dead);
                task.due_at = forgotten_at;
                task.lease_fence = fence;
                task.lease = None;
            });
            engine.occurrence_ended(now, engine.entries.get(slot).task.id);
        });
        let task = Arc::clone(&self.entries.get(slot).task);
        self.unwatch_expiry(&task);
        let queue = self.queues.open(&task.queue);
        queue.live -= 1;
        queue.dead += 1;
        self.stats.count(&mut queue.figures, Event::Dead);
        self.place(slot, now);
    }

    /// A task in memory expires: it is watched.
    pub(super) fn watch_expiry(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task).filter(|_| task.dead().is_none()) {
            self.expiries.insert(expiry, task.due_at);
        }
    }

    /// A task leaves a stub: the stub is found by its due time only, so the watch notes that time.
    pub(super) fn watch_shrunk(&mut self, task: &Task) {
        if let Some(due_at) = self.expiry_of(task).and_then(|expiry| self.expiries.get_mut(&expiry)) {
            *due_at = task.due_at;
        }
    }

    pub(super) fn unwatch_expiry(&mut self, task: &Task) {
        if let Some(expiry) = self.expiry_of(task) {
            self.expiries.remove(&expiry);
        }
    }

    fn expiry_of(&self, task: &Task) -> Option<Expiry> {
        let at = task.expire_at()?;
        let queue = self.queues.number(&task.queue).expect("a queue is there while it has tasks");
        Some((at, task.id, queue))
    }

    /// Gives up what has expired by now. What is in workers' hands may still be finished.
    pub(super) fn expire(&mut self, now: Now) {
        if self.refuses_changes().is_some() {
            return;
        }
        while let Some((&(at, id, queue), &due_at)) = self.expiries.first_key_value()
            && at <= now.wall
        {
            self.expiries.pop_first();
            match self.entries.by_id(id) {
                Some(_) if crate::planted::is("expiry-forgotten") => {}
                Some(slot) => self.expire_one(slot, now),
                None => self.expire_stub(id, queue, due_at <= now.wall),
            }
        }
    }

    /// A stub has expired: it counts as dead from now on, and its record is fetched to write that down.
    fn expire_stub(&mut self, id: u64, queue: QueueNo, in_line: bool) {
        let queue = self.queues.numbered_mut(queue);
        if queue.expired.insert(id, in_line) {
            let name = queue.name.clone();
            self.overdue.push_back((id, Some(name)));
        }
    }

    /// Gives a task up that has expired, unless somebody has it.
    pub(super) fn expire_one(&mut self, slot: Slot, now: Now) {
        let entry = self.entries.get(slot);
        let expired = entry.task.expire_at().is_some_and(|at| at <= now.wall) && !entry.is_dead();
        let waits = matches!(entry.at, At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. });
        if expired && waits && self.refuses_changes().is_none() {
            self.unplace(slot);
            self.die(slot, now, Death::Expired);
        }
    }

    /// A task from a scan that stays a stub: if it has expired by now it is given up like those that were here before.
    pub(super) fn watch_stub(&mut self, task: &Task, now: Now) {
        match self.expiry_of(task) {
            Some((at, id, queue)) if at <= now.wall && self.refuses_changes().is_none() => {
                self.expire_stub(id, queue, task.due_at <= now.wall);
            }
            Some(expiry) => drop(self.expiries.insert(expiry, task.due_at)),
            None => {}
        }
    }

    /// A dead task, a stub, is to be forgotten. Once nothing can be written down any more it is left alone.
    pub(super) fn forget_stub(&mut self, id: u64) {
        if self.refuses_changes().is_none() {
            self.overdue.push_back((id, None));
        }
    }

    /// Asks for the records of stubs that time has to do with, some at a time.
    pub(super) fn fetch_overdue(&mut self) {
        if self.refuses_changes().is_some() {
            return self.overdue.clear();
        }
        // What they bring has to be written, too.
        while self.lookups.overdue() < self.config.bounds.overdue
            && !self.filling.has_backlog()
            && let Some((_, expired)) = self.overdue.front()
            && (expired.is_none() || self.room_left() >= ROOM_MIN)
            && let Some((id, expired)) = self.overdue.pop_front()
        {
            self.lookups.want_overdue(id, expired);
        }
    }

    /// Whether records of such stubs are still to be asked for.
    pub(super) fn has_overdue(&self) -> bool {
        !self.overdue.is_empty() && self.room_left() >= ROOM_MIN
    }

    /// The store answered with the record of such a stub. Expired or forgotten, it is so as soon as it is here.
    pub(super) fn overdue_found(&mut self, now: Now, id: u64, expired: Option<&QueueName>, found: Found) {
        if let Some(name) = expired {
            self.queues.open(name).expired.remove(id);
        }
        if let Found::Live(task) = found
            && let Some(slot) = self.load(now, task)
        {
            self.let_go(slot, now);
        }
        if let Some(name) = expired {
            self.queues.tidy(name);
        }
    }

    /// A dead task whose time has come is forgotten.
    pub(super) fn forget(&mut self, slot: Slot, now: Now) {
        self.entries.get_mut(slot).at = At::Far;
        if self.refuses_changes().is_none() {
            self.end(now, slot, Outcome::Forgotten);
        }
    }

    /// Its key is about to be another task's: from now on it is found by its id alone.
    pub(super) fn take_key_from(&mut self, slot: Slot) {
        debug_assert!(self.entries.get(slot).is_dead(), "only the dead lose their keys");
        self.record(slot, |task| {
            if let Some(dead) = &mut task.extra_mut().dead {
                dead.keyless = true;
            }
        });
    }

    /// Looks for the dead task, then for whoever has its key.
    pub(super) fn redrive(&mut self, now: Now, call: CallId, redrive: Redrive) {
        match self.entries.by_id(redrive.id) {
            Some(slot) => self.redrive_known(now, call, redrive, slot),
            None => self.lookups.want_dead(call, redrive),
        }
    }

    /// The store answered with the task that is to be redriven. Nothing else is taken into memory for it.
    pub(super) fn dead_found(&mut self, now: Now, call: CallId, redrive: Redrive, found: Found) {
        if let Found::Live(task) = found
            && task.dead().is_some()
            && task.queue == redrive.queue
        {
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
            // It may be dead still: what memory knows was perhaps not written down, and never will be.
            let why = self.refusal_of_changes().map_or(RedriveError::NotFound, RedriveError::from);
            return self.answer(call, Answer::Redrive(Err(why)));
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
            None => self.decide_redrive(now, slot, Redriven::ByOwner),
        };
        self.answer(call, Answer::Redrive(answer));
        self.let_go(slot, now);
    }

    /// Gives a dead task another life.
    pub(super) fn decide_redrive(
        &mut self,
        now: Now,
        slot: Slot,
        by: Redriven,
    ) -> Result<TaskView, RedriveError> {
        let task = Arc::clone(&self.entries.get(slot).task);
        if !self.entries.get(slot).is_dead() {
            return Err(RedriveError::NotFound);
        }
        if let Some(live) = self.live(&task.queue, &task.key) {
            let live = &self.entries.get(live).task;
            return Err(RedriveError::Live { id: live.id, version: live.version });
        }
        if let Some(limit) = self.backlog_limit(&task.queue) {
            return Err(RedriveError::BacklogFull { limit });
        }
        // Its body may have to be written again.
        self.take_room(task_bytes(&task, false))?;
        let other = self.dead(&task.queue, &task.key).filter(|&other| other != slot);
        self.unplace(slot);
        self.together(|engine| {
            if let Some(other) = other {
                engine.take_key_from(other);
            }
            engine.live_again(now, slot, by);
        });
        self.entries.index_key(slot);
        let queue = self.queues.open(&task.queue);
        queue.dead -= 1;
        queue.live += 1;
        self.stats.scheduled_total += u64::from(by == Redriven::ByOwner);
        self.place(slot, now);
        Ok(self.view(slot))
    }

    fn live_again(&mut self, now: Now, slot: Slot, by: Redriven) {
        let (fence, version) = (self.next_lease, self.applied.next());
        self.record(slot, |task| {
            let put_at = task.put_at;
            let extra = task.extra_mut();
            // The delay that it was given stays known.
            let delay_ms = extra.dead.take().map(|dead| dead.due_at.ms_since(put_at));
            extra.tally.delay_ms = extra.tally.delay_ms.or(delay_ms);
            extra.expire_at = None;
            extra.tally.count_redrive(by);
            task.attempts = 0;
            task.due_at = now.wall;
            // Also if a worker takes it: of two tasks that had a key, the one that has it later has the higher version.
            task.version = version;
            task.lease_fence = fence;
        });
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
    task.extra_mut().tally.count(how);
}
