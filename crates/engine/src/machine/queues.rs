//! The queues: what is ready in each, who waits for it, and how many tasks there are.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::Slot;
use super::heads::Fetch;
use super::runs::{Ordered, Runs};
use super::stub::{ReadyKey, ReadyStub};
use crate::input::CallId;
use crate::name::QueueName;
use crate::task::Task;
use crate::time::Timestamp;

/// A ready task that is held whole, in the ready order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ReadyPlace {
    pub(super) key: ReadyKey,
    pub(super) slot: Slot,
}

impl ReadyPlace {
    pub(super) fn of(task: &Task, slot: Slot) -> Self {
        Self { key: ReadyKey::of(task), slot }
    }
}

/// A call that waits for ready tasks: for one to become ready, or for the records of those that are.
#[derive(Copy, Clone, Debug)]
pub(super) struct Waiter {
    pub(super) max: usize,
    pub(super) lease_ms: u64,
    /// Whether it also waits while nothing is ready.
    pub(super) patient: bool,
}

/// The number of a queue as long as it is there.
pub(super) type QueueNo = u32;

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: QueueName,
    /// What is ready and held whole.
    pub(super) ready: BTreeSet<ReadyPlace>,
    /// What is ready beside that.
    pub(super) stubs: Runs<ReadyStub>,
    /// Nothing in line is due after this instant.
    due_until: Timestamp,
    /// Stubs whose records are on their way.
    pub(super) fetching: BTreeSet<ReadyKey>,
    /// In the order they asked.
    pub(super) waiters: BTreeMap<CallId, Waiter>,
    /// Waiters that are not patient.
    impatient: usize,
    /// Tasks that have not ended, far ones included.
    pub(super) live: u64,
    pub(super) leased: u64,
    /// Tasks that were given up and are not forgotten.
    pub(super) dead: u64,
    /// Stubs that have expired: they count as dead, though their records do not say so yet.
    pub(super) expired: BTreeSet<u64>,
}

impl Queue {
    fn new(name: QueueName) -> Self {
        Self {
            name,
            ready: BTreeSet::new(),
            stubs: Runs::default(),
            due_until: Timestamp::EPOCH,
            fetching: BTreeSet::new(),
            waiters: BTreeMap::new(),
            impatient: 0,
            live: 0,
            leased: 0,
            dead: 0,
            expired: BTreeSet::new(),
        }
    }

    fn is_idle(&self) -> bool {
        self.live == 0 && self.dead == 0 && self.expired.is_empty() && self.waiters.is_empty()
    }

    pub(super) fn ready_len(&self) -> usize {
        self.ready.len() + self.stubs.len()
    }

    /// The first in the ready order.
    pub(super) fn first_ready(&self) -> Option<ReadyKey> {
        let whole = self.ready.first().map(|place| place.key);
        let stub = self.stubs.first().map(Ordered::key);
        whole.into_iter().chain(stub).min()
    }

    /// An instant that nothing ready is due after; `None`: nothing is ready.
    pub(super) fn last_due(&self) -> Option<Timestamp> {
        (self.ready_len() > 0).then_some(self.due_until)
    }

    /// A task joins the line that is held whole. Whether it was not there.
    pub(super) fn join(&mut self, place: ReadyPlace) -> bool {
        self.reach(place.key.due_at);
        self.ready.insert(place)
    }

    /// A stub joins the line.
    pub(super) fn join_stub(&mut self, stub: ReadyStub) {
        self.reach(stub.due_at);
        self.stubs.insert(stub);
    }

    /// The line goes by priority first, so its end does not say what is due last.
    fn reach(&mut self, due_at: Timestamp) {
        self.due_until = if self.ready_len() == 0 { due_at } else { self.due_until.max(due_at) };
    }

    /// Whether the first `count` in the ready order are held whole, or all that are ready if there are fewer.
    pub(super) fn has_whole(&self, count: usize) -> bool {
        let Some(stub) = self.stubs.first() else { return true };
        let end = ReadyPlace { key: stub.key(), slot: 0 };
        self.ready.len() >= count && self.ready.range(..end).take(count).count() == count
    }

    /// Stubs among the first `count` in the ready order.
    pub(super) fn stubs_among(&self, count: usize) -> impl Iterator<Item = &ReadyStub> {
        let mut whole = self.ready.iter().peekable();
        let mut left = count;
        self.stubs.iter().take_while(move |stub| {
            while left > 0 && whole.next_if(|place| place.key < stub.key()).is_some() {
                left -= 1;
            }
            let among = left > 0;
            left = left.saturating_sub(1);
            among
        })
    }
}

/// All queues that have a live or a dead task, or a waiting call. A queue appears on first use and vanishes when idle.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_name: BTreeMap<QueueName, QueueNo>,
    queues: Vec<Option<Queue>>,
    free: Vec<QueueNo>,
    /// Which queue each waiting call waits on.
    waiting: BTreeMap<CallId, QueueName>,
}

impl Queues {
    pub(super) fn get(&self, name: &QueueName) -> Option<&Queue> {
        self.by_name.get(name).map(|&no| self.numbered(no))
    }

    pub(super) fn number(&self, name: &QueueName) -> Option<QueueNo> {
        self.by_name.get(name).copied()
    }

    /// The queue with this number; only somebody who keeps it there may ask.
    pub(super) fn numbered(&self, no: QueueNo) -> &Queue {
        self.queues[no as usize].as_ref().expect("a queue keeps its number while it has live tasks")
    }

    pub(super) fn numbered_mut(&mut self, no: QueueNo) -> &mut Queue {
        self.queues[no as usize].as_mut().expect("a queue keeps its number while it has live tasks")
    }

    /// The queue that wanted this record, if it is still there and has not become another.
    pub(super) fn fetched(&mut self, fetch: Fetch) -> Option<&mut Queue> {
        let queue = self.queues.get_mut(fetch.queue as usize)?.as_mut()?;
        queue.fetching.remove(&fetch.key).then_some(queue)
    }

    /// The queue, made if it is not there.
    pub(super) fn open(&mut self, name: &QueueName) -> &mut Queue {
        let no = match self.by_name.get(name) {
            Some(&no) => no,
            None => self.make(name),
        };
        self.numbered_mut(no)
    }

    fn make(&mut self, name: &QueueName) -> QueueNo {
        let queue = Some(Queue::new(name.clone()));
        let no = match self.free.pop() {
            Some(no) => {
                self.queues[no as usize] = queue;
                no
            }
            None => {
                self.queues.push(queue);
                QueueNo::try_from(self.queues.len() - 1).expect("fewer than 2^32 queues")
            }
        };
        self.by_name.insert(name.clone(), no);
        no
    }

    /// Forgets the queue if it is idle.
    pub(super) fn tidy(&mut self, name: &QueueName) {
        if let Some(&no) = self.by_name.get(name)
            && self.numbered(no).is_idle()
        {
            self.by_name.remove(name);
            self.queues[no as usize] = None;
            self.free.push(no);
        }
    }

    /// All queues, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_name.values().map(|&no| self.numbered(no))
    }

    pub(super) fn wait(&mut self, name: &QueueName, call: CallId, waiter: Waiter) {
        let queue = self.open(name);
        queue.impatient += usize::from(!waiter.patient);
        queue.waiters.insert(call, waiter);
        self.waiting.insert(call, name.clone());
    }

    /// Ends a wait; whether the call was waiting.
    pub(super) fn end_wait(&mut self, call: CallId) -> bool {
        let Some(name) = self.waiting.remove(&call) else { return false };
        let queue = self.open(&name);
        let gone = queue.waiters.remove(&call);
        queue.impatient -= usize::from(gone.is_some_and(|waiter| !waiter.patient));
        self.tidy(&name);
        true
    }

    /// The queue that the call waits on.
    pub(super) fn waited_on(&self, call: CallId) -> Option<&Queue> {
        self.waiting.get(&call).and_then(|name| self.get(name))
    }

    /// The call, which waits, does so no longer than it takes to see what is ready.
    pub(super) fn hurry(&mut self, call: CallId) {
        let Some(name) = self.waiting.get(&call).cloned() else { return };
        let queue = self.open(&name);
        if let Some(waiter) = queue.waiters.get_mut(&call) {
            queue.impatient += usize::from(waiter.patient);
            waiter.patient = false;
        }
    }

    /// A call that waits on this queue and is not patient, the longest first.
    pub(super) fn first_impatient(&self, name: &QueueName) -> Option<CallId> {
        let queue = self.get(name).filter(|queue| queue.impatient > 0)?;
        queue.waiters.iter().find(|(_, waiter)| !waiter.patient).map(|(&call, _)| call)
    }

    /// The call that has waited longest, in all.
    pub(super) fn first_waiting(&self) -> Option<CallId> {
        self.waiting.first_key_value().map(|(&call, _)| call)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
