//! What time does with the schedules: an instant comes, and a task is made of it.

use core::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use super::Engine;
use super::dead::ROOM_MIN;
use super::filling::{schedule_bytes, task_bytes};
use super::lookup::Keyed;
use super::schedules::{Asked, Phase, ScheduleId};
use crate::calls::Terms;
use crate::input::CallId;
use crate::schedule::{
    AskId, Cadence, CatchUp, InstantFound, MISSED_MS, Overlap, ScheduleRecord, Which, occurrence_key,
};
use crate::task::{Extra, Task};
use crate::time::{Now, Timestamp};

/// An expression fires no more often than once in so many milliseconds.
const CRON_STEP_MS: u64 = 1_000;

/// Nobody called for an occurrence, and nobody is answered.
const NO_CALL: CallId = CallId(0);

impl Engine {
    /// Tasks are made of the instants that have come by now.
    pub(super) fn schedules_fall_due(&mut self, now: Now) {
        if self.refuses_changes().is_some() || self.stopping {
            return;
        }
        if self.room_left() < ROOM_MIN {
            self.ask_room |= self.schedules.asks_for_room(now);
            return;
        }
        self.schedules.end_stall();
        // No more at once: the rest comes with the next step, and others are served between.
        for _ in 0..self.config.bounds.instants {
            let Some((at, id)) = self.schedules.pop_due(now, self.durable) else { return };
            self.instant_came(now, &id, at);
        }
    }

    /// When a schedule wants to be woken next. While there is no room for a task it does not.
    pub(super) fn next_occurrence(&self) -> Option<Timestamp> {
        let acts = self.refuses_changes().is_none() && !self.stopping && self.room_left() >= ROOM_MIN;
        self.schedules.next_due().filter(|_| acts)
    }

    /// Looks at every schedule with which something has happened in this step.
    pub(super) fn schedules_go_on(&mut self, now: Now) {
        if self.refuses_changes().is_some() || self.stopping {
            return;
        }
        while let Some(id) = self.schedules.pop_changed() {
            let Some(record) = self.schedules.get(&id).cloned() else { continue };
            if self.schedules.phase(&id) != Some(Phase::Waiting) {
                // It comes back when it is asked or made.
                continue;
            }
            match (record.waiting.first(), record.running) {
                (Some(&at), None) => self.make(now, &id, at),
                _ => self.schedules.wait(id),
            }
        }
    }

    fn instant_came(&mut self, now: Now, id: &ScheduleId, at: Timestamp) {
        let record = Arc::clone(self.schedules.get(id).expect("what is due is there"));
        let schedule = &record.schedule;
        let is_missed = now.wall.ms_since(at) > MISSED_MS && schedule.catch_up != CatchUp::All;
        match schedule.cadence {
            Cadence::Every { ms } if is_missed => {
                let last = last_of(&record, ms, missed_until(now)).map_or(at, |last| last.max(at));
                self.missed(now, id, last);
            }
            Cadence::Cron { .. } if is_missed => {
                self.ask_for_last(missed_until(now), id, Asked::Missed(id.clone()));
            }
            _ => self.occur(now, id, at),
        }
    }

    /// Instants were missed, and `last` is the last of them. Those after it are as good as on time.
    fn missed(&mut self, now: Now, id: &ScheduleId, last: Timestamp) {
        let record = self.schedules.get(id).expect("its instants are");
        let makes_up = record.schedule.catch_up == CatchUp::Once;
        let first = record.next.unwrap_or(last);
        // Those before the last one; of an expression nobody knows how many they are.
        let before = match record.schedule.cadence {
            Cadence::Every { ms } => last.ms_since(first) / ms,
            _ => u64::from(first < last),
        };
        let left_out = before + u64::from(!makes_up);
        let mut record = ScheduleRecord::clone(record);
        record.skipped = record.skipped.saturating_add(left_out);
        if !makes_up {
            record.decided = last;
            return self.step_schedule(id, record);
        }
        if before > 0 {
            record.next = Some(last);
            self.set_schedule(id, record);
        }
        self.occur(now, id, last);
    }

    /// The driver has told of an instant.
    pub(super) fn instant_found(&mut self, now: Now, ask: AskId, found: InstantFound) {
        match self.schedules.take_asked(ask) {
            None => {}
            Some(Asked::Put { call, put, begins }) => self.first_found(now, call, put, begins, found),
            // It has been put anew, or given up.
            Some(Asked::Next(id) | Asked::Missed(id) | Asked::LeftOut(id))
                if self.schedules.phase(&id) != Some(Phase::Asking(ask)) => {}
            Some(Asked::Next(id)) => {
                let record = Arc::clone(self.schedules.get(&id).expect("it was just asked about"));
                // The zone may be gone, with the database of another build: then it stands still, and that can be seen.
                let next = record.in_time(found.unwrap_or_default());
                self.schedules.set_phase(&id, Phase::Waiting);
                if next == record.next || self.refuses_changes().is_some() {
                    return self.schedules.change(id);
                }
                self.set_schedule(&id, ScheduleRecord { next, ..ScheduleRecord::clone(&record) });
            }
            Some(why @ (Asked::Missed(_) | Asked::LeftOut(_))) => self.last_found(now, why, found),
        }
    }

    fn last_found(&mut self, now: Now, why: Asked, found: InstantFound) {
        let (Asked::Missed(id) | Asked::LeftOut(id)) = &why else {
            unreachable!("{why:?} asks for the next")
        };
        self.schedules.set_phase(id, Phase::Waiting);
        if self.refuses_changes().is_some() {
            return;
        }
        let next = self.schedules.get(id).and_then(|record| record.next);
        match (found.unwrap_or_default().max(next), &why) {
            (Some(last), Asked::Missed(_)) => self.missed(now, id, last),
            (Some(last), _) => self.left_out(now, id, last, 1),
            (None, _) => self.schedules.change(id.clone()),
        }
    }

    /// An instant that counts: a task is made of it, unless the task before has to end first.
    fn occur(&mut self, now: Now, id: &ScheduleId, at: Timestamp) {
        let record = self.schedules.get(id).expect("its instant came");
        if record.running.is_none() || !record.schedule.takes_turns() {
            return self.make(now, id, at);
        }
        let may_wait =
            record.waiting.len() < ScheduleRecord::WAITING_MAX && self.schedules.has_place_to_wait();
        if record.schedule.overlap != Overlap::Queue || !may_wait {
            return self.leave_out(now, id, at);
        }
        let mut record = ScheduleRecord { decided: at, ..ScheduleRecord::clone(record) };
        record.waiting.push(at);
        self.step_schedule(id, record);
    }

    /// An instant is left out, and with it all that have come by now: what stands in its way stands in theirs.
    fn leave_out(&mut self, now: Now, id: &ScheduleId, at: Timestamp) {
        let record = Arc::clone(self.schedules.get(id).expect("its instant came"));
        match record.schedule.cadence {
            Cadence::Cron { .. } if now.wall.ms_since(at) >= CRON_STEP_MS => {
                self.ask_for_last(now.wall, id, Asked::LeftOut(id.clone()));
            }
            Cadence::Every { ms } => {
                let last = last_of(&record, ms, now.wall).map_or(at, |last| last.max(at));
                self.left_out(now, id, last, last.ms_since(at) / ms + 1);
            }
            _ => self.left_out(now, id, at, 1),
        }
    }

    fn left_out(&mut self, now: Now, id: &ScheduleId, last: Timestamp, count: u64) {
        let mut record = ScheduleRecord::clone(self.schedules.get(id).expect("its instant came"));
        (record.decided, record.next) = (last, record.after_a_delay(now));
        record.skipped = record.skipped.saturating_add(count);
        self.step_schedule(id, record);
    }

    /// Asks for the last instant until this one.
    fn ask_for_last(&mut self, until: Timestamp, id: &ScheduleId, why: Asked) {
        let record = Arc::clone(self.schedules.get(id).expect("its instant came"));
        let which = Which::LastUntil(until_of(&record, until));
        let ask = self.schedules.ask(&record.schedule, which, why);
        self.schedules.set_phase(id, Phase::Asking(ask.expect("a cron expression has to be asked about")));
    }

    fn make(&mut self, now: Now, id: &ScheduleId, at: Timestamp) {
        self.schedules.set_phase(id, Phase::Making(at));
        let key = occurrence_key(&id.1, at);
        self.keyed(now, NO_CALL, Keyed::Occurrence { schedule: id.clone(), key, at });
    }

    /// Makes the task of an instant, whose key is in memory or known not to be live.
    pub(super) fn occurrence(&mut self, now: Now, id: &ScheduleId, at: Timestamp) {
        if self.schedules.phase(id) != Some(Phase::Making(at)) || self.refuses_changes().is_some() {
            return;
        }
        let mut record = ScheduleRecord::clone(self.schedules.get(id).expect("it has a phase"));
        let key = occurrence_key(&id.1, at);
        let of_waiting = record.waiting.first() == Some(&at);
        if of_waiting {
            record.waiting.remove(0);
        } else {
            record.decided = at;
        }
        if self.live(&id.0, &key).is_some() {
            record.skipped = record.skipped.saturating_add(1);
            record.next = record.after_a_delay(now);
            return self.step_schedule(id, record);
        }
        if self.may_grow(&id.0).is_err() {
            if !of_waiting {
                return self.leave_out(now, id, at);
            }
            record.skipped = record.skipped.saturating_add(1);
            return self.step_schedule(id, record);
        }
        let dead = self.dead(&id.0, &key);
        let buried = dead.map_or(0, |dead| task_bytes(&self.entries.get(dead).task, false));
        let Terms { priority, group, retry, expire_after_ms } = record.schedule.terms.clone();
        let expire_at = expire_after_ms.map(|ms| now.wall.saturating_plus_ms(ms));
        let due_at = at.saturating_plus_ms(self.jitter_of(id, at, record.schedule.jitter_ms));
        let extra = Extra { group, retry, expire_at, ..Extra::default() }.boxed();
        let fresh = Task::new(id.0.clone(), key, Arc::clone(&record.schedule.body));
        let task = Task { due_at, put_at: now.wall, priority, extra, ..fresh };
        // The progress is written down with it.
        let needed = task_bytes(&task, false) + buried + schedule_bytes(id, &record);
        if self.take_room(needed).is_err() {
            return self.schedules.stall(id.clone());
        }
        if crate::planted::is("instant-lost") {
            // With this bug the schedule has come on before its task is there.
            self.step_schedule(id, ScheduleRecord { made: record.made + 1, next: None, ..record.clone() });
            self.seal();
        }
        // Both or neither: an instant without its task would be lost, and with it still to come it would be made twice.
        let slot = self.together(|engine| {
            let slot = engine.add(task, dead);
            record.made = record.made.saturating_add(1);
            record.last = Some(record.last.map_or(at, |last| last.max(at)));
            let takes_turns = record.schedule.takes_turns();
            record.running = takes_turns.then(|| engine.entries.get(slot).task.id);
            record.next = None;
            engine.step_schedule(id, record);
            slot
        });
        self.begin(slot, now);
    }

    /// Writes down that a schedule has come on, and finds out when it is next.
    pub(super) fn step_schedule(&mut self, id: &ScheduleId, mut record: ScheduleRecord) {
        record.next = match record.schedule.cadence {
            Cadence::Every { ms } => record.in_time(Cadence::next_after(ms, record.anchor, record.beyond())),
            Cadence::FixedDelay { .. } => record.in_time(record.next),
            Cadence::Cron { .. } => None,
        };
        self.set_schedule(id, record);
        self.schedules.ask_for_next(id);
    }

    /// A task has ended, or was given up. If a schedule waits for that, it goes on.
    pub(super) fn occurrence_ended(&mut self, now: Now, task: u64) {
        let Some(id) = self.schedules.waits_for(task).cloned() else { return };
        let mut record = ScheduleRecord::clone(self.schedules.get(&id).expect("it waits"));
        record.running = None;
        record.next = record.after_a_delay(now).map_or(record.next, |next| record.in_time(Some(next)));
        let phase = self.schedules.phase(&id).expect("it waits");
        self.set_schedule(&id, record);
        // What it was about to do it still does.
        self.schedules.set_phase(&id, phase);
    }

    /// By how much a task is due later than its instant: a number that nobody chose, the same whenever it is asked for.
    fn jitter_of(&self, id: &ScheduleId, at: Timestamp, jitter_ms: u64) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(b"jitter");
        hasher.write(id.0.as_str().as_bytes());
        hasher.write_u8(0);
        hasher.write(id.1.as_str().as_bytes());
        hasher.write_u64(at.as_tick());
        hasher.finish().checked_rem(jitter_ms.saturating_add(1)).unwrap_or(0)
    }
}

/// Instants count up to this one, or to the end.
fn until_of(record: &ScheduleRecord, until: Timestamp) -> Timestamp {
    record.schedule.end.map_or(until, |end| end.min(until))
}

/// The last instant, of those that can be counted, until this one.
fn last_of(record: &ScheduleRecord, ms: u64, until: Timestamp) -> Option<Timestamp> {
    Cadence::last_until(ms, record.anchor, until_of(record, until))
}

/// An instant is missed that is not after this one.
fn missed_until(now: Now) -> Timestamp {
    let missed = now.wall.as_ms().saturating_sub_unsigned(MISSED_MS + 1);
    Timestamp::from_ms(missed).unwrap_or_default()
}
