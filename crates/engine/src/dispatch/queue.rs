//! A queue: its ready tasks, the calls that wait for them, and how many tasks it has.

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
use crate::task::Task;
use crate::time::{Now, Timestamp};

/// An empty queue stays in lists for an hour (ms), so that an operator who looks at it then still finds it.
const LISTED_MS: u64 = 3_600_000;

/// A queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(super) name: QueueName,
    /// The ready tasks, without those that are parked because their group has as many tasks in workers' hands as it may.
    pub(super) line: Line,
    /// Groups with tasks in workers' hands.
    pub(super) groups: BTreeMap<Group, InGroup>,
    /// Tasks parked in all groups.
    pub(super) parked: usize,
    /// No ready task is due after this instant.
    due_until: Timestamp,
    /// The stubs of which the records are being fetched.
    pub(super) fetching: BTreeSet<ReadyKey>,
    /// Calls that wait, in the order they asked.
    pub(super) waiters: BTreeSet<CallId>,
    /// Calls in `waiters` that do not wait while nothing is ready.
    pub(super) no_wait: usize,
    /// Tasks that have not ended, far ones included.
    pub(super) live: u64,
    pub(super) leased: u64,
    /// Tasks that were given up and are not forgotten.
    pub(super) dead: u64,
    pub(super) expired: Expired,
    /// How many clients of beanstalkd use it.
    pub(super) users: u64,
    /// Whether the queue has had a task or settings since it was last found empty. Then lists name it until an hour after it is empty again.
    pub(super) used: bool,
    /// When the queue was last found empty after it had been used; `None` once that is forgotten.
    pub(super) emptied: Option<Emptied>,
    /// The totals of the queue since it came into use.
    pub(super) totals: QueueTotals,
    /// The figures of the queue since it appeared.
    pub(super) figures: QueueFigures,
    /// The number of the queue, in the order in which queues appeared.
    pub(super) appeared: u64,
    /// The settings, the pause and the drain of its owner.
    pub(super) record: Arc<QueueRecord>,
    /// The tokens that the rate has left, if the queue has a rate.
    pub(super) bucket: Option<Bucket>,
}

/// A queue was found empty after it had been used.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Emptied {
    /// A queue that was emptied later has a greater number.
    pub(crate) number: u64,
    /// When, by the monotonic clock (ms).
    pub(crate) at_ms: u64,
}

impl Emptied {
    pub(crate) fn is_recent(self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) < LISTED_MS
    }
}

/// Tasks of one group.
#[derive(Debug, Default)]
pub(crate) struct InGroup {
    /// In workers' hands.
    pub(crate) leased: u64,
    /// Ready tasks that were passed over: the group had as many tasks as it may in workers' hands, or in line before these. Whenever one of
    /// those tasks goes, a parked one comes back into the line. So a parked task always waits for some other task of its group.
    pub(crate) parked: Line,
}

/// Stubs that have expired. They count as dead, though their records do not say so yet.
#[derive(Debug, Default)]
pub(crate) struct Expired {
    /// The stubs by id. `true`: the stub is in the line. `false`: its task waits for the next instant of its timeline.
    stubs: BTreeMap<u64, bool>,
    in_line: u64,
}

impl Expired {
    /// A stub expires. Returns whether the stub had not expired before.
    pub(crate) fn insert(&mut self, id: u64, in_line: bool) -> bool {
        let was = self.stubs.insert(id, in_line);
        self.in_line += u64::from(in_line);
        self.in_line -= u64::from(was == Some(true));
        was.is_none()
    }

    /// A stub joins the line. If it has expired, it is counted there.
    pub(crate) fn join(&mut self, id: u64) {
        if self.stubs.contains_key(&id) {
            self.insert(id, true);
        }
    }

    /// The record of a stub is here, or is about to be.
    pub(crate) fn remove(&mut self, id: u64) {
        let was = self.stubs.remove(&id);
        self.in_line -= u64::from(was == Some(true));
    }

    fn is_empty(&self) -> bool {
        self.stubs.is_empty()
    }

    fn len(&self) -> u64 {
        self.stubs.len() as u64
    }
}

impl Queue {
    /// The count that this task belongs to: of the dead tasks or of the live ones.
    pub(crate) fn tasks_like(&mut self, task: &Task) -> &mut u64 {
        if task.dead().is_some() { &mut self.dead } else { &mut self.live }
    }

    /// How many tasks may go into workers' hands now, groups left aside.
    pub(crate) fn allowance(&self, now: Now) -> u64 {
        if self.record.is_paused(now.wall) {
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

    /// Whether the queue has no task, no settings, and no call that waits on it.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = self.live == 0 && self.dead == 0 && self.expired.is_empty();
        empty && self.waiters.is_empty() && self.record.is_default()
    }

    /// Whether the queue is in use: it is not empty, or a client of beanstalkd uses it.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.is_empty() || self.users > 0
    }

    /// Whether a list of queues names this one: the queue is not empty, or became empty within the last hour.
    pub(crate) fn is_listed(&self, now: Now) -> bool {
        !self.is_empty() || self.emptied.is_some_and(|emptied| emptied.is_recent(now.mono_tick()))
    }

    pub(crate) fn counts(&self, now: Now) -> QueueCounts {
        // A task that has expired is dead, whether or not its record says so.
        let expired = self.expired.len();
        let ready = (self.ready_len() as u64).saturating_sub(self.expired.in_line);
        QueueCounts {
            queue: self.name.clone(),
            scheduled: self.live.saturating_sub(expired + ready + self.leased),
            ready,
            leased: self.leased,
            dead: self.dead + expired,
            urgent: self.urgent_len() as u64,
            oldest_due: self.oldest_due(),
            paused: self.record.is_paused(now.wall),
            draining: self.record.draining,
            totals: self.totals,
            figures: self.figures,
            appeared: self.appeared,
        }
    }

    pub(crate) fn ready_len(&self) -> usize {
        self.line.len() + self.parked
    }

    /// How many ready tasks go before the tasks of the usual priority.
    fn urgent_len(&self) -> usize {
        let parked = self.groups.values().map(|group| group.parked.urgent());
        self.line.urgent() + parked.sum::<usize>()
    }

    /// When the oldest ready task was due; `None`: nothing is ready.
    fn oldest_due(&self) -> Option<Timestamp> {
        let parked = self.groups.values().filter_map(|group| group.parked.oldest_due());
        parked.chain(self.line.oldest_due()).min()
    }

    /// An instant after which no ready task is due; `None`: nothing is ready.
    pub(crate) fn last_due(&self) -> Option<Timestamp> {
        (self.ready_len() > 0).then_some(self.due_until)
    }

    /// A task joins the line. Returns whether it was not there before.
    pub(crate) fn join(&mut self, place: ReadyPlace) -> bool {
        self.reach(place.key.due_at);
        self.line.insert(place)
    }

    /// A stub joins the line.
    pub(crate) fn join_stub(&mut self, stub: ReadyStub) {
        self.reach(stub.due_at);
        self.line.insert_stub(stub);
    }

    /// The line goes by priority first, so its end does not say what is due last.
    fn reach(&mut self, due_at: Timestamp) {
        self.due_until = if self.ready_len() == 0 { due_at } else { self.due_until.max(due_at) };
    }

    /// A task that is held whole leaves the line, or the place where it is parked.
    pub(crate) fn leave(&mut self, place: ReadyPlace, group: Option<&Group>) {
        if self.line.remove(&place) {
            return;
        }
        let group = group.and_then(|group| self.groups.get_mut(group));
        let was_parked = group.is_some_and(|group| group.parked.remove(&place));
        assert!(was_parked, "a ready task stands in line or is parked, but {place:?} does neither");
        self.parked -= 1;
    }

    /// Takes the stub of a task away, wherever it stands.
    pub(crate) fn take_stub(&mut self, key: ReadyKey, group: Option<&Group>) -> Option<ReadyStub> {
        if let Some(stub) = self.line.remove_stub(key) {
            return Some(stub);
        }
        let stub = self.groups.get_mut(group?)?.parked.remove_stub(key)?;
        self.parked -= 1;
        Some(stub)
    }

    /// Whether there is a stub of a task.
    pub(crate) fn has_stub(&self, key: ReadyKey, group: Option<&Group>) -> bool {
        let group = group.and_then(|group| self.groups.get(group));
        self.line.stubs().get(key).is_some()
            || group.is_some_and(|group| group.parked.stubs().get(key).is_some())
    }

    /// Whether a task that is held whole is parked.
    pub(crate) fn is_parked(&self, place: ReadyPlace, group: Option<&Group>) -> bool {
        let group = group.and_then(|group| self.groups.get(group));
        group.is_some_and(|group| group.parked.whole().contains(&place))
    }

    /// Parks a task that is in no line.
    pub(crate) fn park(&mut self, group: &Group, one: InLine) {
        self.groups.entry(group.clone()).or_default().parked.push(one);
        self.parked += 1;
    }

    /// A task has left the line, or a worker's hands. If it has a group, one parked task of the group comes back into the line. Returns
    /// whether a waiting call may get something now.
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

    /// Puts all parked tasks back into the line: their limit has changed.
    pub(crate) fn unpark_all(&mut self) {
        for of in self.groups.values_mut() {
            while let Some(back) = of.parked.pop_first() {
                self.line.push(back);
            }
        }
        self.parked = 0;
        self.groups.retain(|_, of| of.leased > 0);
    }

    /// A task goes into a worker's hands.
    pub(crate) fn lease_begins(&mut self, group: Option<&Group>) {
        self.leased += 1;
        if let Some(group) = group {
            self.groups.entry(group.clone()).or_default().leased += 1;
        }
    }

    /// A task leaves a worker's hands.
    pub(crate) fn lease_ends(&mut self, group: Option<&Group>) {
        self.leased -= 1;
        if let Some(group) = group {
            self.groups.get_mut(group).expect("a group is there while workers have tasks of it").leased -= 1;
        }
    }
}
