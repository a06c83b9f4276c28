//! What a queue's owner laid down: how many tasks may be in workers' hands, how fast they may be handed out, and whether at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Engine;
use super::bucket::Bucket;
use super::entries::{At, Slot};
use super::line::{InLine, ReadyPlace};
use super::queue::Queue;
use super::runs::Ordered;
use super::stub::ReadyKey;
use crate::calls::{Answer, ChangeQueue, LEASE_MS_DEFAULT, PutError, QueueChange, QueueError};
use crate::figures::Event;
use crate::input::CallId;
use crate::name::{Group, QueueName};
use crate::queue_view::QueueView;
use crate::settings::{QueueRecord, Rule, RuleName};
use crate::task::{Retry, Task};
use crate::time::{Now, Timestamp};

/// So many queues can have a record of their own: all of them are in memory, and in every checkpoint.
const RECORDS_MAX: usize = 100_000;

/// What the record of a queue takes in the store, about.
const RECORD_BYTES: u64 = 512;

/// Which ready tasks a lease gets.
#[derive(Debug)]
pub(super) enum Choice {
    These(Vec<Slot>),
    /// Records have to be fetched before that can be said.
    Unknown,
}

/// When rates let something through that calls wait for, by the monotonic clock, milliseconds. Some may have done so before, and nobody waits there any
/// more.
#[derive(Debug, Default)]
pub(super) struct Opening {
    by_name: BTreeMap<QueueName, u64>,
    by_time: BTreeSet<(u64, QueueName)>,
}

impl Opening {
    fn watch(&mut self, name: &QueueName, at_ms: u64) {
        self.forget(name);
        self.by_name.insert(name.clone(), at_ms);
        self.by_time.insert((at_ms, name.clone()));
    }

    fn forget(&mut self, name: &QueueName) {
        if let Some(at_ms) = self.by_name.remove(name) {
            self.by_time.remove(&(at_ms, name.clone()));
        }
    }

    /// A queue whose gate has opened by now.
    fn pop(&mut self, now: Now) -> Option<QueueName> {
        let (_, name) = self.by_time.first().filter(|(at_ms, _)| *at_ms <= now.mono_tick())?;
        let name = name.clone();
        self.forget(&name);
        Some(name)
    }

    pub(super) fn next_ms(&self) -> Option<u64> {
        self.by_time.first().map(|&(at_ms, _)| at_ms)
    }
}

/// The pauses that end by themselves, in the order in which they do, by the wall clock.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeSet<(Timestamp, QueueName)>);

impl Pauses {
    /// The pause of a queue is this from now on.
    pub(super) fn change(&mut self, name: &QueueName, before: Option<Timestamp>, until: Option<Timestamp>) {
        if let Some(before) = before {
            self.0.remove(&(before, name.clone()));
        }
        if let Some(until) = until.filter(|until| *until < Timestamp::MAX) {
            self.0.insert((until, name.clone()));
        }
    }

    /// When the first of them ends.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|&(until, _)| until)
    }

    /// One that is over.
    fn pop(&mut self, now: Now) -> Option<QueueName> {
        let over = self.next().is_some_and(|until| until <= now.wall);
        over.then(|| self.0.pop_first()).flatten().map(|(_, name)| name)
    }
}

impl Queue {
    /// Takes over what the store has. What the rate had left before is not known, so it begins with nothing.
    pub(super) fn restore(&mut self, record: &QueueRecord, now: Now) {
        self.record = Arc::new(record.clone());
        self.bucket = record.settings.rate.map(|rate| Bucket::empty(rate, now.mono_ns));
    }

    /// How many tasks may go into workers' hands now, groups left aside.
    pub(super) fn allowance(&self, now: Now) -> u64 {
        let outlasts = crate::planted::is("pause-outlasts") && self.record.paused_until.is_some();
        let is_paused = self.record.is_paused(now.wall) && !crate::planted::is("pause-forgotten");
        if is_paused || outlasts {
            return 0;
        }
        let one_more = u64::from(crate::planted::is("one-beyond-the-limit"));
        let in_flight = self.record.settings.max_in_flight;
        let in_flight = in_flight.map(|max| (max + one_more).saturating_sub(self.leased));
        let bucket = self.bucket.as_ref().filter(|_| !crate::planted::is("rate-forgotten"));
        let tokens = bucket.map(|bucket| bucket.tokens(now.mono_ns));
        in_flight.into_iter().chain(tokens).min().unwrap_or(u64::MAX)
    }
}

impl Engine {
    pub(super) fn change_queue(&mut self, now: Now, call: CallId, change: ChangeQueue) {
        let ChangeQueue { queue: name, change } = change;
        if let QueueChange::Settings(settings) | QueueChange::Restore(QueueRecord { settings, .. }) = &change
            && let Some(what) = settings.mistake()
        {
            return self.answer(call, Answer::ChangeQueue(Err(QueueError::Invalid { what })));
        }
        if change == QueueChange::Delete {
            let answer = self.delete_queue(now, &name);
            return self.answer(call, Answer::ChangeQueue(answer));
        }
        let before = self.queues.get(&name).map(|queue| Arc::clone(&queue.record)).unwrap_or_default();
        let mut record = QueueRecord::clone(&before);
        // A pause that is over says nothing any more.
        record.paused_until = record.pause_end(now.wall);
        let settles = matches!(change, QueueChange::Settings(_) | QueueChange::Restore(_));
        let pauses = matches!(change, QueueChange::Pause { .. });
        match change {
            QueueChange::Settings(settings) => record.settings = settings,
            QueueChange::Restore(other) => {
                record = other;
                record.paused_until = record.pause_end(now.wall);
            }
            QueueChange::Pause { ms } => {
                let until = ms.map_or(Timestamp::MAX, |ms| now.due_after(ms).unwrap_or(Timestamp::MAX));
                record.paused_until = Some(until).filter(|_| ms != Some(0));
            }
            QueueChange::Drain => record.draining = true,
            QueueChange::Resume => (record.paused_until, record.draining) = (None, false),
            QueueChange::Delete => unreachable!("it was decided above"),
        }
        if before.is_default() && !record.is_default() && self.records >= RECORDS_MAX {
            let limit = RECORDS_MAX;
            return self.answer(call, Answer::ChangeQueue(Err(QueueError::TooMany { limit })));
        }
        if record != *before {
            // Who holds a queue because the disk is full must be able to, and who lets it go again, too.
            let grows = settles && before.is_default();
            let refused = if grows { self.take_room(RECORD_BYTES).err() } else { None };
            if let Some(why) = refused {
                return self.answer(call, Answer::ChangeQueue(Err(why.into())));
            }
            self.set_record(now, &name, record);
        }
        if pauses {
            self.queues.open(&name).totals.pauses += 1;
            self.queues.tidy(&name);
        }
        self.answer(call, Answer::ChangeQueue(Ok(())));
    }

    /// Forgets a queue that has no task and no schedule. The engine counts them here, in the order of all changes, so that no task comes
    /// between the count and the change.
    fn delete_queue(&mut self, now: Now, name: &QueueName) -> Result<(), QueueError> {
        let schedules = self.schedules.of_queue(name);
        let Some(queue) = self.queues.get(name) else {
            let empty = QueueError::NotEmpty { live: 0, dead: 0, schedules };
            return if schedules == 0 { Ok(()) } else { Err(empty) };
        };
        let counts = queue.counts(now);
        let (live, dead) = (counts.live(), counts.dead);
        if (live, dead, schedules) != (0, 0, 0) {
            return Err(QueueError::NotEmpty { live, dead, schedules });
        }
        if !queue.record.is_default() && !crate::planted::is("deleted-in-memory-only") {
            self.set_record(now, name, QueueRecord::default());
        }
        self.queues.forget(name);
        Ok(())
    }

    /// Pauses that are over say nothing any more: whoever waits gets what there is, and a queue that nothing else keeps goes.
    pub(super) fn end_pauses(&mut self, now: Now) {
        while self.refuses_changes().is_none()
            && let Some(name) = self.pauses.pop(now)
        {
            if crate::planted::is("gate-forgotten") || crate::planted::is("pause-outlasts") {
                continue;
            }
            let record = &self.queues.open(&name).record;
            let record = QueueRecord { paused_until: None, ..QueueRecord::clone(record) };
            self.set_record(now, &name, record);
        }
    }

    fn set_record(&mut self, now: Now, name: &QueueName, record: QueueRecord) {
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
            // What was handed out by the rate before counts: a change of it is no burst.
            let tokens = queue.bucket.map(|before| before.tokens(now.mono_ns));
            queue.bucket = rate.map(|rate| Bucket::holding(rate, tokens.unwrap_or(rate.burst), now.mono_ns));
        }
        self.pauses.change(name, queue.record.paused_until, record.paused_until);
        queue.record = Arc::clone(&record);
        if !record.is_default() {
            queue.begin_listing();
        }
        if !queue.waiters.is_empty() {
            self.to_serve.insert(name.clone());
        }
        self.queues.tidy(name);
        self.ruled = self.next_seq();
        let rule = (!record.is_default()).then(|| Arc::new(Rule::Queue(QueueRecord::clone(&record))));
        self.note_rule((RuleName::Queue(name.clone()), rule));
    }

    pub(super) fn queue_view(&self, now: Now, name: &QueueName) -> QueueView {
        let unused = Queue::new(name.clone(), 0);
        let queue = self.queues.get(name).unwrap_or(&unused);
        QueueView {
            counts: queue.counts(now),
            settings: queue.record.settings.clone(),
            paused_until: queue.record.pause_end(now.wall),
            exists: queue.is_in_use(),
            first_ready: self.first_ready(queue),
            waiting: queue.waiters.len(),
            next_delivery_ms: queue
                .bucket
                .as_ref()
                .map(|bucket| bucket.next_ms().saturating_sub(now.mono_tick())),
        }
    }

    /// How many tasks of the group of a ready task are in workers' hands, if its queue limits them.
    pub(super) fn group_in_flight(&self, slot: Slot) -> Option<u64> {
        let entry = self.entries.get(slot);
        let (group, queue) = (entry.task.group()?, self.queues.get(&entry.task.queue)?);
        queue.record.settings.max_in_flight_per_group.filter(|_| matches!(entry.at, At::Ready { .. }))?;
        Some(queue.groups.get(group).map_or(0, |of| of.leased))
    }

    /// The id of the task that is first in line. What is parked is none.
    fn first_ready(&self, queue: &Queue) -> Option<u64> {
        let whole = queue.line.whole().first();
        match queue.line.stubs().first() {
            Some(stub) if whole.is_none_or(|place| stub.key() < place.key) => Some(stub.id),
            _ => whole.map(|place| self.entries.get(place.slot).task.id),
        }
    }

    /// Which ready tasks of a queue a lease of at most `max` gets now. Those that a limit of their group holds up are parked on the way.
    pub(super) fn choose(&mut self, now: Now, name: &QueueName, max: usize) -> Choice {
        let Some(no) = self.queues.number(name) else { return Choice::These(Vec::new()) };
        let queue = self.queues.numbered_mut(no);
        let allowed = usize::try_from(queue.allowance(now)).unwrap_or(usize::MAX).min(max);
        let per_group = queue.record.settings.max_in_flight_per_group;
        let mut chosen = Vec::new();
        match per_group.filter(|_| allowed > 0) {
            None => {
                if !queue.line.has_whole(allowed) {
                    return Choice::Unknown;
                }
                chosen.extend(queue.line.whole().iter().take(allowed).map(|place| place.slot));
            }
            Some(per_group) => {
                let mut counted: BTreeMap<&Group, u64> = BTreeMap::new();
                let mut full: Vec<(ReadyPlace, &Group)> = Vec::new();
                for place in queue.line.whole_in_front() {
                    if chosen.len() >= allowed {
                        break;
                    }
                    if let Some(group) = self.entries.get(place.slot).task.group() {
                        let leased = || queue.groups.get(group).map_or(0, |of| of.leased);
                        let count = counted.entry(group).or_insert_with(leased);
                        if *count >= per_group {
                            full.push((*place, group));
                            continue;
                        }
                        *count += 1;
                    }
                    chosen.push(place.slot);
                }
                let unknown = chosen.len() < allowed && queue.line.stubs().first().is_some();
                for (place, group) in full {
                    queue.line.remove(&place);
                    queue.park(group, InLine::Whole(place));
                }
                if unknown {
                    return Choice::Unknown;
                }
            }
        }
        Choice::These(chosen)
    }

    /// What a lease gets next of this queue, and where that stands beside what other queues have. `None`: it hands nothing out.
    pub(super) fn choose_first(&mut self, now: Now, name: &QueueName) -> Option<(ReadyKey, Choice)> {
        let choice = self.choose(now, name, 1);
        let key = match &choice {
            Choice::These(slots) => slots.first().map(|&slot| ReadyKey::of(&self.entries.get(slot).task)),
            // Among those in front of it that are held whole none is handed out.
            Choice::Unknown => {
                self.queues.get(name).and_then(|queue| queue.line.stubs().first()).map(Ordered::key)
            }
        };
        key.map(|key| (key, choice))
    }

    /// Tasks of a queue are handed out: they count against its rate.
    pub(super) fn take_tokens(&mut self, now: Now, name: &QueueName, count: usize) {
        if let Some(bucket) = &mut self.queues.open(name).bucket {
            bucket.take(count as u64, now.mono_ns);
        }
    }

    /// A ready task goes into a worker's hands: it leaves the line, and makes way for nobody.
    pub(super) fn leave_line(&mut self, slot: Slot) {
        let task = Arc::clone(&self.entries.get(slot).task);
        let queue = self.queues.open(&task.queue);
        queue.leave(ReadyPlace::of(&task, slot), task.group());
        self.stats.count(&mut queue.figures, Event::Delivered);
        self.entries.get_mut(slot).at = At::Far;
    }

    /// If calls wait for what a rate holds up, it is remembered when that lets something through.
    pub(super) fn watch_gate(&mut self, now: Now, name: &QueueName) {
        let bucket = match self.queues.get(name) {
            Some(queue) if !queue.waiters.is_empty() && !queue.line.is_empty() => queue.bucket,
            _ => None,
        };
        match bucket.filter(|bucket| bucket.tokens(now.mono_ns) == 0) {
            Some(bucket) if !crate::planted::is("gate-forgotten") => {
                self.opening.watch(name, bucket.next_ms())
            }
            _ => self.opening.forget(name),
        }
    }

    /// Whoever waits where a gate opens by now is looked at.
    pub(super) fn gates_open(&mut self, now: Now) {
        while let Some(name) = self.opening.pop(now) {
            self.to_serve.insert(name);
        }
    }

    /// A delivery reached nobody: it does not count against the rate.
    pub(super) fn put_token_back(&mut self, slot: Slot) {
        let task = Arc::clone(&self.entries.get(slot).task);
        if let Some(bucket) = &mut self.queues.open(&task.queue).bucket {
            bucket.put_back();
        }
    }

    /// Whether the worker of an earlier life may go on with its task: not if others have taken its place since.
    pub(super) fn may_go_on(&self, slot: Slot) -> bool {
        let entry = self.entries.get(slot);
        let Some(queue) = self.queues.get(&entry.task.queue) else { return true };
        let settings = &queue.record.settings;
        let of_group = entry.task.group().and_then(|group| queue.groups.get(group)).map_or(0, |of| of.leased);
        matches!(entry.at, At::Leased(_))
            || settings.max_in_flight.is_none_or(|max| queue.leased < max)
                && settings.max_in_flight_per_group.is_none_or(|max| of_group < max)
    }

    /// The length of a lease whose worker may have named none.
    pub(super) fn lease_ms(&self, task: &Task, asked: Option<u64>) -> u64 {
        let of_queue = || self.queues.get(&task.queue)?.record.settings.default_lease_ms;
        asked.or_else(|| task.ttr_ms()).or_else(of_queue).unwrap_or(LEASE_MS_DEFAULT)
    }

    /// How often and how soon a task is tried again: as it says itself, else as its queue does.
    pub(super) fn retry_of(&self, task: &Task) -> Retry {
        let of_queue = || self.queues.get(&task.queue)?.record.settings.retry;
        task.own_retry().or_else(of_queue).unwrap_or_default()
    }

    /// How many live tasks the queue may have, if it has as many.
    pub(super) fn backlog_limit(&self, name: &QueueName) -> Option<u64> {
        let queue = self.queues.get(name)?;
        let one_more = u64::from(crate::planted::is("backlog-forgotten"));
        queue.record.settings.max_backlog.filter(|&max| queue.live >= max + one_more)
    }

    /// Whether one more task may be put into the queue.
    pub(super) fn may_grow(&self, name: &QueueName) -> Result<(), PutError> {
        if self.queues.get(name).is_some_and(|queue| queue.record.draining)
            && !crate::planted::is("drain-forgotten")
        {
            return Err(PutError::Draining);
        }
        self.backlog_limit(name).map_or(Ok(()), |limit| Err(PutError::BacklogFull { limit }))
    }
}
