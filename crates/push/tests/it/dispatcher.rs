//! The dispatcher beside a model of the queue: whatever happens, each task is settled once, limits hold, and no order is inverted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tickwheel_push::Outcome;
use tickwheel_push::dispatch::{BreakerPlan, BreakerState, Dispatcher, Effect, Order, Plan, SendNo, Sending};
use tickwheel_queue::{
    Backoff, Group, Key, Lease, Leased, NackHow, Put, Queue, QueueName, Retry, Token, TokenAnswer,
    Undeliverable,
};

const GROUPS: u64 = 10;

/// Real deliveries, as material for the model: task `n` has the group `n % GROUPS`, and is tried at most 3 times.
fn deliveries(count: u64) -> Vec<Leased> {
    let queue = Queue::options().virtual_clock().open_memory().expect("a queue");
    let name = QueueName::new("q").expect("a name");
    for n in 0..count {
        let mut put = Put::new(&name, Key::new(&format!("k{n}")).expect("a key"));
        put.terms.retry = Some(retry());
        put.terms.group = Some(Group::new(&format!("g{}", n % GROUPS)).expect("a group"));
        queue.put(put).wait().expect("a put");
    }
    queue.lease(Lease::new(&name).max(count as usize), Duration::ZERO).wait().expect("a lease")
}

fn retry() -> Retry {
    let backoff = Backoff { doubles: true, base_ms: 100, max_ms: 400, jitter_percent: 0 };
    Retry { max_attempts: Some(3), backoff: Some(backoff) }
}

/// A queue as the dispatcher sees it, and all that a run must keep to.
struct World {
    dispatcher: Dispatcher,
    order: Order,
    now_ms: u64,
    /// Tasks that may be leased, by their order.
    ready: BTreeMap<u64, Leased>,
    leased: BTreeMap<u64, Leased>,
    /// Tasks that are waiting after a nack. The model makes them ready at once when it likes.
    nacked: Vec<Leased>,
    ended: BTreeSet<u64>,
    wanted: Option<usize>,
    sending: BTreeMap<SendNo, Arc<Leased>>,
    extensions: Vec<SendNo>,
    /// Tasks whose end the queue has not answered yet, and their tokens. A crash would bring them back.
    unsettled: Vec<(Leased, Token)>,
    /// The tasks in the order in which their messages were confirmed or given up.
    settled: Vec<u64>,
    is_on: bool,
    is_disabled: bool,
}

impl World {
    fn new(plan: Plan, tasks: Vec<Leased>) -> Self {
        let ready = tasks.into_iter().map(|leased| (leased.id, leased)).collect();
        let mut world = Self {
            dispatcher: Dispatcher::new(plan),
            order: plan.order,
            now_ms: 0,
            ready,
            leased: BTreeMap::new(),
            nacked: Vec::new(),
            ended: BTreeSet::new(),
            wanted: None,
            sending: BTreeMap::new(),
            extensions: Vec::new(),
            unsettled: Vec::new(),
            settled: Vec::new(),
            is_on: true,
            is_disabled: false,
        };
        let effects = world.dispatcher.pass_time(0);
        world.carry_out(effects);
        world
    }

    fn by_token(&mut self, token: Token) -> Leased {
        let id = *self.leased.iter().find(|(_, leased)| leased.token == token).expect("a lease ends once").0;
        self.leased.remove(&id).expect("it was just found")
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Lease { max } => {
                    assert!(self.wanted.is_none() && max > 0, "one lease call at a time");
                    assert!(self.is_on, "nothing is leased in a pause");
                    assert_ne!(self.dispatcher.breaker().state(self.now_ms), BreakerState::Open);
                    self.wanted = Some(max);
                }
                Effect::DropLease => assert!(self.wanted.take().is_some()),
                Effect::Send(sending) => {
                    assert!(self.leased.contains_key(&sending.leased.id), "what is sent is leased");
                    assert!(
                        self.sending.values().all(|other| other.id != sending.leased.id),
                        "sent once at a time"
                    );
                    assert_ne!(self.dispatcher.breaker().state(self.now_ms), BreakerState::Open);
                    let is_before = |(before, _): &(Leased, Token)| match self.order {
                        Order::None => false,
                        Order::Group => before.group == sending.leased.group,
                        Order::Queue => true,
                    };
                    assert!(
                        !self.unsettled.iter().any(is_before),
                        "a crash could bring an earlier task back"
                    );
                    self.sending.insert(sending.no, sending.leased);
                }
                Effect::Ack(tokens) => {
                    for token in tokens {
                        let leased = self.by_token(token);
                        self.settled.push(leased.id);
                        assert!(self.ended.insert(leased.id), "a task ends once");
                        self.unsettled.push((leased, token));
                    }
                }
                Effect::Nack { token, how, .. } => {
                    let leased = self.by_token(token);
                    if how == NackHow::Returned {
                        assert_eq!(self.order, Order::None, "an order keeps what fails in hand");
                        self.nacked.push(leased);
                    } else {
                        self.settled.push(leased.id);
                        assert!(self.ended.insert(leased.id), "a task ends once");
                        self.unsettled.push((leased, token));
                    }
                }
                Effect::GiveBack(tokens) => {
                    for token in tokens {
                        let leased = self.by_token(token);
                        self.ready.insert(leased.id, leased);
                    }
                }
                Effect::Extend { no, .. } => self.extensions.push(no),
                Effect::Disable { .. } => (self.is_on, self.is_disabled) = (false, true),
            }
        }
    }

    /// The queue answers the lease call, with the first tasks that its limits let through.
    fn answer_lease(&mut self) {
        let Some(max) = self.wanted.take() else { return };
        let mut taken = Vec::new();
        let ids: Vec<u64> = self.ready.keys().copied().collect();
        for id in ids {
            let group = self.ready[&id].group.clone();
            let busy = self.leased.values().any(|leased| leased.group == group);
            if taken.len() == max || self.order == Order::Group && busy {
                continue;
            }
            let leased = self.ready.remove(&id).expect("it is ready");
            self.leased.insert(id, leased.clone());
            taken.push(leased);
        }
        let effects = self.dispatcher.leased(self.now_ms, taken);
        self.carry_out(effects);
    }

    /// The queue answers the calls that end leases.
    fn answer_ends(&mut self) {
        let tokens: Vec<Token> = self.unsettled.drain(..).map(|(_, token)| token).collect();
        let effects = self.dispatcher.settled(self.now_ms, &tokens);
        self.carry_out(effects);
    }

    fn end_send(&mut self, nth: usize, outcome: &Outcome) {
        let Some(&no) = self.sending.keys().nth(nth % self.sending.len().max(1)) else { return };
        self.sending.remove(&no);
        let effects = self.dispatcher.sent(self.now_ms, no, outcome);
        self.carry_out(effects);
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let effects = self.dispatcher.pass_time(self.now_ms);
        self.carry_out(effects);
        for no in std::mem::take(&mut self.extensions) {
            let effects = self.dispatcher.extended(self.now_ms, no, TokenAnswer::Extended);
            self.carry_out(effects);
        }
    }

    fn set_on(&mut self, is_on: bool) {
        self.is_on = is_on;
        self.is_disabled &= !is_on;
        let effects =
            if is_on { self.dispatcher.resume(self.now_ms) } else { self.dispatcher.pause(self.now_ms) };
        self.carry_out(effects);
    }

    fn check(&self, concurrency: usize) {
        let limit = if self.order == Order::Queue { 1 } else { concurrency };
        assert!(self.sending.len() <= limit, "no more are sent than allowed");
        assert_eq!(self.dispatcher.sending(), self.sending.len());
        if self.order == Order::Queue {
            assert!(self.dispatcher.in_hand() <= 1, "one task of the queue is under way");
        }
    }

    /// Everything works again: all tasks end.
    fn drain(&mut self) {
        self.set_on(true);
        for _ in 0..10_000 {
            for leased in std::mem::take(&mut self.nacked) {
                self.ready.insert(leased.id, leased);
            }
            self.answer_lease();
            self.answer_ends();
            self.end_send(0, &Outcome::Delivered);
            let wake = self.dispatcher.next_wake(self.now_ms).unwrap_or(self.now_ms);
            self.pass(wake.saturating_sub(self.now_ms));
            if self.ready.is_empty() && self.leased.is_empty() && self.nacked.is_empty() {
                return;
            }
        }
        panic!("tasks are left: {:?}", self.leased.keys());
    }
}

#[derive(Clone, Debug)]
enum Op {
    Lease,
    AnswerEnds,
    Deliver(usize),
    Fail(usize),
    TargetFails(usize, Option<u64>),
    Refuse(usize),
    Disable(usize),
    Pass(u64),
    Pause,
    Resume,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Lease),
        3 => Just(Op::AnswerEnds),
        4 => (0..9_usize).prop_map(Op::Deliver),
        3 => (0..9_usize).prop_map(Op::Fail),
        2 => ((0..9_usize), proptest::option::of(0..3_000_u64)).prop_map(|(nth, ms)| Op::TargetFails(nth, ms)),
        1 => (0..9_usize).prop_map(Op::Refuse),
        1 => (0..9_usize).prop_map(Op::Disable),
        4 => (0..2_000_u64).prop_map(Op::Pass),
        1 => Just(Op::Pause),
        2 => Just(Op::Resume),
    ]
}

#[test]
fn each_task_is_settled_once_whatever_happens() {
    let tasks = deliveries(30);
    let orders = prop_oneof![Just(Order::None), Just(Order::Group), Just(Order::Queue)];
    proptest!(ProptestConfig::with_cases(400), |(ops in proptest::collection::vec(op(), 0..120), order in orders, concurrency in 1..9_usize)| {
        let breaker = BreakerPlan { failures: 4, open_ms: 500, open_max_ms: 2_000 };
        let plan = Plan { concurrency, timeout_ms: 1_000, order, breaker };
        let mut world = World::new(plan, tasks.clone());
        for op in ops {
            match op {
                Op::Lease => world.answer_lease(),
                Op::AnswerEnds => world.answer_ends(),
                Op::Deliver(nth) => world.end_send(nth, &Outcome::Delivered),
                Op::Fail(nth) => world.end_send(nth, &Outcome::task_failed("no")),
                Op::TargetFails(nth, open_ms) => {
                    world.end_send(nth, &Outcome::TargetFailed { reason: "down".into(), open_ms, asked: open_ms.is_some() });
                }
                Op::Refuse(nth) => {
                    let why = Undeliverable::Refused;
                    world.end_send(nth, &Outcome::Undeliverable { why, reason: "never".into() });
                }
                Op::Disable(nth) => world.end_send(nth, &Outcome::Disabled { reason: "gone".into() }),
                Op::Pass(ms) => world.pass(ms),
                Op::Pause => world.set_on(false),
                Op::Resume => world.set_on(true),
            }
            world.check(concurrency);
        }
        world.drain();
        prop_assert_eq!(world.ended.len(), 30);
        prop_assert!(world.dispatcher.in_hand() == 0);
        // The tasks of a group, or of the whole queue, were settled in the order of their ids.
        let of = |group: Option<u64>| world.settled.iter().filter(move |id| group.is_none_or(|group| (**id - 1) % GROUPS == group));
        match order {
            Order::None => {}
            Order::Group => (0..GROUPS).for_each(|group| assert!(of(Some(group)).is_sorted(), "{:?}", world.settled)),
            Order::Queue => assert!(of(None).is_sorted(), "{:?}", world.settled),
        }
    });
}

/// A task that fails is kept in hand: its lease goes on, its tries are counted, and nothing overtakes it.
#[test]
fn a_task_that_fails_in_an_order_is_tried_again_in_hand_until_its_policy_ends() {
    let plan = Plan { order: Order::Queue, ..Plan::default() };
    let mut dispatcher = Dispatcher::new(plan);
    assert_eq!(dispatcher.pass_time(0), [Effect::Lease { max: 1 }]);
    let first = deliveries(2).remove(0);
    let mut effects = dispatcher.leased(0, vec![first.clone()]);
    let mut now_ms = 0;
    for (attempt, wait_ms) in [(1, 100), (2, 200)] {
        let [Effect::Send(sending)] = &effects[..] else { panic!("{effects:?}") };
        let (no, token) = (sending.no, first.token);
        assert_eq!((sending.attempt, sending.is_last), (attempt, false));
        assert_eq!(dispatcher.sent(now_ms, sending.no, &Outcome::task_failed("no")), []);
        assert_eq!(dispatcher.next_wake(now_ms), Some(now_ms + wait_ms));
        assert_eq!(dispatcher.pass_time(now_ms + wait_ms - 1), []);
        now_ms += wait_ms;
        assert_eq!(dispatcher.pass_time(now_ms), [Effect::Extend { no, token }]);
        effects = dispatcher.extended(now_ms, no, TokenAnswer::Extended);
    }
    let [Effect::Send(last)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((last.attempt, last.is_last), (3, true));
    let ended = dispatcher.sent(now_ms, last.no, &Outcome::task_failed("no"));
    let how = NackHow::Undeliverable(Undeliverable::Exhausted);
    let nack = Effect::Nack { token: first.token, how, at_least_ms: None, reason: "no".into() };
    assert_eq!(ended, [nack, Effect::Lease { max: 1 }]);
}

/// A task that was given back 1,000 times counts an attempt. In an order it stays in hand for that, so that the next one does not overtake it.
#[test]
fn a_task_that_was_given_back_too_often_stays_in_hand_in_an_order() {
    let breaker = BreakerPlan { failures: 10_000, open_ms: 1, open_max_ms: 1 };
    let mut dispatcher = Dispatcher::new(Plan { order: Order::Group, breaker, ..Plan::default() });
    let task = deliveries(1).remove(0);
    dispatcher.pass_time(0);
    for time in 1..=1_000 {
        // A pause ends the wait of a task that was given back.
        dispatcher.pause(0);
        dispatcher.resume(0);
        let effects = dispatcher.leased(0, vec![task.clone()]);
        let Some(Effect::Send(sending)) = effects.first() else { panic!("{effects:?}") };
        let effects = dispatcher.sent(0, sending.no, &Outcome::target_failed("down"));
        let is_back = effects.contains(&Effect::GiveBack(vec![task.token]));
        assert_eq!(
            (is_back, dispatcher.in_hand()),
            if time < 1_000 { (true, 0) } else { (false, 1) },
            "{time}"
        );
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Nack { .. })), "{effects:?}");
    }
}

/// The story: a receiver answered 503 without a word on when to come again. Its one task was given back, leased and sent again, 10 times within
/// 2 ms, until the breaker opened. Now the task waits 1 s, then 2 s, up to 1 min, whatever the order, and its attempts are not counted.
#[test]
fn a_task_that_was_given_back_waits_before_the_breaker_opens() {
    for order in [Order::None, Order::Group, Order::Queue] {
        let breaker = BreakerPlan { failures: 1_000, ..BreakerPlan::default() };
        let mut dispatcher = Dispatcher::new(Plan { order, breaker, ..Plan::default() });
        let task = deliveries(1).remove(0);
        dispatcher.pass_time(0);
        let mut now_ms = 0;
        let mut effects = dispatcher.leased(now_ms, vec![task.clone()]);
        for wait_s in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let Some(Effect::Send(sending)) = effects.first() else { panic!("{order:?}: {effects:?}") };
            assert_eq!((sending.attempt, sending.is_last), (1, false));
            effects = dispatcher.sent(now_ms, sending.no, &Outcome::target_failed("503"));
            assert!(effects.contains(&Effect::GiveBack(vec![task.token])), "{order:?}: {effects:?}");
            effects = dispatcher.leased(now_ms, vec![task.clone()]);
            assert!(
                !effects.iter().any(|effect| matches!(effect, Effect::Send(_))),
                "{order:?}: {effects:?}"
            );
            // The lease goes on meanwhile, and is asked for before the message is sent.
            let until_ms = now_ms + wait_s * 1_000;
            loop {
                now_ms = dispatcher.next_wake(now_ms).filter(|at| *at > now_ms).expect("it is woken");
                assert!(now_ms <= until_ms, "{order:?}: woken too late");
                effects = dispatcher.pass_time(now_ms);
                assert!(
                    !effects.iter().any(|effect| matches!(effect, Effect::Send(_))),
                    "{order:?}: {effects:?}"
                );
                let asked: Vec<SendNo> = effects
                    .iter()
                    .filter_map(
                        |effect| if let Effect::Extend { no, .. } = effect { Some(*no) } else { None },
                    )
                    .collect();
                for no in asked {
                    effects.extend(dispatcher.extended(now_ms, no, TokenAnswer::Extended));
                }
                effects.retain(|effect| matches!(effect, Effect::Send(_)));
                if effects.iter().any(|effect| matches!(effect, Effect::Send(_))) {
                    break;
                }
            }
            assert_eq!(now_ms, until_ms, "{order:?}");
        }
    }
}

/// The other tasks of a target do not wait for one that was given back, and while the breaker is open this one is ready for workers. After a delivery
/// nothing of the wait is left.
#[test]
fn only_the_task_that_was_given_back_waits() {
    let breaker = BreakerPlan { failures: 2, ..BreakerPlan::default() };
    let mut dispatcher = Dispatcher::new(Plan { breaker, ..Plan::default() });
    let tasks = deliveries(2);
    let sent = |effects: &[Effect]| {
        effects
            .iter()
            .find_map(|effect| if let Effect::Send(sending) = effect { Some(sending.clone()) } else { None })
    };
    dispatcher.pass_time(0);
    let first = sent(&dispatcher.leased(0, vec![tasks[0].clone()])).expect("it is sent");
    dispatcher.sent(0, first.no, &Outcome::target_failed("503"));
    let other = sent(&dispatcher.leased(0, tasks.clone())).expect("the other is sent");
    assert_eq!((other.leased.id, dispatcher.in_hand()), (tasks[1].id, 2));
    let effects = dispatcher.sent(0, other.no, &Outcome::target_failed("503"));
    let back = effects
        .iter()
        .filter_map(|effect| if let Effect::GiveBack(tokens) = effect { Some(tokens) } else { None });
    assert_eq!(back.flatten().count(), 2, "the breaker is open: {effects:?}");
    assert_eq!((dispatcher.in_hand(), dispatcher.breaker().state(0)), (0, BreakerState::Open));
    dispatcher.pass_time(1_000);
    let probe = sent(&dispatcher.leased(1_000, vec![tasks[0].clone()])).expect("its wait is over");
    dispatcher.sent(1_000, probe.no, &Outcome::Delivered);
    assert!(sent(&dispatcher.leased(1_000, vec![tasks[0].clone()])).is_some());
}

/// A task that failed and waits in hand for 60 s, and its dispatcher.
fn in_hand(order: Order) -> (Dispatcher, Sending, Leased) {
    let mut task = deliveries(1).remove(0);
    let long = Backoff { doubles: false, base_ms: 60_000, max_ms: 60_000, jitter_percent: 0 };
    task.retry = Retry { max_attempts: None, backoff: Some(long) };
    let mut dispatcher = Dispatcher::new(Plan { order, ..Plan::default() });
    dispatcher.pass_time(0);
    let effects = dispatcher.leased(0, vec![task.clone()]);
    let Some(Effect::Send(sending)) = effects.first().cloned() else { panic!("{effects:?}") };
    dispatcher.sent(0, sending.no, &Outcome::task_failed("no"));
    assert_eq!(dispatcher.in_hand(), 1);
    (dispatcher, sending, task)
}

/// The lease of a task that waits in hand is looked after each second, and a task that its owner took away is let go.
#[test]
fn a_lease_in_hand_is_extended() {
    let (mut dispatcher, sending, task) = in_hand(Order::Group);
    let extension = Effect::Extend { no: sending.no, token: task.token };
    for time in 1..=20 {
        assert!(dispatcher.next_wake(time * 1_000 - 1) <= Some(time * 1_000));
        assert_eq!(dispatcher.pass_time(time * 1_000 - 1), []);
        assert_eq!(dispatcher.pass_time(time * 1_000), std::slice::from_ref(&extension));
        dispatcher.extended(time * 1_000, sending.no, TokenAnswer::Extended);
        assert_eq!(dispatcher.in_hand(), 1);
    }
    assert_eq!(dispatcher.pass_time(21_000), [extension]);
    dispatcher.extended(21_000, sending.no, TokenAnswer::Revoked);
    assert_eq!(dispatcher.in_hand(), 0);
}

/// After an owner has taken a task away, no try of it begins.
#[test]
fn a_try_begins_only_while_the_lease_runs() {
    let asks = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Extend { .. }));
    let sends = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Send(_)));
    for order in [Order::Group, Order::Queue] {
        let (mut dispatcher, sending, _) = in_hand(order);
        let effects = dispatcher.pass_time(60_000);
        assert!(asks(&effects) && !sends(&effects), "{effects:?}");
        // The queue cannot answer now. Then it is asked again later.
        let effects = dispatcher.extension_refused(60_001, sending.no);
        assert!(!sends(&effects), "{effects:?}");
        assert!(dispatcher.next_wake(60_001).is_some_and(|at| at <= 61_001));
        let effects = dispatcher.pass_time(61_001);
        assert!(asks(&effects) && !sends(&effects), "{effects:?}");
        let effects = dispatcher.extended(61_002, sending.no, TokenAnswer::Revoked);
        assert!(!sends(&effects) && dispatcher.in_hand() == 0, "{effects:?}");
        // The next task is sent at once.
        let next = deliveries(2).remove(1);
        assert!(sends(&dispatcher.leased(61_003, vec![next])));

        let (mut dispatcher, sending, task) = in_hand(order);
        dispatcher.pass_time(60_000);
        let effects = dispatcher.extended(60_001, sending.no, TokenAnswer::Extended);
        assert!(sends(&effects) && dispatcher.sending() == 1, "{effects:?}");

        // A pause gives back a task for which the queue is asked.
        dispatcher.sent(60_002, sending.no, &Outcome::task_failed("no"));
        dispatcher.pass_time(120_002);
        let effects = dispatcher.pause(120_003);
        assert!(effects.contains(&Effect::GiveBack(vec![task.token])), "{effects:?}");
        assert!(!sends(&dispatcher.extended(120_004, sending.no, TokenAnswer::Extended)));
        assert!(!sends(&dispatcher.resume(120_005)) && dispatcher.in_hand() == 0);
    }
}

/// One free place of eight is filled soon, although a call for each single place would cost too much.
#[test]
fn a_few_free_places_are_filled_after_a_moment() {
    let leases = |effects: &[Effect]| {
        effects.iter().find_map(|effect| if let Effect::Lease { max } = effect { Some(*max) } else { None })
    };
    let mut dispatcher = Dispatcher::new(Plan::default());
    assert_eq!(leases(&dispatcher.pass_time(0)), Some(8));
    let effects = dispatcher.leased(0, deliveries(7));
    assert_eq!(leases(&effects), None, "{effects:?}");
    assert_eq!(dispatcher.next_wake(0), Some(5));
    assert_eq!(leases(&dispatcher.pass_time(4)), None);
    assert_eq!(leases(&dispatcher.pass_time(5)), Some(1));
}

/// A bug that was found: each try of an address that the operator blocks cost the task an attempt.
#[test]
fn what_the_operator_blocks_costs_no_attempt_however_often_it_is_tried() {
    let task = deliveries(1).remove(0);
    let outcome = Outcome::Blocked { reason: "blocked address".into() };
    for order in [Order::None, Order::Group, Order::Queue] {
        let mut dispatcher = Dispatcher::new(Plan { order, ..Plan::default() });
        let mut now_ms = 0;
        // More than a day, and more often than a task is given back to a target that fails.
        for _ in 0..2_000 {
            dispatcher.pass_time(now_ms);
            let effects = dispatcher.leased(now_ms, vec![task.clone()]);
            let sending = effects.iter().find_map(|effect| match effect {
                Effect::Send(sending) => Some(sending.no),
                _ => None,
            });
            let effects = dispatcher.sent(now_ms, sending.expect("it is sent"), &outcome);
            assert!(effects.contains(&Effect::GiveBack(vec![task.token])), "{effects:?}");
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::Nack { .. })), "{effects:?}");
            now_ms = dispatcher.breaker().opens_until(now_ms).expect("it opens at once");
        }
        assert!(now_ms > 24 * 3_600_000);
    }
}

#[test]
fn a_silence_is_asked_for_only_if_the_target_made_the_wait() {
    let silence = |ms, asked| Outcome::TargetFailed { reason: "no".into(), open_ms: Some(ms), asked };
    for (outcome, until_ms, expected) in [
        (silence(30_000, true), 30_000, true),
        (silence(30_000, false), 30_000, false),
        // The plan waits longer than the target wishes.
        (silence(10, true), 1_000, false),
    ] {
        let task = deliveries(1).remove(0);
        let mut dispatcher = Dispatcher::new(Plan::default());
        dispatcher.pass_time(0);
        let effects = dispatcher.leased(0, vec![task]);
        let [Effect::Send(sending), ..] = &effects[..] else { panic!("it is sent: {effects:?}") };
        assert!(!dispatcher.is_silence_asked(0));
        dispatcher.sent(0, sending.no, &outcome);
        assert_eq!(dispatcher.breaker().opens_until(0), Some(until_ms));
        assert_eq!(dispatcher.is_silence_asked(0), expected, "{outcome:?}");
        assert!(!dispatcher.is_silence_asked(until_ms), "the silence is over");
    }
}
