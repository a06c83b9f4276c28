//! The effect of time on the schedules. When an instant comes, the schedule makes a task for it, lets it wait, or leaves it out.

use core::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use super::Recurrence;
use super::schedules::{Asked, Phase, Sought};
use crate::ledger::{Ledger, ROOM_MIN};
use crate::schedule::{
    AskId, Cadence, CatchUp, FoundInstant, InstantFound, MISSED_MS, Overlap, ScheduleId, ScheduleRecord,
    Which,
};
use crate::time::{Now, Timestamp};

/// While this many instants of all schedules together wait for live tasks to end, further instants do not wait but are left out. An
/// import of schedules may bring more.
const WAITING_IN_ALL_MAX: usize = 100_000;

/// The shortest time between two instants of a cron expression (ms).
const CRON_STEP_MS: u64 = 1_000;

impl Recurrence {
    /// Handles the instants that have come by now, at most `instants_max`: a task is to be made for the instant, or the instant waits or is
    /// left out. If the store has too little room, handles none, and may ask the store for its room. Does nothing once no changes are taken
    /// or the engine is stopping.
    pub(crate) fn fall_due(&mut self, ledger: &mut Ledger, now: Now) {
        if !ledger.takes_changes() || ledger.is_stopping() {
            return;
        }
        if ledger.room_left() < ROOM_MIN {
            if self.asks_for_room(now) {
                ledger.ask_for_room();
            }
            return;
        }
        self.changed.append(&mut self.stalled);
        self.ask_about_moved();
        // Further instants are handled in the next step, so that calls are served in between.
        for _ in 0..self.instants_max {
            let Some((at, id)) = self.pop_due(now, ledger.durable()) else { return };
            self.instant_came(ledger, now, &id, at);
        }
    }

    /// Returns the earliest instant that a schedule waits for. `None`: there is none, the store takes no changes or has too little room, or
    /// the engine is stopping.
    pub(crate) fn next_wake(&self, ledger: &Ledger) -> Option<Timestamp> {
        let acts = ledger.takes_changes() && !ledger.is_stopping() && ledger.room_left() >= ROOM_MIN;
        let next = if self.moved.is_empty() { self.next_due() } else { Some(Timestamp::EPOCH) };
        next.filter(|_| acts)
    }

    /// Decides for every schedule that has changed whether a task is to be made or the schedule waits. Returns whether there are tasks to
    /// make. Once no changes are taken or the engine is stopping, does nothing and returns `false`.
    pub(crate) fn go_on(&mut self, ledger: &Ledger) -> bool {
        if !ledger.takes_changes() || ledger.is_stopping() {
            return false;
        }
        while let Some(id) = self.changed.pop_first() {
            let Some(record) = self.get(&id).cloned() else { continue };
            if self.phase(&id) != Some(Phase::Waiting) {
                // The schedule is looked at again once the driver has answered or the task is made.
                continue;
            }
            match record.waiting.first() {
                Some(&at) if !record.has_to_wait() => self.want_task(&id, at),
                _ => self.wait(id),
            }
        }
        !self.to_make.is_empty()
    }

    fn instant_came(&mut self, ledger: &mut Ledger, now: Now, id: &ScheduleId, at: Timestamp) {
        let record = Arc::clone(self.get(id).expect("what is due is there"));
        let schedule = &record.schedule;
        let is_missed = now.wall.ms_since(at) > MISSED_MS && schedule.catch_up != CatchUp::All;
        match schedule.cadence {
            Cadence::Every { ms } if is_missed => {
                let last = last_of(&record, ms, missed_until(now)).map_or(at, |last| last.max(at));
                self.missed(ledger, now, id, FoundInstant::last_of_interval(ms, at, last));
            }
            Cadence::Cron { .. } if is_missed => self.ask_for_last(missed_until(now), id, Sought::LastMissed),
            _ => self.occur(ledger, now, id, at),
        }
    }

    /// Handles the missed instants of a schedule up to the last one, `last`, which tells how many they are. Counts the instants that get no
    /// task as skipped. With [`CatchUp::Once`], handles the last one as an instant that has just come.
    fn missed(&mut self, ledger: &mut Ledger, now: Now, id: &ScheduleId, last: FoundInstant) {
        let FoundInstant { at, count, .. } = last;
        let record = self.get(id).expect("its instants are");
        let makes_up = record.schedule.catch_up == CatchUp::Once;
        let before = count - 1;
        let left_out = before + u64::from(!makes_up);
        let mut record = ScheduleRecord::clone(record);
        record.skipped = record.skipped.saturating_add(left_out);
        if !makes_up {
            record.decide(last);
            return self.step(ledger, id, record);
        }
        if before > 0 {
            (record.next, record.next_offset_s) = (Some(at), last.offset_s);
            self.set(ledger, id, record);
        }
        self.occur(ledger, now, id, at);
    }

    /// Takes in the driver's answer to the question `ask`: an instant, none, or an error.
    pub(crate) fn instant_found(&mut self, ledger: &mut Ledger, now: Now, ask: AskId, found: InstantFound) {
        let (id, sought) = match self.asked.remove(&ask) {
            None => return,
            Some(Asked::Put { call, put, begins }) => {
                return self.first_found(ledger, now, call, put, begins, found);
            }
            Some(Asked::Instant(id, sought)) => (id, sought),
        };
        if self.phase(&id) != Some(Phase::Asking(ask)) {
            // The schedule was put again or deleted while the driver was asked.
            return;
        }
        self.set_phase(&id, Phase::Waiting);
        let record = Arc::clone(self.get(&id).expect("it has a phase"));
        // An error counts as no instant. For example, the time zone database of this build may lack the zone. Without a next instant, no
        // further instant comes, and the view of the schedule shows none.
        let found = found.unwrap_or_default();
        let now = now.unheld();
        let instant = found.map(|found| found.at);
        match sought {
            Sought::Next => {
                let mut noted = ScheduleRecord::clone(&record);
                noted.note_next(found);
                // Without room, a known instant gets its task, and its offset is learnt again at the next start.
                let is_known = noted.next == record.next
                    && (noted.offset_s == record.offset_s || ledger.room_left() < ROOM_MIN);
                if is_known || !ledger.takes_changes() {
                    return self.change(id);
                }
                self.set(ledger, &id, noted);
            }
            Sought::LastMissed | Sought::LastLeftOut | Sought::Decided if !ledger.takes_changes() => {}
            Sought::Decided => {
                // No instant gets a second task: not one that has a task, and not one that waits for it.
                let used = record.last.max(record.waiting.last().copied()).unwrap_or_default();
                let decided = found.filter(|found| found.at >= used).unwrap_or(FoundInstant::one(used));
                if instant.is_none() || decided.at == record.decided {
                    if !self.ask_for_next(&id) {
                        self.change(id);
                    }
                    return;
                }
                let mut record = ScheduleRecord::clone(&record);
                // The next instant was found by the rules of before.
                record.next_offset_s = None;
                record.decide(decided);
                self.step(ledger, &id, record);
            }
            Sought::LastMissed | Sought::LastLeftOut => {
                // The instant that came counts, even if the driver does not know it any more.
                let came = record.next.map(FoundInstant::one);
                let last = found.filter(|found| Some(found.at) >= record.next && found.count > 0).or(came);
                match last {
                    None => self.change(id),
                    Some(last) if sought == Sought::LastMissed => self.missed(ledger, now, &id, last),
                    Some(last) => self.left_out(ledger, now, &id, last),
                }
            }
        }
    }

    /// Handles an instant that has come and that may get a task. If a live task has to end first, the instant waits or is left out.
    /// Otherwise a task is to be made.
    pub(crate) fn occur(&mut self, ledger: &mut Ledger, now: Now, id: &ScheduleId, at: Timestamp) {
        let record = self.get(id).expect("its instant came");
        if !record.has_to_wait() {
            return self.want_task(id, at);
        }
        if record.is_uncounted() {
            // The instant comes again once the live tasks are known.
            return self.wait(id.clone());
        }
        let may_wait =
            record.waiting.len() < ScheduleRecord::WAITING_MAX && self.waiting < WAITING_IN_ALL_MAX;
        if record.schedule.overlap != Overlap::Queue || !may_wait {
            return self.leave_out(ledger, now, id, at);
        }
        let mut record = ScheduleRecord::clone(record);
        record.decide(FoundInstant::one(at));
        record.waiting.push(at);
        self.step(ledger, id, record);
    }

    /// Leaves out the instant `at` and all later instants that have come by now, because the obstacle is the same for all of them. For a
    /// cron expression, the driver may have to be asked for the last of these instants. Then the instants are left out once the driver has
    /// answered.
    pub(crate) fn leave_out(&mut self, ledger: &mut Ledger, now: Now, id: &ScheduleId, at: Timestamp) {
        let record = Arc::clone(self.get(id).expect("its instant came"));
        match record.schedule.cadence {
            Cadence::Cron { .. } if now.wall.ms_since(at) >= CRON_STEP_MS => {
                self.ask_for_last(now.wall, id, Sought::LastLeftOut);
            }
            Cadence::Every { ms } => {
                let last = last_of(&record, ms, now.wall).map_or(at, |last| last.max(at));
                self.left_out(ledger, now, id, FoundInstant::last_of_interval(ms, at, last));
            }
            _ => self.left_out(ledger, now, id, FoundInstant::one(at)),
        }
    }

    fn left_out(&mut self, ledger: &mut Ledger, now: Now, id: &ScheduleId, last: FoundInstant) {
        let mut record = ScheduleRecord::clone(self.get(id).expect("its instant came"));
        record.decide(last);
        record.next = record.after_a_delay(now);
        record.skipped = record.skipped.saturating_add(last.count);
        self.step(ledger, id, record);
    }

    /// Asks the driver for the last instant of a cron expression at `until` or before, and not after the end of the schedule, and for the
    /// number of instants that have come. The schedule waits for the answer.
    fn ask_for_last(&mut self, until: Timestamp, id: &ScheduleId, sought: Sought) {
        let record = Arc::clone(self.get(id).expect("its instant came"));
        let until = until_of(&record, until);
        let which = Which::LastUntil { from: record.next.unwrap_or(until), until };
        let ask = self.ask(&record.schedule, which, Asked::Instant(id.clone(), sought));
        self.set_phase(id, Phase::Asking(ask.expect("a cron expression has to be asked about")));
    }

    fn want_task(&mut self, id: &ScheduleId, at: Timestamp) {
        self.set_phase(id, Phase::Making(at));
        self.to_make.push_back((id.clone(), at));
    }

    /// Sets the next instant of `record`, and writes the record down. For a cron expression, writes down no next instant, and asks the
    /// driver for the next instant unless the count is used up.
    pub(crate) fn step(&mut self, ledger: &mut Ledger, id: &ScheduleId, mut record: ScheduleRecord) {
        record.next_offset_s = None;
        record.next = match record.schedule.cadence {
            Cadence::Every { ms } => record.in_time(Cadence::next_after(ms, record.anchor, record.beyond())),
            Cadence::FixedDelay { .. } => record.in_time(record.next),
            Cadence::Cron { .. } => None,
        };
        self.set(ledger, id, record);
        self.ask_for_next(id);
    }

    /// Returns by how much later than its instant a task is due (ms), at most `jitter_ms`. The number comes from a keyed hash: no client
    /// can choose it, and each computation gives the same number.
    pub(crate) fn jitter_of(&self, id: &ScheduleId, at: Timestamp, jitter_ms: u64) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(b"jitter");
        hasher.write(id.0.as_str().as_bytes());
        hasher.write_u8(0);
        hasher.write(id.1.as_str().as_bytes());
        hasher.write_u64(at.as_tick());
        hasher.finish().checked_rem(jitter_ms.saturating_add(1)).unwrap_or(0)
    }
}

/// Returns `until`, or the end of the schedule if the end is earlier.
fn until_of(record: &ScheduleRecord, until: Timestamp) -> Timestamp {
    record.schedule.end.map_or(until, |end| end.min(until))
}

/// Returns the last instant at `until` or before, and not after the end of the schedule, for a fixed interval of `ms`.
fn last_of(record: &ScheduleRecord, ms: u64, until: Timestamp) -> Option<Timestamp> {
    Cadence::last_until(ms, record.anchor, until_of(record, until))
}

/// Returns the latest instant that passed more than [`MISSED_MS`] ago.
fn missed_until(now: Now) -> Timestamp {
    let missed = now.wall.as_ms().saturating_sub_unsigned(MISSED_MS + 1);
    Timestamp::from_ms(missed).unwrap_or_default()
}
