//! Import of a schedule from another store.

use std::sync::Arc;

use crate::calls::{Existing, ImportOutcome, ImportSchedule, Present, ScheduleError};
use crate::name::Key;
use crate::schedule::{Cadence, ScheduleRecord, name_in_key};
use crate::tasks::Tasks;
use crate::time::Timestamp;

impl Tasks<'_> {
    /// Imports a schedule. The caller has looked up the schedule's running task: the task is in memory, or it is not live.
    pub(crate) fn import_schedule(
        &mut self,
        import: &ImportSchedule,
    ) -> Result<ImportOutcome, ScheduleError> {
        self.ledger.check_changes()?;
        if let Some(what) = import.schedule.mistake() {
            return Err(ScheduleError::Invalid { what });
        }
        let id = (import.queue.clone(), import.name.clone());
        let before = self.recurrence.get(&id).cloned();
        if let Some(before) = &before {
            match import.existing {
                Existing::Skip => return Ok(ImportOutcome::Skipped(Present::Schedule)),
                Existing::Refuse if before.schedule == import.schedule => {
                    return Ok(ImportOutcome::Skipped(Present::Schedule));
                }
                Existing::Refuse => return Err(ScheduleError::Exists { version: before.version }),
                Existing::Replace => {}
            }
        }
        let record = self.imported_schedule(import, before.as_deref());
        let scope = import.scope.as_deref();
        self.recurrence.take_place(self.ledger, &id, before.as_deref(), &record, scope)?;
        // Tasks that another store made are not counted as made by this store.
        let (made, skipped) =
            (self.ledger.counters_mut().made_total, self.ledger.counters_mut().skipped_total);
        self.recurrence.search_anew(&id);
        self.recurrence.step(self.ledger, &id, record);
        (self.ledger.counters_mut().made_total, self.ledger.counters_mut().skipped_total) = (made, skipped);
        Ok(if before.is_some() { ImportOutcome::Replaced } else { ImportOutcome::Added { kept_id: true } })
    }

    fn imported_schedule(&self, import: &ImportSchedule, before: Option<&ScheduleRecord>) -> ScheduleRecord {
        let takes_turns = import.schedule.takes_turns();
        let is_of_name = |key: &&Key| name_in_key(key) == Some(import.name.as_str());
        let running = import.running.as_ref().filter(|_| takes_turns).filter(is_of_name);
        let running = running.and_then(|key| self.residence.live(&import.queue, key));
        let mut waiting = import.waiting.clone();
        // An instant must not get two tasks, even if the same file is imported again. So all instants up to the last one for which this
        // store made a task are over.
        let made_here = before.and_then(|before| before.last);
        waiting.retain(|at| takes_turns && made_here.is_none_or(|last| *at > last));
        waiting.truncate(ScheduleRecord::WAITING_MAX);
        let decided = made_here.unwrap_or_default().max(import.decided);
        let mut record = ScheduleRecord {
            last: import.last.max(made_here),
            made: import.made,
            skipped: import.skipped,
            running: running.map(|slot| self.residence.task(slot).id).into_iter().collect(),
            may_have_more: takes_turns,
            waiting,
            ..ScheduleRecord::new(
                Arc::clone(&import.schedule),
                self.ledger.applied().next(),
                import.anchor,
                decided,
            )
        };
        if matches!(import.schedule.cadence, Cadence::FixedDelay { .. }) && record.running.is_empty() {
            let earliest = |next: Timestamp| next.max(record.beyond().saturating_plus_ms(1));
            record.next = import.next.map(earliest).or_else(|| record.after_a_delay(self.now));
        }
        record
    }
}
