//! [`Queue`]: the ready tasks of a queue, the calls that wait for them, and the counts of its tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bucket::Bucket;
use super::line::{InLine, Line, ReadyPlace};
use super::ready::{ReadyKey, ReadyStub};
use crate::figures::QueueFigures;
use crate::input::CallId;
use crate::name::{Group, QueueName};
use crate::queue_view::{QueueCounts, QueueTotals};
use crate::settings::QueueRecord;
use crate::task::{PRIORITY_DEFAULT, Task};
use crate::time::{Now, Seq, Timestamp};

/// Lists name an empty queue for at most this time (ms), so that an operator who looks within an hour still finds it.
const LISTED_MS: u64 = 3_600_000;

/// A queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(super) name: QueueName,
    /// The ready tasks without the parked ones. See [`InGroup::parked`].
    pub(super) line: Line,
    /// The groups that have tasks in workers' hands or parked tasks.
    pub(super) groups: BTreeMap<Group, InGroup>,
    /// How many tasks are parked, over all groups.
    pub(super) parked: usize,
    /// No ready task is due after this instant.
    due_until: Timestamp,
    /// The keys of the stubs whose records are being fetched.
    pub(super) fetching: BTreeSet<ReadyKey>,
    /// The calls that wait for tasks, in the order of their numbers.
    pub(super) waiters: BTreeSet<CallId>,
    /// How many calls in `waiters` are no-wait calls.
    pub(super) no_wait: usize,
    /// Tasks that have not ended and are not dead, far tasks included.
    pub(super) live: u64,
    pub(super) leased: u64,
    /// Tasks that were given up and are not forgotten.
    pub(super) dead: u64,
    pub(super) expired: Expired,
    /// How many beanstalkd clients use the queue.
    pub(super) users: u64,
    /// Whether the queue got a task or a record since it was last found empty. If so, lists name the queue for up to an hour once it is
    /// empty again.
    pub(super) used: bool,
    /// When the queue was last found empty after it had been used. `None`: never, or that moment is forgotten.
    pub(super) emptied: Option<Emptied>,
    /// The totals of the queue since it last came into use.
    pub(super) totals: QueueTotals,
    /// The figures of the queue since it appeared.
    pub(super) figures: QueueFigures,
    /// The number of the queue, in the order in which queues appeared.
    pub(super) appeared: u64,
    /// The record that the owner of the queue has set: settings, pause and drain.
    pub(super) record: Arc<QueueRecord>,
    /// The token bucket of the queue. `None`: the queue has no rate.
    pub(super) bucket: Option<Bucket>,
}

/// When a queue was found empty after it had been used.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Emptied {
    /// A queue that was emptied later has a greater number.
    pub(crate) number: u64,
    /// The time by the monotonic clock (ms).
    pub(crate) at_ms: u64,
}

impl Emptied {
    pub(crate) fn is_recent(self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) < LISTED_MS
    }
}

/// The tasks of one group.
#[derive(Debug, Default)]
pub(crate) struct InGroup {
    /// How many tasks of the group are in workers' hands.
    pub(crate) leased: u64,
    /// The parked tasks. A choice parks a task when its group already has as many tasks as the settings allow, in workers' hands or earlier
    /// in the same choice. Whenever a task of the group leaves its worker, or stops being ready without going to a worker, one parked task
    /// comes back into the line. So a parked task always waits for some other task of its group.
    pub(crate) parked: Line,
}

/// The stubs that have expired. Each counts as dead, though its record in the store does not have the death yet.
#[derive(Debug, Default)]
pub(crate) struct Expired {
    /// The stubs by id, each with its key if it is ready, in the line or parked. `None`: its task is not due, for example because it waits for
    /// the next instant of its timeline.
    stubs: BTreeMap<u64, Option<ReadyKey>>,
    /// The keys of those that are ready.
    in_line: BTreeSet<ReadyKey>,
}

impl Expired {
    /// Notes that a stub has expired, and its key if the stub is ready. Returns whether the stub was not among the expired ones before.
    pub(crate) fn insert(&mut self, id: u64, in_line: Option<ReadyKey>) -> bool {
        let was = self.stubs.insert(id, in_line);
        if let Some(key) = was.flatten() {
            self.in_line.remove(&key);
        }
        self.in_line.extend(in_line);
        was.is_none()
    }

    /// Notes that a stub has joined the line. Changes nothing if the stub has not expired.
    pub(crate) fn join(&mut self, id: u64, key: ReadyKey) {
        if self.stubs.contains_key(&id) {
            self.insert(id, Some(key));
        }
    }

    /// Removes a stub, if it is one of the expired ones.
    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(key) = self.stubs.remove(&id).flatten() {
            self.in_line.remove(&key);
        }
    }

    /// The keys of the expired stubs that are in the line or parked.
    pub(super) fn in_line(&self) -> &BTreeSet<ReadyKey> {
        &self.in_line
    }

    /// Returns how many of them have a more urgent priority than the default one.
    fn urgent_len(&self) -> usize {
        let least = ReadyKey { priority: PRIORITY_DEFAULT, due_at: Timestamp::EPOCH, put_seq: Seq::ZERO };
        self.in_line.range(..least).count()
    }

    fn is_empty(&self) -> bool {
        self.stubs.is_empty()
    }

    fn len(&self) -> u64 {
        self.stubs.len() as u64
    }
}

impl Queue {
    /// Returns the count that this task belongs to: the dead tasks or the live tasks.
    pub(crate) fn tasks_like(&mut self, task: &Task) -> &mut u64 {
        if task.dead().is_some() { &mut self.dead } else { &mut self.live }
    }

    /// Returns how many tasks may be handed out now, by the pause, the in-flight limit and the rate of the queue. The limit of each group
    /// is not part of this number.
    pub(crate) fn allowance(&self, now: Now) -> u64 {
        if self.record.is_paused(now.falls_due()) {
            return 0;
        }
        let in_flight = self.record.settings.max_in_flight;
        let in_flight = in_flight.map(|max| max.saturating_sub(self.leased));
        let tokens = self.bucket.as_ref().map(|bucket| bucket.tokens(now.mono_ns));
        in_flight.into_iter().chain(tokens).min().unwrap_or(u64::MAX)
    }

    pub(crate) fn new(name: QueueName, appeared: u64) -> Self {
        Self {
            name,
            line: Line::default(),
            groups: BTreeMap::new(),
            parked: 0,
            due_until: Timestamp::EPOCH,
            fetching: BTreeSet::new(),
            waiters: BTreeSet::new(),
            no_wait: 0,
            live: 0,
            leased: 0,
            dead: 0,
            expired: Expired::default(),
            users: 0,
            used: false,
            emptied: None,
            totals: QueueTotals::default(),
            figures: QueueFigures::default(),
            appeared,
            record: Arc::default(),
            bucket: None,
        }
    }

    /// Whether the queue has no task, no record other than the default, and no call that waits on it.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = self.live == 0 && self.dead == 0 && self.expired.is_empty();
        empty && self.waiters.is_empty() && self.record.is_default()
    }

    /// Whether the queue is in use: it is not empty, or a beanstalkd client uses it.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.is_empty() || self.users > 0
    }

    /// Whether a list of queues names this one: the queue is not empty, or was emptied within the last hour.
    pub(crate) fn is_listed(&self, now: Now) -> bool {
        !self.is_empty() || self.emptied.is_some_and(|emptied| emptied.is_recent(now.mono_tick()))
    }

    pub(crate) fn counts(&self, now: Now) -> QueueCounts {
        // An expired stub counts as dead, though its record in the store does not have the death yet.
        let expired = self.expired.len();
        let ready = (self.ready_len() as u64).saturating_sub(self.expired.in_line.len() as u64);
        QueueCounts {
            queue: self.name.clone(),
            scheduled: self.live.saturating_sub(expired + ready + self.leased),
            ready,
            leased: self.leased,
            dead: self.dead + expired,
            urgent: self.urgent_len() as u64,
            oldest_due: self.oldest_due(),
            paused: self.record.is_paused(now.falls_due()),
            draining: self.record.draining,
            totals: self.totals,
            figures: self.figures,
            appeared: self.appeared,
        }
    }

    pub(crate) fn ready_len(&self) -> usize {
        self.line.len() + self.parked
    }

    /// Returns how many ready tasks have a more urgent priority than the default one. Parked tasks are included, expired stubs are not.
    fn urgent_len(&self) -> usize {
        let parked = self.groups.values().map(|group| group.parked.urgent());
        (self.line.urgent() + parked.sum::<usize>()).saturating_sub(self.expired.urgent_len())
    }

    /// Returns the earliest `due_at` of the ready tasks, among those that [`Line::oldest_due`] looks at. `None`: no task is ready. Expired stubs
    /// do not count.
    fn oldest_due(&self) -> Option<Timestamp> {
        let expired = &self.expired.in_line;
        let parked = self.groups.values().filter_map(|group| group.parked.oldest_due(expired));
        parked.chain(self.line.oldest_due(expired)).min()
    }

    /// Returns an instant after which no ready task is due. `None`: no task is ready.
    pub(crate) fn last_due(&self) -> Option<Timestamp> {
        (self.ready_len() > 0).then_some(self.due_until)
    }

    /// Adds a whole task to the line. Returns whether the line did not have the task before.
    pub(crate) fn join(&mut self, place: ReadyPlace) -> bool {
        self.reach(place.key.due_at);
        self.line.insert(place)
    }

    /// Adds a stub to the line.
    pub(crate) fn join_stub(&mut self, stub: ReadyStub) {
        self.reach(stub.due_at);
        self.line.insert_stub(stub);
    }

    /// Prepares for a task that is about to join: moves `due_until` to the task's `due_at` if `due_at` is later or no task is ready. The
    /// last task of the line need not be due last, because the line is ordered by priority first.
    fn reach(&mut self, due_at: Timestamp) {
        self.due_until = if self.ready_len() == 0 { due_at } else { self.due_until.max(due_at) };
    }

    /// Takes a whole task out of the line, or out of the parked tasks.
    pub(crate) fn leave(&mut self, place: ReadyPlace, group: Option<&Group>) {
        if self.line.remove(&place) {
            return;
        }
        let group = group.and_then(|group| self.groups.get_mut(group));
        let was_parked = group.is_some_and(|group| group.parked.remove(&place));
        assert!(was_parked, "a ready task stands in line or is parked, but {place:?} does neither");
        self.parked -= 1;
    }

    /// Takes the stub of a task out of the line, or out of the parked tasks. `None`: the task has no stub in either.
    pub(crate) fn take_stub(&mut self, key: ReadyKey, group: Option<&Group>) -> Option<ReadyStub> {
        if let Some(stub) = self.line.remove_stub(key) {
            return Some(stub);
        }
        let stub = self.groups.get_mut(group?)?.parked.remove_stub(key)?;
        self.parked -= 1;
        Some(stub)
    }

    /// Whether the line or the parked tasks have a stub with this key.
    pub(crate) fn has_stub(&self, key: ReadyKey, group: Option<&Group>) -> bool {
        let group = group.and_then(|group| self.groups.get(group));
        self.line.stubs().get(key).is_some()
            || group.is_some_and(|group| group.parked.stubs().get(key).is_some())
    }

    /// Whether this whole task is parked in its group.
    pub(crate) fn is_parked(&self, place: ReadyPlace, group: Option<&Group>) -> bool {
        let group = group.and_then(|group| self.groups.get(group));
        group.is_some_and(|group| group.parked.whole().contains(&place))
    }

    /// Parks a task. Before this call the task must not be in the line.
    pub(crate) fn park(&mut self, group: &Group, one: InLine) {
        self.groups.entry(group.clone()).or_default().parked.push(one);
        self.parked += 1;
    }

    /// Makes way after a task has left the line or its worker: one parked task of its group, if there is one, comes back into the line.
    /// Returns whether calls wait and the line has tasks.
    pub(crate) fn make_way(&mut self, group: Option<&Group>) -> bool {
        if let Some(group) = group {
            self.unpark_one(group);
        }
        !self.waiters.is_empty() && !self.line.is_empty()
    }

    fn unpark_one(&mut self, group: &Group) {
        let Some(of) = self.groups.get_mut(group) else { return };
        let back = of.parked.pop_first();
        if of.leased == 0 && of.parked.is_empty() {
            self.groups.remove(group);
        }
        if let Some(back) = back {
            self.parked -= 1;
            self.line.push(back);
        }
    }

    /// Puts all parked tasks back into the line, because the limit of their groups has changed.
    pub(crate) fn unpark_all(&mut self) {
        for of in self.groups.values_mut() {
            while let Some(back) = of.parked.pop_first() {
                self.line.push(back);
            }
        }
        self.parked = 0;
        self.groups.retain(|_, of| of.leased > 0);
    }

    /// Counts a task that a worker gets.
    pub(crate) fn lease_begins(&mut self, group: Option<&Group>) {
        self.leased += 1;
        if let Some(group) = group {
            self.groups.entry(group.clone()).or_default().leased += 1;
        }
    }

    /// Counts a task that leaves its worker.
    pub(crate) fn lease_ends(&mut self, group: Option<&Group>) {
        self.leased -= 1;
        if let Some(group) = group {
            self.groups.get_mut(group).expect("a group is there while workers have tasks of it").leased -= 1;
        }
    }
}
