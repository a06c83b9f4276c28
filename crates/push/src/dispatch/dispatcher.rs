//! [`Dispatcher`]: the state machine of one target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use tickwheel_api::TargetOrder as Order;
use tickwheel_queue::{Group, Leased, NackHow, Token, TokenAnswer, Undeliverable};

use super::breaker::{Breaker, BreakerPlan, BreakerState};
use super::given_back::GivenBack;
use super::settling::Settling;
use crate::outcome::Outcome;

/// A lease lasts this much longer than the target's time-out (ms), so that the outcome reaches the queue in time.
const LEASE_SPARE_MS: u64 = 15_000;
/// At most this many tasks are kept in hand between two tries.
const HELD_MAX: usize = 1_000;
/// The owner of a task may take it while it waits in hand for its next try. So the dispatcher looks after such a lease this often (ms), and
/// before each try.
const HELD_LOOK_MS: u64 = 1_000;
/// A few free places are worth a lease call if no more places become free within this time (ms).
const FEW_PLACES_MS: u64 = 5;
/// At most this many tasks are leased by one call.
const LEASE_TASKS_MAX: usize = 1_000;

/// How a dispatcher works.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The largest number of messages that are under way. With [`Order::Queue`] only one is.
    pub concurrency: usize,
    /// The time after which the sending of one message is given up (ms). The caller of the dispatcher keeps to it.
    pub timeout_ms: u64,
    /// The order of messages.
    pub order: Order,
    /// When the breaker opens.
    pub breaker: BreakerPlan,
}

impl Default for Plan {
    /// Returns a plan with 8 messages under way, 15 s for each, and no order.
    fn default() -> Self {
        Self { concurrency: 8, timeout_ms: 15_000, order: Order::None, breaker: BreakerPlan::default() }
    }
}

/// The number of one message under way, unique for its dispatcher.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SendNo(pub u64);

/// A message to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sending {
    /// The number by which [`Dispatcher::sent`] is told the outcome.
    pub no: SendNo,
    /// The task.
    pub leased: Arc<Leased>,
    /// The number of this attempt as the receiver is told it, from 1: the attempt of the task, and one more for each try in hand.
    pub attempt: u32,
    /// Whether the task is dead if this attempt fails.
    pub is_last: bool,
}

/// An action that the caller of a dispatcher carries out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Lease at most `max` tasks, for [`Dispatcher::lease_ms`], and wait until there is one. Tell [`Dispatcher::leased`] the tasks, also
    /// if there is none.
    Lease {
        /// The largest number of tasks.
        max: usize,
    },
    /// Drop the lease call that is under way, and tell [`Dispatcher::leased`] nothing of it. The queue takes back what it has leased.
    DropLease,
    /// Send a message, and tell [`Dispatcher::sent`] its outcome.
    Send(Sending),
    /// Ack these leases, and tell [`Dispatcher::settled`] when that is answered.
    Ack(Vec<Token>),
    /// End a lease without an ack, and tell [`Dispatcher::settled`] when that is answered.
    Nack {
        /// The lease.
        token: Token,
        /// Whether the task is tried again.
        how: NackHow,
        /// The task waits as its policy says, but at least this long (ms).
        at_least_ms: Option<u64>,
        /// The reason.
        reason: Arc<str>,
    },
    /// Give these leases back, as if they had not been delivered.
    GiveBack(Vec<Token>),
    /// Let a lease last [`Dispatcher::lease_ms`] from now, and tell [`Dispatcher::extended`] the answer.
    Extend {
        /// The number of the message.
        no: SendNo,
        /// The lease.
        token: Token,
    },
    /// Disable the target until an operator resumes it. The dispatcher leases nothing more.
    Disable {
        /// The reason, for operators.
        reason: Arc<str>,
    },
}

/// The dispatcher of one target: leases tasks, decides what is sent, and settles each task by the outcome.
///
/// Times are milliseconds of one monotonic clock, and never go back. After each call of a method, carry out the effects in their order; the
/// order of calls on the queue matters, because a task that is given back must be back before the next lease. Call
/// [`pass_time`](Self::pass_time) at [`next_wake`](Self::next_wake).
///
/// A task is in one of three places: not leased, being sent, or held in hand until its next try. An outcome of each message comes once.
///
/// A task that was given back because of its target may be leased again at once. It is then held in hand until the first time of the breaker's plan has
/// passed since it was given back, the second time twice as long, and so on up to the longest time of the plan. So a target that takes nothing is not asked over and over before its breaker opens.
///
/// In an order, a task is sent when the end of the task before it is durable. Before that, a crash could bring the earlier task back after the
/// later one was sent.
#[derive(Debug)]
pub struct Dispatcher {
    plan: Plan,
    breaker: Breaker,
    in_hand: BTreeMap<SendNo, InHand>,
    /// The number of tasks in hand that are being sent. The others wait for their next try.
    sending: usize,
    /// The number of tasks in hand whose next try is due, and for which the queue is asked whether their leases still run.
    asked: usize,
    /// The tries that are to come, by time.
    retries: BTreeSet<(u64, SendNo)>,
    /// The leases in hand, by the time of their extension.
    extensions: BTreeSet<(u64, SendNo)>,
    settling: Settling,
    /// The lines whose last task has ended, while it is unknown if its end is durable. Empty without an order.
    unsettled: BTreeMap<Token, Line>,
    /// The values of `unsettled`.
    ending: BTreeSet<Line>,
    given_back: GivenBack,
    /// Whether a lease call is under way. There is at most one.
    is_leasing: bool,
    /// Since when there are free places that are too few for a lease call of their own (ms); `None`: there are none.
    few_since_ms: Option<u64>,
    /// Whether tasks may be leased and sent.
    is_on: bool,
    next_no: u64,
    last_failure: Option<Arc<str>>,
    /// The end of the longest silence that the target has asked for (ms).
    asked_until_ms: Option<u64>,
}

/// Tasks that are sent one after the other: those of a group; `None`: those of the queue.
type Line = Option<Group>;

/// A task in hand.
#[derive(Clone, Debug)]
pub(crate) struct InHand {
    pub(crate) leased: Arc<Leased>,
    /// The number of tries so far, with the one under way.
    pub(crate) tries: u32,
    /// When the last try began (ms). Meaningful only after the first try began.
    pub(crate) sent_at_ms: u64,
    /// When the next try is due, which may be the first; `None`: a try is under way.
    pub(crate) retry_at_ms: Option<u64>,
    /// Whether the first try waits only until the end of the task before it is durable.
    pub(crate) is_behind: bool,
    /// Whether the next try is due and waits for the answer whether the lease still runs.
    is_asked: bool,
    extend_at_ms: u64,
}

impl InHand {
    /// The number of the present attempt, as the receiver is told it.
    pub(crate) fn attempt(&self) -> u32 {
        self.leased.attempt.saturating_add(self.tries.saturating_sub(1))
    }

    /// Whether the task is dead if the present attempt fails.
    fn is_last(&self) -> bool {
        self.leased.retry.max_attempts.is_some_and(|max| self.attempt() >= max)
    }
}

impl Dispatcher {
    /// Returns a dispatcher that is on. Call [`pass_time`](Self::pass_time) to begin.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let concurrency = if plan.order == Order::Queue { 1 } else { plan.concurrency.max(1) };
        let plan = Plan { concurrency, ..plan };
        Self {
            plan,
            breaker: Breaker::new(plan.breaker, concurrency),
            in_hand: BTreeMap::new(),
            sending: 0,
            asked: 0,
            retries: BTreeSet::new(),
            extensions: BTreeSet::new(),
            settling: Settling::default(),
            unsettled: BTreeMap::new(),
            ending: BTreeSet::new(),
            given_back: GivenBack::new(plan.breaker),
            is_leasing: false,
            few_since_ms: None,
            is_on: true,
            next_no: 0,
            last_failure: None,
            asked_until_ms: None,
        }
    }

    /// Returns the length of each lease (ms).
    #[must_use]
    pub fn lease_ms(&self) -> u64 {
        self.plan.timeout_ms.saturating_add(LEASE_SPARE_MS)
    }

    /// Returns the breaker.
    #[must_use]
    pub fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Whether the target itself asked for the silence until the breaker lets a message through again. If not, the breaker is not open, or its
    /// plan made the wait.
    #[must_use]
    pub fn is_silence_asked(&self, now_ms: u64) -> bool {
        let until = self.breaker.opens_until(now_ms);
        until.is_some() && until == self.asked_until_ms
    }

    /// Returns the reason of the last failure since the last success; `None`: the last message was delivered, or none was sent.
    #[must_use]
    pub fn last_failure(&self) -> Option<&Arc<str>> {
        self.last_failure.as_ref()
    }

    /// Returns the number of messages that are being sent.
    #[must_use]
    pub fn sending(&self) -> usize {
        self.sending
    }

    /// Returns the number of tasks in hand: those that are being sent, and those that wait for their next try.
    #[must_use]
    pub fn in_hand(&self) -> usize {
        self.in_hand.len()
    }

    /// Returns the time after which the sending of one message is given up (ms).
    pub(crate) fn timeout_ms(&self) -> u64 {
        self.plan.timeout_ms
    }

    /// Returns the task in hand that has this id.
    pub(crate) fn task_in_hand(&self, id: u64) -> Option<&InHand> {
        self.in_hand.values().find(|in_hand| in_hand.leased.id == id)
    }

    /// Returns the task in hand behind which the tasks of this group wait; `None`: there is none, or they have no order.
    pub(crate) fn head_of(&self, group: Option<&Group>) -> Option<&InHand> {
        let mut in_hand = self.in_hand.values();
        match self.plan.order {
            Order::None => None,
            Order::Group => {
                group.and_then(|group| in_hand.find(|head| head.leased.group.as_ref() == Some(group)))
            }
            Order::Queue => in_hand.next(),
        }
    }

    /// Whether nothing is under way: no message, no lease call, and no ack that waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_hand.is_empty() && !self.is_leasing && self.settling.next_wake().is_none()
    }

    /// Whether no message is under way, and no end of a lease waits. Tasks in hand that wait for their next attempt do not count.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sending == 0 && self.settling.next_wake().is_none()
    }

    /// Returns when [`pass_time`](Self::pass_time) is to be called next; `None`: not before another method.
    #[must_use]
    pub fn next_wake(&self, now_ms: u64) -> Option<u64> {
        let breaker = self.breaker.opens_until(now_ms).filter(|_| self.is_on);
        let retry = self.next_retry().map(|(at, _)| at).filter(|_| self.places(now_ms) > 0);
        let extension = self.extensions.first().map(|&(at, _)| at);
        let lease = self.few_since_ms.map(|since| since.saturating_add(FEW_PLACES_MS));
        [breaker, retry, extension, lease, self.settling.next_wake()].into_iter().flatten().min()
    }

    /// Does what is due at `now_ms`.
    pub fn pass_time(&mut self, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.go_on(now_ms, &mut effects);
        effects
    }

    /// Takes in that the queue refused the lease call.
    pub fn lease_refused(&mut self, now_ms: u64) -> Vec<Effect> {
        self.is_leasing = false;
        self.pass_time(now_ms)
    }

    /// Takes in the answer to the lease call.
    pub fn leased(&mut self, now_ms: u64, tasks: Vec<Leased>) -> Vec<Effect> {
        self.is_leasing = false;
        let mut effects = Vec::new();
        if tasks.is_empty() && self.in_hand.is_empty() {
            self.breaker.quiet();
        }
        let mut tasks = tasks.into_iter();
        let places = self.places(now_ms).min(self.room());
        for leased in tasks.by_ref().take(places) {
            let no = SendNo(self.next_no);
            self.next_no += 1;
            let extend_at_ms = self.extension_at(now_ms);
            self.extensions.insert((extend_at_ms, no));
            let leased = Arc::new(leased);
            let wait_until = self.given_back.wait_until(leased.id).filter(|at| *at > now_ms);
            let is_behind =
                wait_until.is_none() && self.line(&leased).is_some_and(|line| self.ending.contains(&line));
            let (tries, sent_at_ms, retry_at_ms, is_asked) = (0, now_ms, None, false);
            let in_hand =
                InHand { leased, tries, sent_at_ms, retry_at_ms, is_behind, is_asked, extend_at_ms };
            self.in_hand.insert(no, in_hand);
            match wait_until {
                Some(at) => self.hold(now_ms, no, at),
                None if is_behind => {
                    self.in_hand.get_mut(&no).expect("it was just taken").retry_at_ms = Some(now_ms);
                    self.retries.insert((now_ms, no));
                }
                None => self.send(now_ms, no, &mut effects),
            }
        }
        // The breaker opened, or the target was paused, while the call waited.
        let back: Vec<Token> = tasks.map(|leased| leased.token).collect();
        if !back.is_empty() {
            effects.push(Effect::GiveBack(back));
        }
        self.go_on(now_ms, &mut effects);
        effects
    }

    /// Takes in how the sending of a message ended. The outcome of an unknown number has no effect: the task was given back meanwhile.
    pub fn sent(&mut self, now_ms: u64, no: SendNo, outcome: &Outcome) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(in_hand) = self.in_hand.get(&no).filter(|in_hand| in_hand.retry_at_ms.is_none()) else {
            return effects;
        };
        let (id, token) = (in_hand.leased.id, in_hand.leased.token);
        self.sending -= 1;
        match outcome {
            Outcome::Delivered => {
                self.breaker.succeeded(now_ms);
                self.last_failure = None;
                self.given_back.forget(id);
                self.end(no, token);
                self.settling.add(token, now_ms);
            }
            Outcome::Undeliverable { why, reason } => {
                // The other side answered, or was not asked. So this is no failure of the target.
                if *why == Undeliverable::Refused {
                    self.breaker.succeeded(now_ms);
                }
                self.given_back.forget(id);
                self.end(no, token);
                effects.push(nack(token, NackHow::Undeliverable(*why), None, reason));
            }
            Outcome::TaskFailed { reason, retry_after_ms } => {
                self.failed(now_ms, None, reason);
                self.given_back.forget(id);
                self.attempt_failed(now_ms, no, *retry_after_ms, reason, &mut effects);
            }
            Outcome::TargetFailed { reason, open_ms, asked } => {
                let asked_ms = open_ms.filter(|_| *asked).map(|ms| now_ms.saturating_add(ms));
                self.asked_until_ms = self.asked_until_ms.max(asked_ms);
                self.failed(now_ms, *open_ms, reason);
                self.back(now_ms, no, reason, &mut effects);
            }
            Outcome::Blocked { reason } => {
                self.failed(now_ms, Some(0), reason);
                // Not counted by `given_back`: it is never the fault of the task.
                self.drop_from_hand(no);
                effects.push(Effect::GiveBack(vec![token]));
            }
            Outcome::Disabled { reason } => {
                self.last_failure = Some(Arc::clone(reason));
                self.back(now_ms, no, reason, &mut effects);
                effects.push(Effect::Disable { reason: Arc::clone(reason) });
                self.turn_off(&mut effects);
            }
        }
        self.give_back_while_open(now_ms, &mut effects);
        self.go_on(now_ms, &mut effects);
        effects
    }

    /// Takes in that the queue has answered or refused the end of these leases. The next task of their group or queue may be sent. Without an order, and for other tokens, the call has no effect.
    pub fn settled(&mut self, now_ms: u64, tokens: &[Token]) -> Vec<Effect> {
        for token in tokens {
            // After a lease that ended by itself, a task may have two ends under way.
            if let Some(line) = self.unsettled.remove(token)
                && !self.unsettled.values().any(|other| *other == line)
            {
                self.ending.remove(&line);
            }
        }
        self.pass_time(now_ms)
    }

    /// Takes in the answer to an extension. A task in hand whose lease is over belongs to another worker or to its owner, and is let go. A
    /// message that is being sent is sent to its end.
    pub fn extended(&mut self, now_ms: u64, no: SendNo, answer: TokenAnswer) -> Vec<Effect> {
        let mut effects = Vec::new();
        let is_held = self.in_hand.get(&no).is_some_and(|in_hand| in_hand.retry_at_ms.is_some());
        if is_held && answer != TokenAnswer::Extended {
            self.drop_from_hand(no);
        } else if let Some(due_ms) = self.answered(no) {
            if self.places(now_ms) > 0 {
                self.in_hand.get_mut(&no).expect("it was asked for").retry_at_ms = None;
                self.send(now_ms, no, &mut effects);
            } else {
                // The breaker opened meanwhile.
                self.retries.insert((due_ms, no));
            }
        }
        self.go_on(now_ms, &mut effects);
        effects
    }

    /// Takes in that the queue refused an extension, which says nothing about the lease. A try that waits for the answer waits a little longer.
    pub fn extension_refused(&mut self, now_ms: u64, no: SendNo) -> Vec<Effect> {
        if self.answered(no).is_some() {
            let at = now_ms.saturating_add(HELD_LOOK_MS);
            self.in_hand.get_mut(&no).expect("it was asked for").retry_at_ms = Some(at);
            self.retries.insert((at, no));
        }
        self.pass_time(now_ms)
    }

    /// Notes that a try does not wait for an answer any more. Returns when it was due; `None`: it did not wait.
    fn answered(&mut self, no: SendNo) -> Option<u64> {
        let in_hand = self.in_hand.get_mut(&no).filter(|in_hand| in_hand.is_asked)?;
        in_hand.is_asked = false;
        self.asked -= 1;
        in_hand.retry_at_ms
    }

    /// Leases nothing more, and gives back what waits in hand. Messages under way are sent to their end.
    pub fn pause(&mut self, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.turn_off(&mut effects);
        self.go_on(now_ms, &mut effects);
        effects
    }

    /// Leases tasks again, after a pause. Tasks that were given back before are sent without a wait.
    pub fn resume(&mut self, now_ms: u64) -> Vec<Effect> {
        self.is_on = true;
        // An operator who resumes a target wants to see at once whether it works.
        self.given_back.end_waits();
        self.pass_time(now_ms)
    }

    /// Pauses, and gives back the tasks whose messages are still under way. Their outcomes have no effect any more, so a message may arrive
    /// and be sent again later.
    pub fn give_up(&mut self, now_ms: u64) -> Vec<Effect> {
        let mut effects = self.pause(now_ms);
        let back: Vec<Token> = self.in_hand.values().map(|in_hand| in_hand.leased.token).collect();
        self.in_hand.clear();
        self.extensions.clear();
        (self.sending, self.asked) = (0, 0);
        if !back.is_empty() {
            effects.push(Effect::GiveBack(back));
        }
        self.go_on(now_ms, &mut effects);
        effects
    }

    fn failed(&mut self, now_ms: u64, silence_ms: Option<u64>, reason: &Arc<str>) {
        self.breaker.failed(now_ms, silence_ms);
        self.last_failure = Some(Arc::clone(reason));
    }

    /// Gives back the tasks that wait because the target gave them back before, if the breaker is open. They are ready meanwhile, so a worker may lease them.
    fn give_back_while_open(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.breaker.state(now_ms) == BreakerState::Open {
            self.give_back_held(|in_hand| in_hand.tries == 0 && !in_hand.is_behind, effects);
        }
    }

    /// Counts a failed attempt of a task. In an order, the task stays in hand, so that no later one overtakes it.
    fn attempt_failed(
        &mut self,
        now_ms: u64,
        no: SendNo,
        retry_after_ms: Option<u64>,
        reason: &Arc<str>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(in_hand) = self.in_hand.get(&no) else { return };
        let (token, is_last) = (in_hand.leased.token, in_hand.is_last());
        match self.plan.order {
            Order::None => {
                self.drop_from_hand(no);
                effects.push(nack(token, NackHow::Returned, retry_after_ms, reason));
            }
            Order::Group | Order::Queue if is_last => {
                self.end(no, token);
                effects.push(nack(token, NackHow::Undeliverable(Undeliverable::Exhausted), None, reason));
            }
            Order::Group | Order::Queue => self.wait_by_policy(now_ms, no, retry_after_ms),
        }
    }

    /// Gives the task of a message back. A task that was given back too often counts an attempt.
    fn back(&mut self, now_ms: u64, no: SendNo, reason: &Arc<str>, effects: &mut Vec<Effect>) {
        let Some(in_hand) = self.in_hand.get(&no) else { return };
        let (id, token) = (in_hand.leased.id, in_hand.leased.token);
        if self.given_back.count(id, now_ms) {
            self.attempt_failed(now_ms, no, None, reason, effects);
        } else {
            self.drop_from_hand(no);
            effects.push(Effect::GiveBack(vec![token]));
        }
    }

    /// Keeps a task whose attempt failed in hand until its next try.
    fn wait_by_policy(&mut self, now_ms: u64, no: SendNo, retry_after_ms: Option<u64>) {
        let Some(in_hand) = self.in_hand.get(&no) else { return };
        let leased = &in_hand.leased;
        // The jitter differs from task to task and from try to try. It need not be a secret.
        let chance = leased.id.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(in_hand.tries);
        let by_policy = leased.retry.backoff.map_or(0, |backoff| backoff.wait_ms(in_hand.attempt(), chance));
        let wait_ms = by_policy.max(retry_after_ms.unwrap_or(0));
        self.hold(now_ms, no, now_ms.saturating_add(wait_ms));
    }

    /// Keeps a task in hand until its next try at `at` (ms).
    fn hold(&mut self, now_ms: u64, no: SendNo, at: u64) {
        let Some(in_hand) = self.in_hand.get_mut(&no) else { return };
        in_hand.retry_at_ms = Some(at);
        self.retries.insert((at, no));
        self.extensions.remove(&(in_hand.extend_at_ms, no));
        in_hand.extend_at_ms = in_hand.extend_at_ms.min(now_ms.saturating_add(HELD_LOOK_MS));
        self.extensions.insert((in_hand.extend_at_ms, no));
    }

    /// Lets go of a task whose end is on its way to the queue.
    fn end(&mut self, no: SendNo, token: Token) {
        let Some(in_hand) = self.drop_from_hand(no) else { return };
        if let Some(line) = self.line(&in_hand.leased) {
            self.unsettled.insert(token, line.clone());
            self.ending.insert(line);
        }
    }

    /// Returns the line of a task; `None`: the task has no order.
    fn line(&self, leased: &Leased) -> Option<Line> {
        match self.plan.order {
            Order::None => None,
            Order::Group => leased.group.clone().map(Some),
            Order::Queue => Some(None),
        }
    }

    /// Returns the next try that does not wait for the end of another task.
    fn next_retry(&self) -> Option<(u64, SendNo)> {
        let is_free = |no: &SendNo| {
            let line = self.in_hand.get(no).and_then(|in_hand| self.line(&in_hand.leased));
            line.is_none_or(|line| !self.ending.contains(&line))
        };
        self.retries.iter().find(|(_, no)| self.ending.is_empty() || is_free(no)).copied()
    }

    fn drop_from_hand(&mut self, no: SendNo) -> Option<InHand> {
        let in_hand = self.in_hand.remove(&no)?;
        self.extensions.remove(&(in_hand.extend_at_ms, no));
        if let Some(at) = in_hand.retry_at_ms {
            self.retries.remove(&(at, no));
        }
        self.asked -= usize::from(in_hand.is_asked);
        Some(in_hand)
    }

    fn turn_off(&mut self, effects: &mut Vec<Effect>) {
        self.is_on = false;
        self.give_back_held(|_| true, effects);
    }

    /// Gives back the tasks in hand that are not being sent and that the caller chooses.
    fn give_back_held(&mut self, is_chosen: impl Fn(&InHand) -> bool, effects: &mut Vec<Effect>) {
        let held =
            self.in_hand.iter().filter(|(_, in_hand)| in_hand.retry_at_ms.is_some() && is_chosen(in_hand));
        let held: Vec<SendNo> = held.map(|(no, _)| *no).collect();
        let back: Vec<Token> =
            held.into_iter().filter_map(|no| self.drop_from_hand(no)).map(|held| held.leased.token).collect();
        if !back.is_empty() {
            effects.push(Effect::GiveBack(back));
        }
    }

    /// The number of messages that may begin now.
    fn places(&self, now_ms: u64) -> usize {
        if self.is_on { self.breaker.limit(now_ms).saturating_sub(self.sending + self.asked) } else { 0 }
    }

    /// The number of tasks that may come into the hand.
    fn room(&self) -> usize {
        let most = match self.plan.order {
            Order::Queue => 1,
            Order::None | Order::Group => self.plan.concurrency.saturating_add(HELD_MAX),
        };
        most.saturating_sub(self.in_hand.len())
    }

    fn extension_at(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.lease_ms() / 2)
    }

    /// Sends a task in hand.
    fn send(&mut self, now_ms: u64, no: SendNo, effects: &mut Vec<Effect>) {
        let in_hand = self.in_hand.get_mut(&no).expect("the caller has just found it");
        in_hand.tries = in_hand.tries.saturating_add(1);
        in_hand.sent_at_ms = now_ms;
        self.sending += 1;
        let (attempt, is_last) = (in_hand.attempt(), in_hand.is_last());
        effects.push(Effect::Send(Sending { no, leased: Arc::clone(&in_hand.leased), attempt, is_last }));
    }

    /// Does all that can be done at `now_ms`: extensions, tries that are due, acks, and the next lease call.
    fn go_on(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        while let Some(&(at, no)) = self.extensions.first().filter(|&&(at, _)| at <= now_ms) {
            self.extensions.remove(&(at, no));
            let half = self.extension_at(now_ms);
            let in_hand = self.in_hand.get_mut(&no).expect("what is extended is in hand");
            let is_held = !in_hand.is_behind && in_hand.retry_at_ms.is_some();
            let next = if is_held { half.min(now_ms.saturating_add(HELD_LOOK_MS)) } else { half };
            in_hand.extend_at_ms = next;
            self.extensions.insert((next, no));
            effects.push(Effect::Extend { no, token: in_hand.leased.token });
        }
        while self.places(now_ms) > 0
            && let Some((at, no)) = self.next_retry().filter(|&(at, _)| at <= now_ms)
        {
            self.retries.remove(&(at, no));
            let in_hand = self.in_hand.get_mut(&no).expect("what is tried again is in hand");
            if std::mem::take(&mut in_hand.is_behind) {
                in_hand.retry_at_ms = None;
                self.send(now_ms, no, effects);
            } else {
                in_hand.is_asked = true;
                self.asked += 1;
                effects.push(Effect::Extend { no, token: in_hand.leased.token });
            }
        }
        let acks = self.settling.take(now_ms, self.sending == 0);
        if !acks.is_empty() {
            effects.push(Effect::Ack(acks));
        }
        let places = self.places(now_ms).min(self.room()).min(LEASE_TASKS_MAX);
        // A quarter of the places is worth a call. With fewer, calls for single tasks would follow each other.
        let are_many = 4 * places >= self.breaker.limit(now_ms).min(LEASE_TASKS_MAX);
        let are_few = places > 0 && !are_many && !self.is_leasing;
        self.few_since_ms = are_few.then(|| self.few_since_ms.unwrap_or(now_ms));
        let is_worth_it = are_many
            || self.few_since_ms.take_if(|since| now_ms >= since.saturating_add(FEW_PLACES_MS)).is_some();
        if self.is_leasing && places == 0 {
            self.is_leasing = false;
            effects.push(Effect::DropLease);
        } else if !self.is_leasing && places > 0 && is_worth_it {
            self.is_leasing = true;
            effects.push(Effect::Lease { max: places });
        }
    }
}

fn nack(token: Token, how: NackHow, at_least_ms: Option<u64>, reason: &Arc<str>) -> Effect {
    Effect::Nack { token, how, at_least_ms, reason: Arc::clone(reason) }
}
