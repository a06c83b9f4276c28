//! The schedules in memory: the record of each schedule, and the event that the schedule waits for.

use std::sync::Arc;

use super::Recurrence;
use crate::calls::{PutSchedule, ScheduleError, ScheduleView};
use crate::input::{CallId, Effect};
use crate::ledger::{Ledger, schedule_bytes};
use crate::name::{QueueName, ScheduleName};
use crate::schedule::{AskId, Cadence, InstantWanted, Schedule, ScheduleId, ScheduleRecord, Which};
use crate::time::{Now, Seq, Timestamp};

/// At most this many schedules are kept: all of them are in memory, and in every checkpoint.
const SCHEDULES_MAX: usize = 10_000;
/// The largest size of the records of all schedules together, without the instants that wait (bytes, about).
const BYTES_MAX: u64 = 16 << 20;
/// The schedules of one scope have at most one of this many parts of both.
const SCOPE_SHARE: u8 = 4;

/// While schedules wait for room, they ask the store for its room at most once in this time (ms).
const ROOM_ASKED_MS: u64 = 1_000;

/// A schedule in memory, and the event that it waits for.
#[derive(Debug)]
pub(super) struct Scheduled {
    record: Arc<ScheduleRecord>,
    phase: Phase,
    /// The number of the last change of the record; 0: the record has not changed since the engine started.
    seq: Seq,
}

/// The event that a schedule waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The schedule waits for its next instant, for the end of its running tasks, for the search for live tasks of its name, for a commit or
    /// for room, or it is over.
    Waiting,
    /// The task of this instant is to be made: its key may have to be looked up first.
    Making(Timestamp),
    /// The driver is asked for an instant.
    Asking(AskId),
}

/// The put or the stored schedule that needs the answer to a question to the driver.
#[derive(Debug)]
pub(super) enum Asked {
    /// The first instant of a schedule that is put. The call is answered once the driver has answered.
    Put { call: CallId, put: PutSchedule, begins: Begins },
    /// An instant of a stored schedule.
    Instant(ScheduleId, Sought),
}

/// The instant of a cron schedule that the driver is asked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Sought {
    /// The next instant.
    Next,
    /// The last instant that the schedule missed.
    LastMissed,
    /// The last instant that the schedule has to leave out.
    LastLeftOut,
    /// The instant up to which all are decided, under the new rules of the zone.
    Decided,
}

/// Where the instants of a new or changed schedule begin.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Begins {
    pub(super) anchor: Timestamp,
    pub(super) decided: Timestamp,
    /// Whether the schedule goes on from the one that it replaces, because both have the same cadence and start.
    pub(super) goes_on: bool,
}

impl Recurrence {
    /// Takes in a schedule that the store has, when the engine starts. Asks the driver for the next instant of a cron expression. The rules of
    /// the zone may have changed since the last run, so the driver is asked before whether the decided instants have moved.
    pub(crate) fn restore(&mut self, id: ScheduleId, record: &ScheduleRecord) {
        self.insert(id.clone(), Arc::new(record.clone()), Seq::ZERO);
        if !self.ask_for_decided(&id) && !self.ask_for_next(&id) {
            self.changed.insert(id);
        }
    }

    pub(crate) fn get(&self, id: &ScheduleId) -> Option<&Arc<ScheduleRecord>> {
        self.by_name.get(id).map(|one| &one.record)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the number of schedules of a queue.
    pub(crate) fn of_queue(&self, name: &QueueName) -> u64 {
        let from = (name.clone(), ScheduleName::first());
        self.by_name.range(from..).take_while(|(id, _)| id.0 == *name).count() as u64
    }

    /// Returns the number of instants, of all schedules, that wait for live tasks to end.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the number of the last change of a schedule, 0 if there is none since the engine started.
    pub(super) fn seq_of(&self, id: &ScheduleId) -> Seq {
        self.by_name.get(id).map_or(Seq::ZERO, |one| one.seq)
    }

    pub(super) fn phase(&self, id: &ScheduleId) -> Option<Phase> {
        self.by_name.get(id).map(|one| one.phase)
    }

    pub(super) fn insert(&mut self, id: ScheduleId, record: Arc<ScheduleRecord>, seq: Seq) {
        self.remove(&id);
        self.bytes += schedule_bytes(&id, &record);
        self.waiting += record.waiting.len();
        if record.is_uncounted() {
            self.uncounted.insert(id.clone());
            self.uncounted_queues.insert(id.0.clone());
        }
        self.by_name.insert(id, Scheduled { record, phase: Phase::Waiting, seq });
    }

    pub(super) fn remove(&mut self, id: &ScheduleId) -> Option<Arc<ScheduleRecord>> {
        let Scheduled { record, .. } = self.by_name.remove(id)?;
        if let Some(next) = record.next {
            self.due.remove(&(next, id.clone()));
        }
        self.uncounted.remove(id);
        self.changed.remove(id);
        self.stalled.remove(id);
        self.not_durable.remove(id);
        self.bytes -= schedule_bytes(id, &record);
        self.waiting -= record.waiting.len();
        Some(record)
    }

    pub(super) fn set_phase(&mut self, id: &ScheduleId, phase: Phase) {
        let one = self.by_name.get_mut(id).expect("only a schedule that is there has a phase");
        if let (Phase::Waiting, Some(next)) = (one.phase, one.record.next) {
            self.due.remove(&(next, id.clone()));
        }
        one.phase = phase;
    }

    /// Lets a schedule wait for its next instant, if it has one, or until the search for live tasks of its name is over.
    pub(crate) fn wait(&mut self, id: ScheduleId) {
        self.set_phase(&id, Phase::Waiting);
        if !self.uncounted.contains(&id)
            && let Some(next) = self.get(&id).and_then(|record| record.next)
        {
            self.due.insert((next, id));
        }
    }

    /// Lets a schedule wait until the store has room.
    pub(crate) fn stall(&mut self, id: ScheduleId) {
        self.set_phase(&id, Phase::Waiting);
        self.stalled.insert(id);
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Returns whether to ask the store for its room now: a schedule waits for room or an instant has come, and the last question, if any,
    /// was at least [`ROOM_ASKED_MS`] ago. If so, notes the time of the question.
    pub(super) fn asks_for_room(&mut self, now: Now) -> bool {
        let waits = !self.stalled.is_empty() || self.next_due().is_some_and(|at| at <= now.wall);
        let asks = waits && self.room_asked_ms.is_none_or(|at| now.mono_tick() >= at + ROOM_ASKED_MS);
        if asks {
            self.room_asked_ms = Some(now.mono_tick());
        }
        asks
    }

    /// Takes out the next schedule that is due by now and whose last change is durable. Moves each due schedule that it finds before, whose
    /// last change is not durable, to `not_durable`.
    pub(super) fn pop_due(&mut self, now: Now, durable: Seq) -> Option<(Timestamp, ScheduleId)> {
        loop {
            let first = self.due.first().filter(|(at, _)| *at <= now.wall)?.clone();
            self.due.remove(&first);
            if self.by_name[&first.1].seq <= durable {
                return Some(first);
            }
            self.not_durable.insert(first.1);
        }
    }

    /// Notes that a commit is durable: the schedules that waited for one are looked at again.
    pub(crate) fn made_durable(&mut self) {
        self.changed.append(&mut self.not_durable);
    }

    /// Checks that the schedules stay within their limits if `record` is added or replaces the record `before`, and takes room in the store
    /// for `record`. A record that is no larger than `before` always passes the check. Cost: looks at each schedule of the scope.
    ///
    /// # Errors
    /// [`ScheduleError::TooMany`], [`ScheduleError::ShareUsedUp`], or the store has no room.
    pub(crate) fn take_place(
        &self,
        ledger: &mut Ledger,
        id: &ScheduleId,
        before: Option<&ScheduleRecord>,
        record: &ScheduleRecord,
        scope: Option<&[Arc<str>]>,
    ) -> Result<(), ScheduleError> {
        let had = before.map_or(0, |before| schedule_bytes(id, before));
        let needed = schedule_bytes(id, record);
        let is_above = |schedules: usize, bytes: u64, parts: u8| {
            let too_many = before.is_none() && schedules >= SCHEDULES_MAX / usize::from(parts);
            too_many || needed > had && bytes.saturating_sub(had) + needed > BYTES_MAX / u64::from(parts)
        };
        let (schedules, bytes) = (self.by_name.len(), self.bytes);
        if is_above(schedules, bytes, 1) {
            return Err(ScheduleError::TooMany { schedules, bytes });
        }
        if let Some((schedules, bytes)) = scope.map(|scope| self.of_scope(scope))
            && is_above(schedules, bytes, SCOPE_SHARE)
        {
            return Err(ScheduleError::ShareUsedUp { schedules, bytes });
        }
        Ok(ledger.take_room(needed)?)
    }

    /// Returns the number of schedules of these queues, and the size of their records (bytes, about). `scope` has names of queues, and
    /// beginnings of names that end with a slash.
    fn of_scope(&self, scope: &[Arc<str>]) -> (usize, u64) {
        let (mut schedules, mut bytes) = (0, 0);
        for part in scope {
            let Ok(first) = QueueName::new(part) else { continue };
            let is_part = |name: &QueueName| match part.ends_with('/') {
                true => name.as_str().starts_with(&**part),
                false => name.as_str() == &**part,
            };
            let of_part = self.by_name.range((first, ScheduleName::first())..);
            for (id, one) in of_part.take_while(|(id, _)| is_part(&id.0)) {
                (schedules, bytes) = (schedules + 1, bytes + schedule_bytes(id, &one.record));
            }
        }
        (schedules, bytes)
    }

    pub(super) fn change(&mut self, id: ScheduleId) {
        self.changed.insert(id);
    }

    /// Whether the driver has answered all questions, and no search asks the store for live tasks.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty() && !self.is_asking_store()
    }

    pub(super) fn ask(&mut self, schedule: &Schedule, which: Which, why: Asked) -> Option<AskId> {
        let Cadence::Cron { text, zone } = &schedule.cadence else { return None };
        self.last_ask += 1;
        let ask = AskId(self.last_ask);
        let wanted = InstantWanted { text: Arc::clone(text), zone: Arc::clone(zone), which };
        self.asks.push(Effect::Ask { ask, wanted });
        self.asked.insert(ask, why);
        Some(ask)
    }

    /// Takes in that the rules of these zones have changed.
    pub(crate) fn zones_changed(&mut self, zones: &[Arc<str>]) {
        for (id, one) in &self.by_name {
            if let Cadence::Cron { zone, .. } = &one.record.schedule.cadence
                && zones.contains(zone)
            {
                self.moved.insert(id.clone());
            }
        }
    }

    /// Asks the driver about some of the schedules whose zones have new rules, so that calls are served in between. A schedule whose task is
    /// being made is asked about after that.
    pub(super) fn ask_about_moved(&mut self) {
        let is_waiting = |id: &&ScheduleId| self.phase(id) == Some(Phase::Waiting);
        let some: Vec<ScheduleId> =
            self.moved.iter().filter(is_waiting).take(self.instants_max).cloned().collect();
        for id in some {
            self.moved.remove(&id);
            if !self.ask_for_decided(&id) && !self.ask_for_next(&id) {
                self.change(id);
            }
        }
    }

    /// Asks the driver for the instant up to which all instants of this schedule are decided, under the present rules of its zone. Returns
    /// whether the driver is asked.
    pub(super) fn ask_for_decided(&mut self, id: &ScheduleId) -> bool {
        let record = Arc::clone(self.get(id).expect("only of a schedule that is there"));
        let Some(offset_s) = record.offset_s else { return false };
        let which = Which::Moved { at: record.decided, offset_s };
        let asked = Asked::Instant(id.clone(), Sought::Decided);
        let Some(ask) = self.ask(&record.schedule, which, asked) else { return false };
        self.set_phase(id, Phase::Asking(ask));
        true
    }

    /// Asks the driver for the next instant of this schedule, if the schedule is a cron expression whose count is not used up. Returns
    /// whether the driver is asked.
    pub(super) fn ask_for_next(&mut self, id: &ScheduleId) -> bool {
        let record = Arc::clone(self.get(id).expect("only of a schedule that is there"));
        let which = Which::FirstAfter(record.beyond());
        if record.is_counted_out() {
            return false;
        }
        let asked = Asked::Instant(id.clone(), Sought::Next);
        let Some(ask) = self.ask(&record.schedule, which, asked) else { return false };
        self.set_phase(id, Phase::Asking(ask));
        true
    }

    pub(super) fn view(&self, id: &ScheduleId) -> Option<ScheduleView> {
        let record = Arc::clone(self.get(id)?);
        Some(ScheduleView { queue: id.0.clone(), name: id.1.clone(), record })
    }
}
