//! [`Delivery`]: gives ready tasks to the calls that ask for tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Dispatch;
use super::choice::{Choice, Room};
use super::leases::{BegunLease, Holder};
use super::queue::Queue;
use crate::calls::{Answer, Lease as LeaseCall, Leased, Unavailable};
use crate::input::CallId;
use crate::ledger::Ledger;
use crate::name::QueueName;
use crate::residence::{At, Residence, Slot};
use crate::time::{Now, Timestamp};
use crate::token::Token;

/// The options of a worker that asks for tasks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Taking<'a> {
    /// How long the lease lasts (ms); `None`: the task decides, else its queue, else the default.
    pub(crate) lease_ms: Option<u64>,
    /// The worker's name.
    pub(crate) worker: Option<&'a Arc<str>>,
}

/// The parts of the engine that a delivery touches, and the moment of the delivery.
pub(crate) struct Delivery<'a> {
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) residence: &'a mut Residence,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) now: Now,
}

impl Delivery<'_> {
    pub(crate) fn lease(&mut self, call: CallId, lease: LeaseCall) {
        let queues = Arc::clone(&lease.queues);
        // A call that wants no task or names no queue is answered at once. Otherwise the call would wait in front of calls that want tasks.
        if lease.max == 0 || queues.is_empty() {
            return self.ledger.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        let unawaited = |name| self.dispatch.queues.get(name).is_none_or(|queue| queue.waiters.is_empty());
        let first_in_line = queues.iter().all(unawaited);
        let granted = if first_in_line { self.grant(&lease) } else { Vec::new() };
        let at_once = !granted.is_empty() || !lease.wait && self.shows_all(&queues);
        if at_once {
            return self.deliver(call, granted);
        }
        self.dispatch.queues.wait(call, lease);
        if first_in_line && self.residence.knows_what_is_due(self.now) {
            queues.iter().for_each(|name| self.dispatch.watch_rate(self.now, name));
        } else {
            // Marks the queues, so that `serve` looks at their waiting calls again. The new call may be the first of these calls, because
            // call numbers need not arrive in order. If it wants fewer tasks than the others, the whole tasks in memory may be enough for
            // it.
            self.look_among(&queues);
        }
    }

    /// Marks queues, so that `serve` looks at their waiting calls. A queue is marked only if it may have tasks. The other queues are
    /// skipped to save time, because a call may name a thousand queues.
    fn look_among(&mut self, names: &[QueueName]) {
        let is_known = self.residence.knows_what_is_due(self.now);
        let worth_a_look = names.iter().filter(|name| !is_known || self.dispatch.queues.has_line(name));
        self.dispatch.to_serve.extend(worth_a_look.cloned());
    }

    /// Whether a lease call over these queues that gets no task may be answered with "no task": memory knows which tasks are due, and each
    /// of the queues has an empty line or may hand out no task now. While a record of a task in the line has to be fetched first, the
    /// answer has to wait.
    fn shows_all(&self, names: &[QueueName]) -> bool {
        let none = |queue: &Queue| queue.line.is_empty() || queue.allowance(self.now) == 0;
        self.residence.knows_what_is_due(self.now)
            && names.iter().all(|name| self.dispatch.queues.get(name).is_none_or(none))
    }

    /// Ends the wait of a lease call. If it is certain that the call can get no task now, answers the call with no task. Otherwise makes
    /// the call a no-wait call, which `serve` answers as soon as memory knows its tasks, or knows that there are none.
    pub(crate) fn end_wait(&mut self, call: CallId) {
        let Some(queues) = self.dispatch.queues.waiter(call).map(|waiter| Arc::clone(&waiter.queues)) else {
            return;
        };
        if self.shows_all(&queues) {
            self.dispatch.queues.end_wait(call);
            return self.ledger.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        self.dispatch.queues.hurry(call);
        self.look_among(&queues);
    }

    /// Gives ready tasks to the waiting calls of each marked queue, in the order of the call numbers, and answers the no-wait calls that
    /// can get no task. Does nothing while memory does not know which tasks are due. Once the store has failed, refuses all waiting calls
    /// instead.
    pub(crate) fn serve(&mut self) {
        if let Some(why) = self.ledger.failure().cloned() {
            return self.refuse_waiting(&why);
        }
        if !self.residence.knows_what_is_due(self.now) {
            return;
        }
        while let Some(name) = self.dispatch.to_serve.pop_first() {
            while self.dispatch.queues.has_line(&name)
                && let Some((call, waiter)) = self.dispatch.queues.first_waiter(&name)
            {
                let lease = waiter.clone();
                let granted = self.grant(&lease);
                if granted.is_empty() {
                    break;
                }
                self.served(call, granted);
            }
            while let Some(call) = self.first_unserved(&name) {
                self.served(call, Vec::new());
            }
            self.dispatch.watch_rate(self.now, &name);
        }
    }

    /// Refuses all waiting calls, because the store has failed and no task is handed out any more.
    fn refuse_waiting(&mut self, why: &Arc<str>) {
        while let Some((call, _)) = self.dispatch.queues.pop_waiting() {
            let why = Unavailable::ReadOnly { why: Arc::clone(why) };
            self.ledger.answer(call, Answer::Lease(Err(why)));
        }
    }

    /// Ends the waits of all calls, because the engine stops.
    pub(crate) fn end_waits(&mut self) {
        while let Some((call, LeaseCall { queues, .. })) = self.dispatch.queues.pop_waiting() {
            // A task may be ready while its record is not in memory yet. Then an answer with no task would be wrong.
            let none = if self.shows_all(&queues) { Ok(Vec::new()) } else { Err(Unavailable::Closed) };
            self.ledger.answer(call, Answer::Lease(none));
        }
    }

    /// Returns the first no-wait call of this queue, by number, that is to be answered with no task.
    fn first_unserved(&self, name: &QueueName) -> Option<CallId> {
        let mut calls = self.dispatch.queues.no_wait(name);
        calls.find(|(_, waiter)| self.shows_all(&waiter.queues)).map(|(call, _)| call)
    }

    /// Answers a waiting call. If the call names several queues, marks those that have tasks in the line or no-wait calls, because another
    /// call may be the first that waits on them now.
    fn served(&mut self, call: CallId, granted: Vec<Leased>) {
        let waiter = self.dispatch.queues.end_wait(call);
        for name in waiter.iter().filter(|waiter| waiter.queues.len() > 1).flat_map(|w| w.queues.iter()) {
            if self.dispatch.queues.has_line(name) || self.dispatch.queues.no_wait(name).next().is_some() {
                self.dispatch.to_serve.insert(name.clone());
            }
        }
        self.deliver(call, granted);
    }

    /// Answers a lease call. An answer with tasks passes the commit barrier if all changes of these tasks are durable. Any other answer
    /// waits at the barrier, also an answer with no task.
    fn deliver(&mut self, call: CallId, granted: Vec<Leased>) {
        let is_durable = |one: &Leased| {
            self.residence.by_id(one.id).is_some_and(|slot| self.residence.get(slot).dirty.is_none())
        };
        let passes = !granted.is_empty() && granted.iter().all(is_durable);
        let answer = Answer::Lease(Ok(granted));
        if passes { self.ledger.answer_durable(call, answer) } else { self.ledger.answer(call, answer) }
    }

    /// Leases the first `max` ready tasks that may be handed out, or all of these tasks if there are fewer than `max`. Leases fewer tasks if
    /// their bodies are large, and fewer or none if the record of a task has to be fetched first. Leases none while memory does not know
    /// which tasks are due.
    fn grant(&mut self, lease: &LeaseCall) -> Vec<Leased> {
        let LeaseCall { queues, max, lease_ms, worker, wait: _, for_target: _ } = lease;
        let taking = Taking { lease_ms: *lease_ms, worker: worker.as_ref() };
        match &queues[..] {
            _ if !self.residence.knows_what_is_due(self.now) => Vec::new(),
            [queue] => self.grant_of(queue, *max, taking),
            _ => self.grant_among(queues, *max, taking),
        }
    }

    /// Leases tasks of one queue. If some records have to be fetched first, leases none and marks the queue for the prefetch.
    fn grant_of(&mut self, queue: &QueueName, max: usize, taking: Taking<'_>) -> Vec<Leased> {
        match self.dispatch.choose(self.residence, self.now, queue, max) {
            Choice::These(slots) => self.hand_out(queue, &slots, taking),
            Choice::Unknown => {
                self.dispatch.to_prefetch.insert(queue.clone());
                Vec::new()
            }
        }
    }

    /// Leases tasks of several queues, in the ready order over all these queues. Stops early if the body of the next task is too
    /// large for the answer, or if its record has to be fetched first.
    fn grant_among(&mut self, queues: &[QueueName], max: usize, taking: Taking<'_>) -> Vec<Leased> {
        // The first task of each queue, in the ready order. A grant changes the first task of only one queue, the queue that gave a task.
        let mut firsts = BTreeMap::new();
        for queue in queues {
            if let Some((key, choice)) = self.dispatch.choose_first(self.residence, self.now, queue) {
                firsts.insert(key, (queue, choice));
            }
        }
        let (mut granted, mut room) = (Vec::new(), Room::of(&self.dispatch.bounds));
        while granted.len() < max
            && let Some((_, (queue, choice))) = firsts.pop_first()
        {
            match choice {
                Choice::These(slots) => {
                    if !slots.iter().all(|&slot| room.take(self.residence.task(slot))) {
                        break;
                    }
                    granted.extend(self.hand_out(queue, &slots, taking));
                }
                Choice::Unknown => {
                    self.dispatch.to_prefetch.insert(queue.clone());
                    break;
                }
            }
            if let Some((key, choice)) = self.dispatch.choose_first(self.residence, self.now, queue) {
                firsts.insert(key, (queue, choice));
            }
        }
        granted
    }

    /// Leases these tasks, which are in the line of the queue, and takes a token for each if the queue has a rate.
    fn hand_out(&mut self, queue: &QueueName, slots: &[Slot], taking: Taking<'_>) -> Vec<Leased> {
        // A queue that hands nothing out needs no prefetch.
        if slots.is_empty() {
            return Vec::new();
        }
        self.dispatch.take_tokens(self.now, queue, slots.len());
        let mut granted = Vec::with_capacity(slots.len());
        for &slot in slots {
            granted.push(self.grant_one(slot, taking));
            if let At::Leased(lease) = &mut self.residence.get_mut(slot).at {
                lease.paced = true;
            }
        }
        self.dispatch.fetch_ahead(self.residence, queue);
        granted
    }

    /// Leases one ready task.
    pub(crate) fn grant_one(&mut self, slot: Slot, taking: Taking<'_>) -> Leased {
        let At::Ready { since } = self.residence.get(slot).at else {
            unreachable!("the ready index holds ready tasks only, not {:?}", self.residence.get(slot).at)
        };
        self.dispatch.leave_for_worker(self.ledger, self.residence.task(slot), slot);
        let no = self.dispatch.leases.take_no();
        if self.residence.task(slot).lease_fence.epoch() != no.epoch() {
            // A worker may hold a token that an earlier epoch issued for this task. This delivery makes that token void. So the new fence
            // is written to the store, and the answer waits for the commit of the fence.
            self.residence.record(self.ledger, slot, |task| {
                task.lease_fence = no;
                task.lease = None;
            });
        }
        let lease_ms = self.dispatch.lease_ms(self.residence.task(slot), taking.lease_ms);
        let until = self.now.due_after(lease_ms).unwrap_or(Timestamp::MAX);
        let holder = Holder { since: Some(self.now.wall), worker: taking.worker.cloned() };
        let begun = BegunLease { no, ready_since: since, until, holder };
        self.dispatch.begin_lease(self.residence, slot, begun, self.now);
        let task = self.residence.task(slot);
        Leased {
            id: task.id,
            queue: task.queue.clone(),
            key: task.key.clone(),
            due_at: task.due_at,
            ready_at: since,
            put_seq: task.put_seq,
            attempt: task.attempts.saturating_add(1),
            token: Token::issue(&self.dispatch.secret, task.id, no),
            lease_until: until,
            lease_ms,
            priority: task.priority,
            group: task.group().cloned(),
            trace: task.extra().trace.clone(),
            step: task.step(),
            retry: self.dispatch.retry_of(task),
            body: Arc::clone(&task.body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquired::Acquired;
    use crate::bounds::Bounds;
    use crate::config::EngineConfig;
    use crate::input::Effect;
    use crate::name::{Group, Key};
    use crate::residence::Entry;
    use crate::seam::{DueKey, RequestId};
    use crate::settings::{QueueRecord, QueueSettings, Rate};
    use crate::task::{Extra, Task};

    /// The three parts of the engine that a delivery touches, without the rest of the engine.
    struct Organs {
        dispatch: Dispatch,
        residence: Residence,
        ledger: Ledger,
    }

    impl Organs {
        fn new() -> Self {
            let (acquired, bounds) = (Acquired::of_new_shard(), Bounds::default());
            let config = EngineConfig { horizon_ms: 10_000, scan_max: 10, ..EngineConfig::default() };
            let mut organs = Self {
                dispatch: Dispatch::new(&acquired, bounds.clone(), Now::at_ms(0)),
                residence: Residence::new(&acquired, config, Now::at_ms(0)),
                ledger: Ledger::new(&acquired, &bounds),
            };
            // Tells `residence` that the store has no task. From then on memory knows all tasks that are due, and tasks can be leased.
            organs.residence.load_ahead(&mut organs.ledger, Now::at_ms(0), &mut Vec::new());
            organs.residence.scan_on(&mut organs.ledger, None, &mut Vec::new());
            organs.residence.peeked(None::<DueKey>);
            organs
        }

        fn settings(&mut self, settings: QueueSettings) {
            let record = QueueRecord { settings, ..QueueRecord::default() };
            self.dispatch.restore_record(&orders(), &record, Now::at_ms(0));
        }

        fn ready(&mut self, id: u64, priority: u32, group: Option<&str>) {
            let group = group.map(|group| Group::new(group).expect("a group"));
            let extra = Extra { group, ..Extra::default() }.boxed();
            let task = Task {
                id,
                priority,
                put_seq: crate::Seq(id),
                extra,
                ..Task::new(orders(), Key::from_id(id), Arc::default())
            };
            self.dispatch.task_added(&task);
            let slot = self.residence.insert(Entry::new(Arc::new(task), true));
            self.residence.get_mut(slot).at = At::Ready { since: Timestamp::EPOCH };
            self.dispatch.join(&mut self.ledger, self.residence.task(slot), slot, None);
        }

        fn at(&mut self, ms: u64) -> Delivery<'_> {
            let Self { dispatch, residence, ledger } = self;
            dispatch.pass_time(Now::at_ms(ms));
            Delivery { dispatch, residence, ledger, now: Now::at_ms(ms) }
        }

        fn lease(&mut self, ms: u64, call: u64, max: usize) {
            let lease = LeaseCall {
                queues: [orders()].into(),
                max,
                lease_ms: Some(1_000),
                wait: true,
                worker: None,
                for_target: false,
            };
            self.at(ms).lease(CallId(call), lease);
        }

        /// Serves the waiting calls. Returns the calls that were answered with tasks or with none, each with the ids of its tasks.
        fn served(&mut self, ms: u64) -> Vec<(u64, Vec<u64>)> {
            self.at(ms).serve();
            let mut out = Vec::new();
            // The tasks have no fence of this epoch, so the first delivery of each writes one. The answer leaves once the commit of the
            // fence is durable.
            self.ledger.commit(Now::at_ms(ms), &mut out);
            if let Some(request) = out.iter().find_map(|effect| match effect {
                Effect::Request { id, .. } => Some(*id),
                _ => None,
            }) {
                self.committed(request);
            }
            self.ledger.release_answers(&mut out);
            let answers = out.into_iter().filter_map(|effect| match effect {
                Effect::Answer { call, answer: Answer::Lease(Ok(leased)) } => {
                    Some((call.0, leased.into_iter().map(|one| one.id).collect()))
                }
                _ => None,
            });
            answers.collect()
        }

        fn committed(&mut self, request: RequestId) {
            for slot in self.ledger.committed(Now::at_ms(0), request, Some(1 << 30)) {
                self.residence.made_durable(&self.ledger, slot);
            }
        }
    }

    fn orders() -> QueueName {
        QueueName::new("orders").expect("a name")
    }

    #[test]
    fn calls_are_served_in_the_order_they_asked_and_tasks_in_the_ready_order() {
        let mut organs = Organs::new();
        organs.lease(0, 1, 2);
        organs.lease(0, 2, 5);
        for (id, priority) in [(1, 7), (2, 3), (3, 7)] {
            organs.ready(id, priority, None);
        }
        assert_eq!(organs.served(0), [(1, vec![2, 1]), (2, vec![3])]);
        organs.ready(4, 0, None);
        assert!(organs.served(0).is_empty(), "no call waits any more");
    }

    #[test]
    fn a_group_that_has_enough_is_parked_and_comes_back_when_a_lease_ends() {
        let mut organs = Organs::new();
        organs.settings(QueueSettings { max_in_flight_per_group: Some(1), ..QueueSettings::default() });
        for (id, group) in [(1, "a"), (2, "a"), (3, "b")] {
            organs.ready(id, 0, Some(group));
        }
        organs.lease(0, 1, 5);
        assert_eq!(organs.served(0), [(1, vec![1, 3])]);
        organs.lease(0, 2, 5);
        assert!(organs.served(0).is_empty());
        let slot = organs.residence.by_id(1).expect("it is leased");
        let At::Leased(lease) = core::mem::replace(&mut organs.residence.get_mut(slot).at, At::Far) else {
            unreachable!("it is leased")
        };
        organs.residence.lease_ends(slot);
        organs.dispatch.end_lease(organs.residence.task(slot), &lease);
        assert_eq!(organs.served(0), [(2, vec![2])]);
    }

    #[test]
    fn a_rate_wakes_its_queue_when_it_admits_the_next_delivery() {
        let mut organs = Organs::new();
        let rate = Some(Rate { tasks: 1, per_ms: 100, burst: 1 });
        organs.settings(QueueSettings { rate, ..QueueSettings::default() });
        organs.ready(1, 0, None);
        organs.lease(0, 1, 1);
        assert!(organs.served(0).is_empty(), "a rate begins with nothing");
        assert_eq!(organs.dispatch.next_wake_ms(), Some(100));
        assert!(organs.served(99).is_empty());
        assert_eq!(organs.served(100), [(1, vec![1])]);
    }

    #[test]
    fn leases_end_by_the_monotonic_clock_in_their_order() {
        let mut organs = Organs::new();
        for id in [1, 2] {
            organs.ready(id, 0, None);
        }
        organs.lease(0, 1, 1);
        organs.served(0);
        organs.lease(10, 2, 1);
        organs.served(10);
        assert_eq!(organs.dispatch.next_wake_ms(), Some(1_000));
        let ended = |organs: &mut Organs, ms| organs.dispatch.pop_ended(Now::at_ms(ms)).len();
        assert_eq!([999, 1_000, 1_010].map(|ms| ended(&mut organs, ms)), [0, 1, 1]);
    }
}
