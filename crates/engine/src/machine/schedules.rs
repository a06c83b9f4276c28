//! The schedules: what each says, how far it has come, and what it waits for. Their owners' verbs are here; what time does with them is in
//! `occurrence`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::Engine;
use super::filling::schedule_bytes;
use crate::calls::{
    Answer, DeleteSchedule, GetSchedule, ListAllSchedules, ListSchedules, PutSchedule, SCHEDULES_PAGE_MAX,
    ScheduleError, ScheduleView, StoredSchedule, Unavailable,
};
use crate::input::{CallId, Effect};
use crate::name::{QueueName, ScheduleName};
use crate::schedule::{AskId, Cadence, InstantFound, InstantWanted, Schedule, ScheduleRecord, Which, beyond};
use crate::settings::{Rule, RuleName};
use crate::time::{Now, Seq, Timestamp};

/// So many schedules can be: all of them are in memory, and in every checkpoint.
const SCHEDULES_MAX: usize = 10_000;
/// So many bytes may all of them have.
const BYTES_MAX: u64 = 16 << 20;

/// So many instants may wait for their turn, of all schedules together.
const WAITING_MAX: usize = 100_000;

/// So often it is asked whether there is room again, milliseconds.
const ROOM_ASKED_MS: u64 = 1_000;

/// Which schedule.
pub(super) type ScheduleId = (QueueName, ScheduleName);

/// One schedule.
#[derive(Debug)]
struct Scheduled {
    record: Arc<ScheduleRecord>,
    phase: Phase,
    /// The last change of its record.
    seq: Seq,
}

/// What happens to a schedule next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its next instant comes; or the task before ends; or there is room again; or nothing does any more.
    Waiting,
    /// The task of this instant is being made: its key is looked up.
    Making(Timestamp),
    /// The driver is asked for an instant.
    Asking(AskId),
}

/// Why the driver is asked for an instant.
#[derive(Debug)]
pub(super) enum Asked {
    /// A schedule is put, and it is not known whether it ever fires.
    Put { call: CallId, put: PutSchedule, begins: Begins },
    /// It is not known when this one is next.
    Next(ScheduleId),
    /// It is not known which instant this one missed last.
    Missed(ScheduleId),
    /// It is not known which instant was the last that has to be left out.
    LeftOut(ScheduleId),
}

/// Where a schedule begins that is put.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Begins {
    anchor: Timestamp,
    decided: Timestamp,
    /// Whether it takes over the instants of the one before.
    goes_on: bool,
}

/// All schedules.
///
/// # Invariants
/// A schedule that waits and has a next instant is in `due` with it, unless it is in `changed`, `stalled` or `unsettled`.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    by_name: BTreeMap<ScheduleId, Scheduled>,
    due: BTreeSet<(Timestamp, ScheduleId)>,
    /// Whose turn it is to be looked at.
    changed: BTreeSet<ScheduleId>,
    /// An instant of these has come, and the store had no room for its task.
    stalled: BTreeSet<ScheduleId>,
    /// An instant of these has come, and what they did last is not durable yet. So however many instants there are to make up for, there is a
    /// commit between one and the next, and others are served in that time.
    unsettled: BTreeSet<ScheduleId>,
    /// Instants that wait for their turn, of all schedules.
    waiting: usize,
    /// Tasks that have to end before another is made.
    running: BTreeMap<u64, ScheduleId>,
    asked: BTreeMap<AskId, Asked>,
    /// To go out at the end of the step.
    asks: Vec<Effect>,
    last_ask: u64,
    /// When it was asked last how much room there is, monotonic milliseconds.
    room_asked_ms: Option<u64>,
    bytes: u64,
}

impl Schedules {
    /// Takes over what the store has.
    pub(super) fn restore(&mut self, id: ScheduleId, record: &ScheduleRecord) {
        let mut record = record.clone();
        if crate::planted::is("instant-made-twice")
            && !matches!(record.schedule.cadence, Cadence::Cron { .. })
        {
            // With this bug it does not know how far it had come.
            record.next = record.last.or(record.next);
        }
        self.insert(id.clone(), Arc::new(record), Seq::ZERO);
        if crate::planted::is("turn-forgotten") {
            // With this bug nobody watches the task that has to end first.
            self.running.clear();
        }
        if !self.ask_for_next(&id) {
            self.changed.insert(id);
        }
    }

    pub(super) fn get(&self, id: &ScheduleId) -> Option<&Arc<ScheduleRecord>> {
        self.by_name.get(id).map(|one| &one.record)
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// How many schedules a queue has.
    pub(super) fn of_queue(&self, name: &QueueName) -> u64 {
        let from = (name.clone(), ScheduleName::first());
        self.by_name.range(from..).take_while(|(id, _)| id.0 == *name).count() as u64
    }

    /// Instants that wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn phase(&self, id: &ScheduleId) -> Option<Phase> {
        self.by_name.get(id).map(|one| one.phase)
    }

    fn insert(&mut self, id: ScheduleId, record: Arc<ScheduleRecord>, seq: Seq) {
        self.remove(&id);
        self.bytes += schedule_bytes(&id, &record);
        self.waiting += record.waiting.len();
        if let Some(running) = record.running {
            self.running.insert(running, id.clone());
        }
        self.by_name.insert(id, Scheduled { record, phase: Phase::Waiting, seq });
    }

    fn remove(&mut self, id: &ScheduleId) -> Option<Arc<ScheduleRecord>> {
        let Scheduled { record, .. } = self.by_name.remove(id)?;
        if let Some(next) = record.next {
            self.due.remove(&(next, id.clone()));
        }
        if let Some(running) = record.running {
            self.running.remove(&running);
        }
        self.changed.remove(id);
        self.stalled.remove(id);
        self.unsettled.remove(id);
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

    /// It waits for its next instant, if it has one.
    pub(super) fn wait(&mut self, id: ScheduleId) {
        self.set_phase(&id, Phase::Waiting);
        if let Some(next) = self.get(&id).and_then(|record| record.next) {
            self.due.insert((next, id));
        }
    }

    /// It is looked at again when there is room.
    pub(super) fn stall(&mut self, id: ScheduleId) {
        self.set_phase(&id, Phase::Waiting);
        self.stalled.insert(id);
    }

    pub(super) fn end_stall(&mut self) {
        let mut stalled = core::mem::take(&mut self.stalled);
        self.changed.append(&mut stalled);
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Whether something waits for room, and it was not just asked how much there is.
    pub(super) fn asks_for_room(&mut self, now: Now) -> bool {
        let waits = !self.stalled.is_empty() || self.next_due().is_some_and(|at| at <= now.wall);
        let asks = waits && self.room_asked_ms.is_none_or(|at| now.mono_tick() >= at + ROOM_ASKED_MS);
        if asks {
            self.room_asked_ms = Some(now.mono_tick());
        }
        asks
    }

    /// One whose next instant has come, and whose last change is durable.
    pub(super) fn pop_due(&mut self, now: Now, durable: Seq) -> Option<(Timestamp, ScheduleId)> {
        loop {
            let first = self.due.first().filter(|(at, _)| *at <= now.wall)?.clone();
            self.due.remove(&first);
            if self.by_name[&first.1].seq <= durable {
                return Some(first);
            }
            self.unsettled.insert(first.1);
        }
    }

    /// A commit is durable.
    pub(super) fn settle(&mut self) {
        let mut unsettled = core::mem::take(&mut self.unsettled);
        self.changed.append(&mut unsettled);
    }

    /// Whether there may be one more, or one of `needed` bytes in the place of one that had `had`.
    pub(super) fn has_place_for(&self, is_new: bool, had: u64, needed: u64) -> Result<(), ScheduleError> {
        let (schedules, bytes) = (self.by_name.len(), self.bytes);
        let too_many = is_new && schedules >= SCHEDULES_MAX;
        if too_many || needed > had && bytes - had + needed > BYTES_MAX {
            return Err(ScheduleError::TooMany { schedules, bytes });
        }
        Ok(())
    }

    /// Whether one more instant may wait for its turn.
    pub(super) fn has_place_to_wait(&self) -> bool {
        self.waiting < WAITING_MAX
    }

    pub(super) fn pop_changed(&mut self) -> Option<ScheduleId> {
        self.changed.pop_first()
    }

    pub(super) fn change(&mut self, id: ScheduleId) {
        self.changed.insert(id);
    }

    /// The schedule that waits for this task to end.
    pub(super) fn waits_for(&self, task: u64) -> Option<&ScheduleId> {
        self.running.get(&task)
    }

    /// Whether the driver has told all that it was asked.
    pub(super) fn is_quiet(&self) -> bool {
        self.asked.is_empty()
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

    /// Asks when this one is next, if that cannot be counted. Whether somebody has to be asked.
    pub(super) fn ask_for_next(&mut self, id: &ScheduleId) -> bool {
        let record = Arc::clone(self.get(id).expect("only of a schedule that is there"));
        let which = Which::FirstAfter(record.beyond());
        if record.is_counted_out() {
            return false;
        }
        let Some(ask) = self.ask(&record.schedule, which, Asked::Next(id.clone())) else { return false };
        self.set_phase(id, Phase::Asking(ask));
        true
    }

    pub(super) fn take_asked(&mut self, ask: AskId) -> Option<Asked> {
        self.asked.remove(&ask)
    }

    fn view(&self, id: &ScheduleId) -> Option<ScheduleView> {
        let record = Arc::clone(self.get(id)?);
        Some(ScheduleView { queue: id.0.clone(), name: id.1.clone(), record })
    }
}

impl Engine {
    /// Sends out the questions that the step has raised.
    pub(super) fn ask_instants(&mut self, out: &mut Vec<Effect>) {
        out.append(&mut self.schedules.asks);
    }

    pub(super) fn put_schedule(&mut self, now: Now, call: CallId, put: PutSchedule) {
        let begins = match self.check_schedule(now, &put) {
            Err(why) => return self.answer(call, Answer::PutSchedule(Err(why))),
            Ok(None) => {
                let stands = self.schedules.view(&(put.queue, put.name)).expect("it is the one that stands");
                let stored = StoredSchedule { created: false, schedule: stands };
                return self.answer(call, Answer::PutSchedule(Ok(stored)));
            }
            Ok(Some(begins)) => begins,
        };
        let after = beyond(begins.decided, put.schedule.start);
        let next = match put.schedule.cadence {
            Cadence::Cron { .. } => {
                let schedule = Arc::clone(&put.schedule);
                let why = Asked::Put { call, put, begins };
                self.schedules.ask(&schedule, Which::FirstAfter(after), why);
                return;
            }
            Cadence::FixedDelay { .. } if begins.goes_on => {
                let schedule = Arc::clone(&put.schedule);
                ScheduleRecord::new(schedule, Seq::ZERO, begins.anchor, begins.decided).after_a_delay(now)
            }
            Cadence::Every { .. } | Cadence::FixedDelay { .. } => {
                put.schedule.cadence.first_counted(begins.anchor, after)
            }
        };
        let answer = self.lay_down_schedule(&put, begins, next);
        self.answer(call, Answer::PutSchedule(answer));
    }

    /// The driver has told when a schedule that is put fires first.
    pub(super) fn first_found(
        &mut self,
        now: Now,
        call: CallId,
        put: PutSchedule,
        begins: Begins,
        found: InstantFound,
    ) {
        let answer = match (self.refusal_of_changes(), found) {
            (Some(why), _) => Err(why.into()),
            (None, Err(why)) => Err(ScheduleError::Cadence { why }),
            (None, Ok(next)) => match self.check_schedule(now, &put) {
                Err(why) => Err(why),
                // Another put has come between, and what this one goes on from is not what was asked about.
                Ok(again)
                    if again.is_none_or(|again| {
                        again.goes_on != begins.goes_on || begins.goes_on && again != begins
                    }) =>
                {
                    return self.put_schedule(now, call, put);
                }
                Ok(_) => self.lay_down_schedule(&put, begins, next),
            },
        };
        self.answer(call, Answer::PutSchedule(answer));
    }

    /// Where a schedule would begin that may be put; `None`: it is the one that stands.
    fn check_schedule(&self, now: Now, put: &PutSchedule) -> Result<Option<Begins>, ScheduleError> {
        let schedule = &put.schedule;
        if let Some(what) = schedule.mistake() {
            return Err(ScheduleError::Invalid { what });
        }
        let id = (put.queue.clone(), put.name.clone());
        let before = self.schedules.get(&id);
        check_version(put.if_version, before)?;
        if let Some(before) = before {
            if before.schedule == *schedule {
                return Ok(None);
            }
            let old = &before.schedule;
            if old.cadence == schedule.cadence && old.start == schedule.start {
                let ScheduleRecord { anchor, decided, .. } = **before;
                return Ok(Some(Begins { anchor, decided, goes_on: true }));
            }
        }
        let (anchor, decided) = schedule.begins(now);
        // Of no instant two tasks are made.
        let decided = before.map_or(decided, |before| before.last.unwrap_or_default().max(decided));
        Ok(Some(Begins { anchor, decided, goes_on: false }))
    }

    fn lay_down_schedule(
        &mut self,
        put: &PutSchedule,
        begins: Begins,
        next: Option<Timestamp>,
    ) -> Result<StoredSchedule, ScheduleError> {
        let id = (put.queue.clone(), put.name.clone());
        let before = self.schedules.get(&id).cloned();
        let takes_turns = put.schedule.takes_turns();
        let schedule = Arc::clone(&put.schedule);
        let mut record = ScheduleRecord::new(schedule, self.applied.next(), begins.anchor, begins.decided);
        if let Some(before) = &before {
            (record.last, record.made, record.skipped) = (before.last, before.made, before.skipped);
            record.running = before.running.filter(|_| takes_turns);
            // Those of a cadence that its owner has given up are left out, and those beyond what it counts or behind its end now.
            let left = put.schedule.count.map_or(u64::MAX, |count| count.saturating_sub(before.made));
            let left = if begins.goes_on { usize::try_from(left).unwrap_or(usize::MAX) } else { 0 };
            let end = put.schedule.end.unwrap_or(Timestamp::MAX);
            record.waiting.extend(before.waiting.iter().filter(|at| **at <= end).take(left));
            record.skipped += (before.waiting.len() - record.waiting.len()) as u64;
        }
        let next = match (&put.schedule.cadence, &before) {
            // Its next instant is known once the task that runs has ended.
            (Cadence::FixedDelay { .. }, _) if record.running.is_some() => None,
            (Cadence::FixedDelay { .. }, Some(before)) if begins.goes_on => before.next.or(next),
            _ => next,
        };
        record.next = record.in_time(next);
        let is_over = record.next.is_none() && record.waiting.is_empty();
        // One that has come to its end may get another payload: who puts it whenever a program starts need not know.
        if is_over && !begins.goes_on && (record.running.is_none() || record.is_counted_out()) {
            return Err(ScheduleError::NeverFires);
        }
        let needed = schedule_bytes(&id, &record);
        let had = before.as_ref().map_or(0, |before| schedule_bytes(&id, before));
        self.schedules.has_place_for(before.is_none(), had, needed)?;
        self.take_room(needed)?;
        self.set_schedule(&id, record);
        let schedule = self.schedules.view(&id).expect("it was just laid down");
        Ok(StoredSchedule { created: before.is_none(), schedule })
    }

    /// Writes down how far a schedule has come. It is looked at again before the step ends.
    pub(super) fn set_schedule(&mut self, id: &ScheduleId, record: ScheduleRecord) {
        let before = self.schedules.get(id).map_or((0, 0), |before| (before.made, before.skipped));
        self.stats.made_total += record.made.saturating_sub(before.0);
        self.stats.skipped_total += record.skipped.saturating_sub(before.1);
        let rule = Rule::Schedule(record.clone());
        let seq = self.next_seq();
        self.schedules.insert(id.clone(), Arc::new(record), seq);
        self.schedules.change(id.clone());
        self.scheduled = seq;
        self.note_rule((RuleName::Schedule(id.0.clone(), id.1.clone()), Some(Arc::new(rule))));
    }

    pub(super) fn delete_schedule(&mut self, call: CallId, delete: DeleteSchedule) {
        let id = (delete.queue, delete.name);
        let before = self.schedules.get(&id);
        let answer = match (check_version(delete.if_version, before), before) {
            (Err(why), _) => Err(why),
            (Ok(()), None) => Err(ScheduleError::NotFound),
            (Ok(()), Some(_)) => {
                self.schedules.remove(&id);
                self.scheduled = self.next_seq();
                self.note_rule((RuleName::Schedule(id.0, id.1), None));
                Ok(())
            }
        };
        self.answer(call, Answer::DeleteSchedule(answer));
    }

    pub(super) fn get_schedule(&mut self, call: CallId, get: GetSchedule) {
        let found = || self.schedules.view(&(get.queue, get.name)).ok_or(ScheduleError::NotFound);
        let answer = match self.doubt_since(self.scheduled) {
            Some(why) => Err(why.into()),
            None => found(),
        };
        self.answer(call, Answer::GetSchedule(answer));
    }

    pub(super) fn list_schedules(&mut self, call: CallId, list: &ListSchedules) {
        let answer = match self.doubt_since(self.scheduled) {
            Some(why) => Err(why),
            None => Ok(self.page_of_schedules(list)),
        };
        self.answer(call, Answer::Schedules(answer));
    }

    pub(super) fn list_all_schedules(&mut self, call: CallId, list: &ListAllSchedules) {
        let answer = match self.doubt_since(self.scheduled) {
            Some(why) => Err(why),
            None => Ok(self.page_of_all_schedules(list)),
        };
        self.answer(call, Answer::AllSchedules(answer));
    }

    fn page_of_all_schedules(&self, list: &ListAllSchedules) -> Vec<ScheduleView> {
        let ListAllSchedules { prefix, after, max } = list;
        // A prefix that no name can have finds nothing, wherever the search begins.
        let first = QueueName::new(prefix).ok().map(|queue| (queue, ScheduleName::first()));
        let from = match (after, &first) {
            (Some(after), _) if after.0.as_str() >= &**prefix => Bound::Excluded(after),
            (_, Some(first)) => Bound::Included(first),
            _ => Bound::Unbounded,
        };
        let ids = self.schedules.by_name.range((from, Bound::Unbounded)).map(|(id, _)| id);
        let of_prefix = ids.take_while(|id| id.0.as_str().starts_with(&**prefix));
        of_prefix.take((*max).min(SCHEDULES_PAGE_MAX)).filter_map(|id| self.schedules.view(id)).collect()
    }

    fn page_of_schedules(&self, list: &ListSchedules) -> Vec<ScheduleView> {
        let ListSchedules { queue, after, max } = list;
        let behind = |id: &&ScheduleId| after.as_ref().is_none_or(|after| id.1 > *after);
        // Of all names of a queue none is before the shortest.
        let first = after.clone().unwrap_or_else(ScheduleName::first);
        let ids = self.schedules.by_name.range((queue.clone(), first)..).map(|(id, _)| id);
        let of_queue = ids.take_while(|id| id.0 == *queue).filter(behind).take(*max);
        of_queue.filter_map(|id| self.schedules.view(id)).collect()
    }

    /// Why it cannot be said what was laid down, if it cannot: the last change of it may have been written down or not.
    pub(super) fn doubt_since(&self, changed: Seq) -> Option<Unavailable> {
        let why = self.failed.as_ref().filter(|_| changed > self.durable)?;
        Some(Unavailable::Indeterminate { why: Arc::clone(why) })
    }
}

fn check_version(wanted: Option<Seq>, before: Option<&Arc<ScheduleRecord>>) -> Result<(), ScheduleError> {
    let current = before.map(|before| before.version);
    if wanted.is_some() && wanted != current {
        return Err(ScheduleError::VersionMismatch { current });
    }
    Ok(())
}
