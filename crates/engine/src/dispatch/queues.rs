//! [`Queues`]: all queues by name and by number, the calls that wait for their tasks, and the pages of queue lists.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::queue::{Emptied, Queue};
use crate::calls::{Lease as LeaseCall, ListQueues, QUEUES_PAGE_MAX, WhichQueues};
use crate::figures::QueueFigures;
use crate::input::CallId;
use crate::name::QueueName;
use crate::queue_view::{QueuePage, QueueTotals};
use crate::residence::QueueNo;
use crate::time::Now;

/// In one step the engine forgets at most this many queues because their hour is over. So the other queues are not held up when very many
/// queues were emptied at one time.
const FORGOTTEN_MAX: usize = 64;

/// All queues that have a live or a dead task, a waiting call, a beanstalkd client, or a record other than the default. Queues that were
/// emptied within the last hour are also kept, up to `empty_max` of them. A queue appears on its first use.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    by_name: BTreeMap<QueueName, QueueNo>,
    /// The totals of queues that have ended, by namespace. A namespace is kept only while it has other queues.
    gone: BTreeMap<String, QueueTotals>,
    /// The sum of the figures of all queues that the engine has forgotten.
    forgotten: QueueFigures,
    /// How many queues have appeared since this process first had the shard.
    appeared: u64,
    queues: Vec<Option<Queue>>,
    free: Vec<QueueNo>,
    /// The queues that have an `emptied`, by the number of the `emptied`, the earliest first. Some of these queues may have tasks again.
    emptied: BTreeMap<u64, QueueNo>,
    /// The last number that was given to an `emptied`.
    emptied_last: u64,
    /// The time of the last [`pass_time`](Self::pass_time), by the monotonic clock (ms).
    now_ms: u64,
    /// The lease calls that wait.
    waiting: BTreeMap<CallId, LeaseCall>,
    /// The number of them that are no calls of a target.
    waiting_workers: usize,
    /// The largest number of queues in `emptied`. When there are more, the queue that was emptied first is taken out.
    empty_max: usize,
}

impl Queues {
    pub(super) fn new(empty_max: usize) -> Self {
        Self { empty_max, ..Self::default() }
    }

    pub(super) fn get(&self, name: &QueueName) -> Option<&Queue> {
        self.by_name.get(name).map(|&no| self.numbered(no))
    }

    pub(super) fn number(&self, name: &QueueName) -> Option<QueueNo> {
        self.by_name.get(name).copied()
    }

    /// Returns the queue with this number. The caller must know that the queue still exists, for example because the queue has a live task.
    pub(super) fn numbered(&self, no: QueueNo) -> &Queue {
        self.queues[no as usize].as_ref().expect("a queue keeps its number while it has live tasks")
    }

    /// Returns the queue that has this number now, if there is one. Another queue may have had the number before.
    pub(super) fn find_numbered(&mut self, no: QueueNo) -> Option<&mut Queue> {
        self.queues.get_mut(no as usize)?.as_mut()
    }

    pub(super) fn numbered_mut(&mut self, no: QueueNo) -> &mut Queue {
        self.queues[no as usize].as_mut().expect("a queue keeps its number while it has live tasks")
    }

    /// Returns the queue with this name, and makes the queue if there is none.
    pub(super) fn open(&mut self, name: &QueueName) -> &mut Queue {
        let no = match self.by_name.get(name) {
            Some(&no) => no,
            None => self.make(name),
        };
        self.numbered_mut(no)
    }

    fn make(&mut self, name: &QueueName) -> QueueNo {
        self.appeared += 1;
        let queue = Some(Queue::new(name.clone(), self.appeared));
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

    /// If the queue is empty and was used, notes the time, so that lists name the queue for another hour. Removes the queue if it is empty,
    /// lists need not name it, and no beanstalkd client uses it.
    pub(super) fn tidy(&mut self, name: &QueueName) {
        let Some(&no) = self.by_name.get(name) else { return };
        let (now_ms, number) = (self.now_ms, self.emptied_last + 1);
        let queue = self.numbered_mut(no);
        if !queue.is_empty() {
            return;
        }
        if core::mem::take(&mut queue.used) {
            let before = queue.emptied.replace(Emptied { number, at_ms: now_ms });
            if let Some(before) = before {
                self.emptied.remove(&before.number);
            }
            self.emptied.insert(number, no);
            self.emptied_last = number;
            if self.emptied.len() > self.empty_max {
                self.forget_earliest();
            }
        }
        self.end_if_unused(no);
    }

    /// Notes the time. Then takes up to [`FORGOTTEN_MAX`] queues that were emptied an hour ago or earlier out of `emptied`, and ends those
    /// that are not in use again.
    pub(super) fn pass_time(&mut self, now: Now) {
        self.now_ms = now.mono_tick();
        for _ in 0..FORGOTTEN_MAX {
            let Some((_, &no)) = self.emptied.first_key_value() else { return };
            if self.numbered(no).emptied.is_some_and(|emptied| emptied.is_recent(self.now_ms)) {
                return;
            }
            self.forget_earliest();
        }
    }

    /// Takes the queue that was emptied first out of `emptied`. Ends the queue, unless it is in use again.
    fn forget_earliest(&mut self) {
        if let Some((_, no)) = self.emptied.pop_first() {
            self.numbered_mut(no).emptied = None;
            self.end_if_unused(no);
        }
    }

    /// Takes a deleted queue out of `emptied`, so that lists name it no longer, unless a call waits on it. Ends the queue, unless a call
    /// waits for its tasks or a beanstalkd client uses it.
    pub(super) fn forget(&mut self, name: &QueueName) {
        let Some(&no) = self.by_name.get(name) else { return };
        let queue = self.numbered_mut(no);
        queue.used = false;
        if let Some(emptied) = queue.emptied.take() {
            self.emptied.remove(&emptied.number);
        }
        self.end_if_unused(no);
    }

    /// Ends a queue that is not in use: its totals move to its namespace. The queue is removed, unless lists still name it.
    fn end_if_unused(&mut self, no: QueueNo) {
        let queue = self.numbered_mut(no);
        if queue.is_in_use() {
            return;
        }
        let (name, totals) = (queue.name.clone(), core::mem::take(&mut queue.totals));
        if queue.emptied.is_none() {
            let figures = queue.figures;
            self.forgotten.add(&figures);
            self.by_name.remove(&name);
            self.queues[no as usize] = None;
            self.free.push(no);
        }
        self.remember(&name, &totals);
    }

    /// Adds the totals of a queue that has ended to the totals of its namespace. Forgets the namespace if it has no queue any more. Does
    /// nothing for a queue without a namespace.
    fn remember(&mut self, ended: &QueueName, totals: &QueueTotals) {
        let name = ended.as_str();
        let Some(ends) = name.find('/') else { return };
        let (namespace, prefix) = (&name[..ends], &name[..=ends]);
        let behind = self.by_name.range::<QueueName, _>(ended..).next();
        let before = self.by_name.range::<QueueName, _>(..ended).next_back();
        let of_namespace = |(other, _): (&QueueName, _)| other.as_str().starts_with(prefix);
        if !behind.is_some_and(of_namespace) && !before.is_some_and(of_namespace) {
            self.gone.remove(namespace);
            return;
        }
        self.gone.entry(namespace.to_owned()).or_default().add(totals);
    }

    /// Returns the totals of the queues that have ended, by namespace.
    pub(crate) fn gone(&self) -> &BTreeMap<String, QueueTotals> {
        &self.gone
    }

    /// Returns the sum of the figures of all queues that the engine has forgotten.
    pub(crate) fn forgotten(&self) -> &QueueFigures {
        &self.forgotten
    }

    /// Returns the sum of the figures of all queues that there were.
    pub(crate) fn figures_of_all(&self) -> QueueFigures {
        let mut sum = self.forgotten;
        self.queues.iter().flatten().for_each(|queue| sum.add(&queue.figures));
        sum
    }

    /// Counts on from an earlier engine: all of its queues are forgotten ones, and the queues here appeared after them.
    pub(crate) fn count_on(&mut self, figures: &QueueFigures, appeared: u64) {
        self.forgotten.add(figures);
        self.appeared += appeared;
        self.queues.iter_mut().flatten().for_each(|queue| queue.appeared += appeared);
    }

    /// Returns how many queues have appeared since this process first had the shard.
    pub(crate) fn appeared(&self) -> u64 {
        self.appeared
    }

    /// Whether the line of the queue has a task. Parked tasks are not in the line.
    pub(super) fn has_line(&self, name: &QueueName) -> bool {
        self.get(name).is_some_and(|queue| !queue.line.is_empty())
    }

    /// Returns one page of the queues, in the order of their names. Looks at up to `list.max` queues whose names begin with `list.prefix`,
    /// and leaves out those that `list.which` does not want. So a page can have fewer than `list.max` queues though more pages follow.
    pub(crate) fn page(&self, now: Now, list: &ListQueues) -> QueuePage {
        let ListQueues { which, prefix, after, max } = list;
        // The prefix may be no valid name, so it is compared as text. In the order of texts, all names that begin with the prefix are at
        // the prefix or behind it.
        let from: Bound<&str> = match after {
            Some(after) if after.as_str() >= &**prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let all = self.by_name.range::<str, _>((from, Bound::Unbounded));
        let mut of_prefix = all.take_while(|(name, _)| name.as_str().starts_with(&**prefix)).peekable();
        let (mut queues, mut last) = (Vec::new(), None);
        for (name, &no) in of_prefix.by_ref().take((*max).clamp(1, QUEUES_PAGE_MAX)) {
            let queue = self.numbered(no);
            let belongs = match which {
                WhichQueues::Listed => queue.is_listed(now),
                WhichQueues::InUse => queue.is_in_use(),
            };
            queues.extend(belongs.then(|| queue.counts(now)));
            last = Some(name);
        }
        let next = last.filter(|_| of_prefix.peek().is_some()).cloned();
        QueuePage { queues, next }
    }

    pub(super) fn wait(&mut self, call: CallId, waiter: LeaseCall) {
        for name in waiter.queues.iter() {
            let queue = self.open(name);
            // A call may name a queue twice.
            if queue.waiters.insert(call) {
                queue.no_wait += usize::from(!waiter.wait);
            }
        }
        self.waiting_workers += usize::from(!waiter.for_target);
        self.waiting.insert(call, waiter);
    }

    /// Ends the wait of the waiting call with the lowest number. Returns the call and what it asked for; `None`: no call waits.
    pub(super) fn pop_waiting(&mut self) -> Option<(CallId, LeaseCall)> {
        let call = *self.waiting.first_key_value()?.0;
        self.end_wait(call).map(|lease| (call, lease))
    }

    /// Ends a wait. Returns what the call asked for; `None`: the call was not waiting.
    pub(super) fn end_wait(&mut self, call: CallId) -> Option<LeaseCall> {
        let waiter = self.waiting.remove(&call)?;
        self.waiting_workers -= usize::from(!waiter.for_target);
        for name in waiter.queues.iter() {
            // A queue may be named twice, and may be gone after the first time.
            let Some(&no) = self.by_name.get(name) else { continue };
            let queue = self.numbered_mut(no);
            if queue.waiters.remove(&call) {
                queue.no_wait -= usize::from(!waiter.wait);
            }
            self.tidy(name);
        }
        Some(waiter)
    }

    /// Returns the waiting lease call with this number. `None`: the call does not wait.
    pub(super) fn waiter(&self, call: CallId) -> Option<&LeaseCall> {
        self.waiting.get(&call)
    }

    /// Returns the call with the lowest number that waits on this queue.
    pub(super) fn first_waiter(&self, name: &QueueName) -> Option<(CallId, &LeaseCall)> {
        let call = *self.get(name)?.waiters.first()?;
        Some((call, &self.waiting[&call]))
    }

    /// Makes a waiting call a no-wait call, which waits only until it gets tasks or it is certain that there are none for it.
    pub(super) fn hurry(&mut self, call: CallId) {
        let Some(waiter) = self.waiting.get_mut(&call).filter(|waiter| waiter.wait) else { return };
        waiter.wait = false;
        let names = Arc::clone(&waiter.queues);
        let counted: BTreeSet<&QueueName> = names.iter().collect();
        for name in counted {
            self.open(name).no_wait += 1;
        }
    }

    /// Returns the no-wait calls that wait on this queue, in the order of their numbers.
    pub(super) fn no_wait(&self, name: &QueueName) -> impl Iterator<Item = (CallId, &LeaseCall)> {
        let queue = self.get(name).filter(|queue| queue.no_wait > 0);
        let calls = queue.into_iter().flat_map(|queue| &queue.waiters);
        calls.map(|call| (*call, &self.waiting[call])).filter(|(_, waiter)| !waiter.wait)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of waiting lease calls that are no calls of a target.
    pub(crate) fn waiting_workers(&self) -> usize {
        self.waiting_workers
    }
}
