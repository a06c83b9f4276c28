//! The commands of owners on their schedules: put, delete, get and list.

use std::ops::Bound;
use std::sync::Arc;

use super::Recurrence;
use super::schedules::{Asked, Begins};
use crate::calls::{
    Answer, DeleteSchedule, GetSchedule, ListAllSchedules, ListSchedules, PutSchedule, SCHEDULES_PAGE_MAX,
    ScheduleError, ScheduleView, StoredSchedule, Unavailable,
};
use crate::input::CallId;
use crate::ledger::Ledger;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::{Cadence, FoundInstant, InstantFound, ScheduleId, ScheduleRecord, Which, beyond};
use crate::settings::{Rule, RuleName};
use crate::time::{Now, Seq, Timestamp};

impl Recurrence {
    pub(crate) fn put_schedule(&mut self, ledger: &mut Ledger, now: Now, call: CallId, put: PutSchedule) {
        let begins = match self.check_schedule(now, &put) {
            Err(why) => return ledger.answer(call, Answer::PutSchedule(Err(why))),
            Ok(None) => {
                let stands = self.view(&(put.queue, put.name)).expect("it is the one that stands");
                let stored = StoredSchedule { created: false, schedule: stands };
                return ledger.answer(call, Answer::PutSchedule(Ok(stored)));
            }
            Ok(Some(begins)) => begins,
        };
        let after = beyond(begins.decided, put.schedule.start);
        let next = match put.schedule.cadence {
            Cadence::Cron { .. } => {
                let schedule = Arc::clone(&put.schedule);
                let why = Asked::Put { call, put, begins };
                self.ask(&schedule, Which::FirstAfter(after), why);
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
        let answer = self.configure(ledger, &put, begins, next.map(FoundInstant::one));
        ledger.answer(call, Answer::PutSchedule(answer));
    }

    /// Ends a put of a cron schedule, because the driver has found the first instant or failed. If the stored schedule has changed
    /// meanwhile, the put may start again.
    pub(super) fn first_found(
        &mut self,
        ledger: &mut Ledger,
        now: Now,
        call: CallId,
        put: PutSchedule,
        begins: Begins,
        found: InstantFound,
    ) {
        let answer = match (ledger.check_changes(), found) {
            (Err(why), _) => Err(why.into()),
            (Ok(()), Err(why)) => Err(ScheduleError::Cadence { why }),
            (Ok(()), Ok(next)) => match self.check_schedule(now, &put) {
                Err(why) => Err(why),
                // The stored schedule has changed while the driver was asked: the stored one now equals the one that is put, or this put
                // would begin at another instant. So this put starts again.
                Ok(again)
                    if again.is_none_or(|again| {
                        again.goes_on != begins.goes_on || begins.goes_on && again != begins
                    }) =>
                {
                    return self.put_schedule(ledger, now, call, put);
                }
                Ok(_) => self.configure(ledger, &put, begins, next),
            },
        };
        ledger.answer(call, Answer::PutSchedule(answer));
    }

    /// Checks a put. Returns where the instants of the schedule begin; `None`: an equal schedule is stored already.
    fn check_schedule(&self, now: Now, put: &PutSchedule) -> Result<Option<Begins>, ScheduleError> {
        let schedule = &put.schedule;
        if let Some(what) = schedule.mistake() {
            return Err(ScheduleError::Invalid { what });
        }
        let id = (put.queue.clone(), put.name.clone());
        let before = self.get(&id);
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
        // The last instant that has a task counts as decided: no instant may get a second task.
        let decided = before.map_or(decided, |before| before.last.unwrap_or_default().max(decided));
        Ok(Some(Begins { anchor, decided, goes_on: false }))
    }

    fn configure(
        &mut self,
        ledger: &mut Ledger,
        put: &PutSchedule,
        begins: Begins,
        next: Option<FoundInstant>,
    ) -> Result<StoredSchedule, ScheduleError> {
        let id = (put.queue.clone(), put.name.clone());
        let before = self.get(&id).cloned();
        let takes_turns = put.schedule.takes_turns();
        let schedule = Arc::clone(&put.schedule);
        let mut record =
            ScheduleRecord::new(schedule, ledger.applied().next(), begins.anchor, begins.decided);
        record.may_have_more = takes_turns;
        if let Some(before) = &before {
            (record.last, record.made, record.skipped) = (before.last, before.made, before.skipped);
            record.offset_s = before.offset_s.filter(|_| begins.goes_on);
            if takes_turns && before.schedule.takes_turns() {
                record.running.clone_from(&before.running);
                record.may_have_more = before.may_have_more;
            }
            // Waiting instants are left out if the put changes the cadence or the start, or if they are beyond the new count or after the
            // new end.
            let left = put.schedule.count.map_or(u64::MAX, |count| count.saturating_sub(before.made));
            let left = if begins.goes_on { usize::try_from(left).unwrap_or(usize::MAX) } else { 0 };
            let end = put.schedule.end.unwrap_or(Timestamp::MAX);
            record.waiting.extend(before.waiting.iter().filter(|at| **at <= end).take(left));
            let left_out = before.waiting.len() - record.waiting.len();
            record.skipped = record.skipped.saturating_add(left_out as u64);
        }
        let next = match (&put.schedule.cadence, &before) {
            // The next instant is known only once the running tasks have ended.
            (Cadence::FixedDelay { .. }, _) if !record.running.is_empty() => None,
            (Cadence::FixedDelay { .. }, Some(before)) if begins.goes_on => {
                before.next.map(FoundInstant::one).or(next)
            }
            _ => next,
        };
        record.note_next(next);
        let is_over = record.next.is_none() && record.waiting.is_empty();
        // A schedule that is over may still get another payload. So a program that puts its schedule at each start need not know that the
        // schedule is over.
        if is_over && !begins.goes_on && (record.running.is_empty() || record.is_counted_out()) {
            return Err(ScheduleError::NeverFires);
        }
        self.take_place(ledger, &id, before.as_deref(), &record, put.scope.as_deref())?;
        if !begins.goes_on {
            self.moved.remove(&id);
        }
        if !before.as_ref().is_some_and(|before| before.schedule.takes_turns()) {
            self.search_anew(&id);
        }
        self.set(ledger, &id, record);
        let schedule = self.view(&id).expect("it was just configured");
        Ok(StoredSchedule { created: before.is_none(), schedule })
    }

    /// Writes down the record of a schedule, and counts the tasks made and the instants skipped since the record before. The phase of the
    /// schedule becomes [`Phase::Waiting`](super::schedules::Phase::Waiting), and the schedule is looked at again before the step ends.
    pub(crate) fn set(&mut self, ledger: &mut Ledger, id: &ScheduleId, record: ScheduleRecord) {
        let before = self.get(id).map_or((0, 0), |before| (before.made, before.skipped));
        ledger.counters_mut().made_total += record.made.saturating_sub(before.0);
        ledger.counters_mut().skipped_total += record.skipped.saturating_sub(before.1);
        let rule = Rule::Schedule(record.clone());
        let seq = ledger.next_seq();
        self.insert(id.clone(), Arc::new(record), seq);
        self.change(id.clone());
        self.last_change = seq;
        ledger.note_rule((RuleName::Schedule(id.0.clone(), id.1.clone()), Some(Arc::new(rule))));
    }

    pub(crate) fn delete_schedule(
        &mut self,
        ledger: &mut Ledger,
        delete: DeleteSchedule,
    ) -> Result<(), ScheduleError> {
        let id = (delete.queue, delete.name);
        let before = self.get(&id);
        check_version(delete.if_version, before)?;
        if before.is_none() {
            return Err(ScheduleError::NotFound);
        }
        self.remove(&id);
        self.search_anew(&id);
        self.moved.remove(&id);
        self.last_change = ledger.next_seq();
        ledger.note_rule((RuleName::Schedule(id.0, id.1), None));
        Ok(())
    }

    pub(crate) fn get_schedule(
        &self,
        ledger: &Ledger,
        get: GetSchedule,
    ) -> Result<ScheduleView, ScheduleError> {
        ledger.doubt_since(self.last_change)?;
        self.view(&(get.queue, get.name)).ok_or(ScheduleError::NotFound)
    }

    pub(crate) fn list_schedules(
        &self,
        ledger: &Ledger,
        list: &ListSchedules,
    ) -> Result<Vec<ScheduleView>, Unavailable> {
        ledger.doubt_since(self.last_change)?;
        let ListSchedules { queue, after, max } = list;
        let behind = |id: &&ScheduleId| after.as_ref().is_none_or(|after| id.1 > *after);
        // Without `after`, the list begins at the first possible name.
        let first = after.clone().unwrap_or_else(ScheduleName::first);
        let ids = self.by_name.range((queue.clone(), first)..).map(|(id, _)| id);
        let of_queue = ids.take_while(|id| id.0 == *queue).filter(behind).take(*max);
        Ok(of_queue.filter_map(|id| self.view(id)).collect())
    }

    pub(crate) fn list_all_schedules(
        &self,
        ledger: &Ledger,
        list: &ListAllSchedules,
    ) -> Result<Vec<ScheduleView>, Unavailable> {
        ledger.doubt_since(self.last_change)?;
        let ListAllSchedules { prefix, after, max } = list;
        // `first` is `None` if the prefix is empty or if no queue name can begin with it. An empty prefix finds all schedules; the other
        // prefixes find none.
        let first = QueueName::new(prefix).ok().map(|queue| (queue, ScheduleName::first()));
        let from = match (after, &first) {
            (Some(after), _) if after.0.as_str() >= &**prefix => Bound::Excluded(after),
            (_, Some(first)) => Bound::Included(first),
            _ => Bound::Unbounded,
        };
        let ids = self.by_name.range((from, Bound::Unbounded)).map(|(id, _)| id);
        let of_prefix = ids.take_while(|id| id.0.as_str().starts_with(&**prefix));
        Ok(of_prefix.take((*max).min(SCHEDULES_PAGE_MAX)).filter_map(|id| self.view(id)).collect())
    }
}

fn check_version(wanted: Option<Seq>, before: Option<&Arc<ScheduleRecord>>) -> Result<(), ScheduleError> {
    let current = before.map(|before| before.version);
    if wanted.is_some() && wanted != current {
        return Err(ScheduleError::VersionMismatch { current });
    }
    Ok(())
}
