//! The records of queues: the settings, the drain, the pause and the target that an owner has set.

use std::sync::Arc;

use super::Dispatch;
use super::bucket::Bucket;
use super::queue::Queue;
use super::targets::growth;
use crate::calls::{ChangeQueue, QueueChange, QueueError, Unavailable};
use crate::ledger::Ledger;
use crate::name::QueueName;
use crate::queue_view::QueueView;
use crate::residence::Residence;
use crate::runs::Ordered;
use crate::settings::{QueueRecord, Rule, RuleName};
use crate::time::{Now, Timestamp};

/// At most this many queues have a record of their own, because all records are in memory and in every checkpoint.
const RECORDS_MAX: usize = 100_000;

/// The search for the first ready task looks at this many stubs at most.
const STUBS_MAX: usize = 1_000;

/// The size of the record of a queue in the store without the value of its target (bytes, about).
const RECORD_BYTES: u64 = 512;

impl Dispatch {
    /// Takes over the record of a queue from the store, when the engine starts. The store does not know how many tokens were left, so a
    /// queue with a rate begins with no token.
    pub(crate) fn restore_record(&mut self, name: &QueueName, record: &QueueRecord, now: Now) {
        self.records += 1;
        let queue = self.queues.open(name);
        queue.record = Arc::new(record.clone());
        queue.bucket = record.settings.rate.map(|rate| Bucket::empty(rate, now.mono_ns));
        queue.used |= !record.is_default();
        self.pause_ends.set(name, wake_of(record));
        self.targets.set(name, record.target.as_ref());
    }

    /// Changes the record of a queue, or deletes the queue. `schedules`: how many schedules the queue has.
    ///
    /// # Errors
    /// [`QueueError`]: the change was refused, and the queue is as before.
    pub(crate) fn change_queue(
        &mut self,
        ledger: &mut Ledger,
        now: Now,
        change: ChangeQueue,
        schedules: u64,
    ) -> Result<(), QueueError> {
        let ChangeQueue { queue: name, change } = change;
        if let QueueChange::Settings(settings) | QueueChange::Restore(QueueRecord { settings, .. }) = &change
            && let Some(what) = settings.mistake()
        {
            return Err(QueueError::Invalid { what });
        }
        if let QueueChange::Target(Some(target)) = &change {
            self.targets.check(&name, target)?;
        }
        if change == QueueChange::Delete {
            return self.delete_queue(ledger, now, &name, schedules);
        }
        let before = self.queues.get(&name).map(|queue| Arc::clone(&queue.record)).unwrap_or_default();
        let mut record = QueueRecord::clone(&before);
        // A pause that is over is removed from the record.
        record.paused_until = record.pause_end(now.falls_due());
        let sets =
            matches!(change, QueueChange::Settings(_) | QueueChange::Restore(_) | QueueChange::Target(_));
        let pauses = matches!(change, QueueChange::Pause { .. });
        match change {
            QueueChange::Settings(settings) => record.settings = settings,
            QueueChange::Restore(other) => {
                record = QueueRecord { target: record.target, ..other };
                record.paused_until = record.pause_end(now.falls_due());
            }
            QueueChange::Pause { ms } => {
                let until = ms.map_or(Timestamp::MAX, |ms| now.due_after(ms).unwrap_or(Timestamp::MAX));
                record.paused_until = Some(until).filter(|_| ms != Some(0));
            }
            QueueChange::Drain => record.draining = true,
            QueueChange::Resume => (record.paused_until, record.draining) = (None, false),
            QueueChange::Target(target) => record.target = target.map(Arc::new),
            QueueChange::Delete => unreachable!("it was decided above"),
        }
        if before.is_default() && !record.is_default() && self.records >= RECORDS_MAX {
            return Err(QueueError::TooMany { limit: RECORDS_MAX });
        }
        if record != *before {
            // Only the first settings of a queue and the value of a target need room. An owner may pause a queue because the disk is full,
            // and must be able to resume it then. So a pause, a drain and a resume need no room.
            let first = if sets && before.is_default() { RECORD_BYTES } else { 0 };
            let needed = first + growth(before.target.as_deref(), record.target.as_deref());
            if needed > 0 {
                ledger.take_room(needed)?;
            }
            self.set_record(ledger, now, &name, record);
        }
        if pauses {
            self.queues.open(&name).totals.pauses += 1;
            self.queues.tidy(&name);
        }
        Ok(())
    }

    /// Deletes a queue, if it has no task and no schedule. The engine counts both in the same step, so no task can be added between the
    /// count and the delete.
    fn delete_queue(
        &mut self,
        ledger: &mut Ledger,
        now: Now,
        name: &QueueName,
        schedules: u64,
    ) -> Result<(), QueueError> {
        let Some(queue) = self.queues.get(name) else {
            let empty = QueueError::NotEmpty { live: 0, dead: 0, schedules };
            return if schedules == 0 { Ok(()) } else { Err(empty) };
        };
        let counts = queue.counts(now);
        let (live, dead) = (counts.live(), counts.dead);
        if (live, dead, schedules) != (0, 0, 0) {
            return Err(QueueError::NotEmpty { live, dead, schedules });
        }
        if !queue.record.is_default() {
            self.set_record(ledger, now, name, QueueRecord::default());
        }
        self.queues.forget(name);
        Ok(())
    }

    /// Ends the pauses that are over. Marks the queues on which calls wait, so that these calls get tasks. Tidies each queue, because it
    /// may have had nothing but its pause.
    pub(crate) fn end_pauses(&mut self, ledger: &mut Ledger, now: Now) {
        while ledger.takes_changes()
            && let Some(name) = self.pause_ends.pop(now.falls_due())
        {
            let record = &self.queues.open(&name).record;
            let record = QueueRecord { paused_until: None, ..QueueRecord::clone(record) };
            self.set_record(ledger, now, &name, record);
        }
    }

    fn set_record(&mut self, ledger: &mut Ledger, now: Now, name: &QueueName, record: QueueRecord) {
        let record = Arc::new(record);
        let queue = self.queues.open(name);
        self.records -= usize::from(!queue.record.is_default());
        self.records += usize::from(!record.is_default());
        let per_group = |record: &QueueRecord| record.settings.max_in_flight_per_group;
        if per_group(&queue.record) != per_group(&record) {
            queue.unpark_all();
        }
        let rate = record.settings.rate;
        if queue.bucket.map(|bucket| bucket.rate()) != rate {
            // The tokens that were left under the old rate stay, up to the new burst, so that a change of the rate causes no burst. A queue
            // that had no rate before begins with a full bucket.
            let tokens = queue.bucket.map(|before| before.tokens(now.mono_ns));
            queue.bucket = rate.map(|rate| Bucket::holding(rate, tokens.unwrap_or(rate.burst), now.mono_ns));
        }
        self.pause_ends.set(name, wake_of(&record));
        self.targets.set(name, record.target.as_ref());
        queue.record = Arc::clone(&record);
        if !record.is_default() {
            queue.used = true;
        }
        if !queue.waiters.is_empty() {
            self.to_serve.insert(name.clone());
        }
        self.queues.tidy(name);
        self.changed = ledger.next_seq();
        let rule = (!record.is_default()).then(|| Arc::new(Rule::Queue(QueueRecord::clone(&record))));
        ledger.note_rule((RuleName::Queue(name.clone()), rule));
    }

    /// Returns the queue as its owner sees it. `schedules` is the number of its schedules.
    pub(crate) fn queue_view(
        &self,
        residence: &Residence,
        now: Now,
        name: &QueueName,
        schedules: u64,
    ) -> QueueView {
        let unused = Queue::new(name.clone(), 0);
        let queue = self.queues.get(name).unwrap_or(&unused);
        QueueView {
            counts: queue.counts(now),
            settings: queue.record.settings.clone(),
            paused_until: queue.record.pause_end(now.falls_due()),
            target: queue.record.target.clone(),
            exists: queue.is_in_use(),
            listed: queue.is_listed(now),
            schedules,
            first_ready: first_ready(residence, queue),
            waiting: queue.waiters.len(),
            next_delivery_ms: queue
                .bucket
                .as_ref()
                .map(|bucket| bucket.next_ms().saturating_sub(now.mono_tick())),
        }
    }

    /// Checks that the last change of any queue's record is not in doubt: the change is durable, or the store has not failed.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and it is unknown whether that change is durable.
    pub(crate) fn doubt(&self, ledger: &Ledger) -> Result<(), Unavailable> {
        ledger.doubt_since(self.changed)
    }
}

/// Returns when the pause of a queue ends by itself. `None`: there is no pause, or only the owner ends it.
fn wake_of(record: &QueueRecord) -> Option<Timestamp> {
    record.paused_until.filter(|until| *until < Timestamp::MAX)
}

/// Returns the id of the first task in the line. Parked tasks are not in the line, and a stub that has expired is not ready. `None` also if
/// too many expired stubs are in front.
fn first_ready(residence: &Residence, queue: &Queue) -> Option<u64> {
    let whole = queue.line.whole().first();
    let expired = queue.expired.in_line();
    match queue.line.stubs().iter().take(STUBS_MAX).find(|stub| !expired.contains(&stub.key())) {
        Some(stub) if whole.is_none_or(|place| stub.key() < place.key) => Some(stub.id),
        _ => whole.map(|place| residence.task(place.slot).id),
    }
}
