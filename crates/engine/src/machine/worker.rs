//! The worker's verbs: lease, ack, nack, extend.

use std::sync::Arc;

use super::Engine;
use super::dead::Lapse;
use super::entries::{At, Slot};
use super::flow::Choice;
use super::queues::{Queue, Waiter};
use crate::answer::{Answer, Leased, NackError, TokenAnswer, Unavailable};
use crate::command::{Lease, Nack};
use crate::input::CallId;
use crate::name::QueueName;
use crate::seam::Found;
use crate::task::{Failed, LeaseNo, Outcome};
use crate::time::{Now, Timestamp};
use crate::token::Token;

/// What a worker wants done with its leases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Ack,
    Nack {
        /// When the task is due again; `None`: as its retry policy says.
        due_at: Option<Timestamp>,
        reason: Option<Arc<str>>,
    },
    Extend {
        lease_ms: Option<u64>,
    },
}

/// A call whose tokens are not all decided: some tasks have to be looked up.
#[derive(Debug)]
pub(super) struct TokenCall {
    verb: Verb,
    queue: QueueName,
    answers: Vec<Option<TokenAnswer>>,
    undecided: usize,
}

impl TokenCall {
    fn unavailable(&self, why: Unavailable) -> Answer {
        match self.verb {
            Verb::Ack => Answer::Ack(Err(why)),
            Verb::Nack { .. } => Answer::Nack(Err(NackError::Unavailable(why))),
            Verb::Extend { .. } => Answer::Extend(Err(why)),
        }
    }
}

impl Engine {
    pub(super) fn lease(&mut self, now: Now, call: CallId, lease: &Lease) {
        // A lease of no task is answered as it is asked: it must not stand in the way of those that want one.
        if lease.max == 0 {
            return self.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        let first_in_line = self.queues.get(&lease.queue).is_none_or(|queue| queue.waiters.is_empty());
        let granted =
            if first_in_line { self.grant(now, &lease.queue, lease.max, lease.lease_ms) } else { Vec::new() };
        let at_once = !granted.is_empty() || !lease.wait && self.shows_all(now, &lease.queue);
        if at_once {
            return self.answer(call, Answer::Lease(Ok(granted)));
        }
        let waiter = Waiter { max: lease.max, lease_ms: lease.lease_ms, patient: lease.wait };
        self.queues.wait(&lease.queue, call, waiter);
        if first_in_line && self.knows_what_is_due(now) {
            self.watch_gate(now, &lease.queue);
        } else {
            // It may stand in front of the others, for numbers need not come in their order, and want less than they do.
            self.to_serve.insert(lease.queue.clone());
        }
    }

    /// Whether a lease that is given nothing can say that there is nothing for it: not while it is unknown what is due, nor while
    /// records of ready tasks are on their way.
    pub(super) fn shows_all(&self, now: Now, name: &QueueName) -> bool {
        let none = |queue: &Queue| queue.line.is_empty() || queue.allowance(now) == 0;
        self.knows_what_is_due(now) && self.queues.get(name).is_none_or(none)
    }

    /// A lease has waited long enough. What is ready by now it still gets.
    pub(super) fn end_wait(&mut self, now: Now, call: CallId) {
        let Some(queue) = self.queues.waited_on(call) else { return };
        let name = queue.name.clone();
        if self.shows_all(now, &name) {
            self.queues.end_wait(call);
            return self.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        self.queues.hurry(call);
        self.to_serve.insert(name);
    }

    /// Gives what is ready to the calls that wait, in the order they asked.
    pub(super) fn serve_waiters(&mut self, now: Now) {
        if self.failed.is_some() || !self.knows_what_is_due(now) {
            return;
        }
        while let Some(name) = self.to_serve.pop_first() {
            while let Some((call, waiter)) = self.queues.get(&name).and_then(|queue| {
                let (&call, &waiter) = queue.waiters.first_key_value()?;
                Some((call, waiter))
            }) {
                let granted = self.grant(now, &name, waiter.max, waiter.lease_ms);
                if granted.is_empty() {
                    break;
                }
                self.queues.end_wait(call);
                self.answer(call, Answer::Lease(Ok(granted)));
            }
            while self.shows_all(now, &name)
                && let Some(call) = self.queues.first_impatient(&name)
            {
                self.queues.end_wait(call);
                self.answer(call, Answer::Lease(Ok(Vec::new())));
            }
            self.watch_gate(now, &name);
        }
    }

    /// Leases the first `max` of what is ready and may be handed out, or all if there are fewer. Nothing, if the records of some
    /// of them have to be fetched first.
    fn grant(&mut self, now: Now, queue: &QueueName, max: usize, lease_ms: Option<u64>) -> Vec<Leased> {
        if !self.knows_what_is_due(now) {
            return Vec::new();
        }
        let chosen = match self.choose(now, queue, max) {
            Choice::These(slots) => slots,
            Choice::Unknown => {
                self.hungry.insert(queue.clone());
                return Vec::new();
            }
        };
        let lease_ms = self.lease_ms(queue, lease_ms);
        let granted: Vec<Leased> =
            chosen.into_iter().map(|slot| self.grant_one(now, slot, lease_ms)).collect();
        // Where nothing is handed out nobody needs the next ones either.
        if !granted.is_empty() {
            self.fetch_ahead(queue);
        }
        granted
    }

    fn grant_one(&mut self, now: Now, slot: Slot, lease_ms: u64) -> Leased {
        let At::Ready { since } = self.entries.get(slot).at else {
            unreachable!("the ready index holds ready tasks only, not {:?}", self.entries.get(slot).at)
        };
        self.leave_line(slot);
        let no = self.next_lease;
        self.next_lease = no.next();
        assert_eq!(self.next_lease.epoch(), self.guard.epoch, "an epoch has fewer than 2^40 leases");
        if self.entries.get(slot).task.lease_fence.epoch() != self.guard.epoch {
            // A worker of an earlier life may hold a token of this task. From the moment somebody else gets it that token
            // is void, so this is written down, and the delivery waits for it.
            self.record(slot, |task| {
                task.lease_fence = no;
                task.lease = None;
            });
        }
        self.hold(slot, no, since, lease_ms, now);
        self.stats.leased_total += 1;
        let entry = self.entries.get(slot);
        let At::Leased(held) = &entry.at else { unreachable!("it was just leased") };
        let task = &entry.task;
        Leased {
            id: task.id,
            key: task.key.clone(),
            due_at: task.due_at,
            ready_at: since,
            put_seq: task.put_seq,
            attempt: task.attempts.saturating_add(1),
            token: Token::issue(&self.secret, task.id, no),
            lease_until: held.until,
            priority: task.priority,
            group: task.group().cloned(),
            trace: task.trace().cloned(),
            step: task.step(),
            body: Arc::clone(&task.body),
        }
    }

    /// Deliveries that reached nobody: as if they had not been made.
    pub(super) fn take_back(&mut self, now: Now, tokens: &[Token]) {
        for token in tokens {
            let Some((id, no)) = token.verify(&self.secret) else { continue };
            let Some(slot) = self.entries.by_id(id) else { continue };
            let since = match &self.entries.get(slot).at {
                At::Leased(held) if held.no == no => held.ready_since,
                _ => continue,
            };
            self.unplace(slot);
            self.make_ready(slot, since.min(now.wall));
            self.put_token_back(slot);
            // It may have expired meanwhile; or it is to, and the clock has stepped back.
            let task = Arc::clone(&self.entries.get(slot).task);
            self.watch_expiry(&task);
            self.expire_one(slot, now);
        }
    }

    pub(super) fn nack(&mut self, now: Now, call: CallId, nack: &Nack) {
        let due_at = match nack.delay_ms {
            None => None,
            Some(ms) => match self.nack_instant(now, ms) {
                Some(due_at) => Some(due_at),
                None => {
                    let limit_ms = self.config.farthest_ms;
                    return self.answer(call, Answer::Nack(Err(NackError::TooFar { limit_ms })));
                }
            },
        };
        let reason = nack.reason.clone();
        self.tokens(now, call, &nack.queue, &nack.tokens, &Verb::Nack { due_at, reason });
    }

    /// Decides each token; those whose task is not in memory are looked up first.
    pub(super) fn tokens(
        &mut self,
        now: Now,
        call: CallId,
        queue: &QueueName,
        tokens: &[Token],
        verb: &Verb,
    ) {
        let mut pending = TokenCall {
            verb: verb.clone(),
            queue: queue.clone(),
            answers: Vec::with_capacity(tokens.len()),
            undecided: 0,
        };
        for (index, token) in tokens.iter().enumerate() {
            let answer = match token.verify(&self.secret) {
                None => Some(TokenAnswer::Expired),
                Some((id, no)) => match self.entries.by_id(id) {
                    Some(slot) => Some(self.decide_token(now, slot, queue, no, verb)),
                    None => {
                        self.lookups.want_id(call, index, id, no);
                        pending.undecided += 1;
                        None
                    }
                },
            };
            pending.answers.push(answer);
        }
        if pending.undecided == 0 {
            self.answer_tokens(call, pending);
        } else {
            self.lookups.token_calls.insert(call, pending);
        }
    }

    /// The store answered for one token.
    pub(super) fn token_found(
        &mut self,
        now: Now,
        call: CallId,
        index: usize,
        id: u64,
        no: LeaseNo,
        found: Found,
    ) {
        let Some((queue, verb)) =
            self.lookups.token_calls.get(&call).map(|c| (c.queue.clone(), c.verb.clone()))
        else {
            return;
        };
        let known = self.entries.by_id(id);
        let loaded = match (&found, known) {
            (Found::Live(task), None) => self.load(now, Arc::clone(task)),
            (Found::Live(_), Some(_)) | (Found::Ended(_) | Found::Absent, _) => None,
        };
        let slot = known.or(loaded);
        let answer = match (slot, &found) {
            (Some(_), _) if self.refuses_changes().is_some() => TokenAnswer::Expired,
            (Some(slot), _) => self.decide_token(now, slot, &queue, no, &verb),
            (None, Found::Ended(ended)) if ended.queue == queue && ended.outcome == Outcome::Revoked(no) => {
                TokenAnswer::Revoked
            }
            (None, _) => TokenAnswer::Expired,
        };
        if let Some(slot) = loaded {
            self.let_go(slot, now);
        }
        self.token_decided(call, index, answer);
    }

    /// The store failed before it could say anything of this token.
    pub(super) fn token_failed(&mut self, call: CallId, index: usize) {
        if self.lookups.token_calls.contains_key(&call) {
            self.token_decided(call, index, TokenAnswer::Expired);
        }
    }

    fn token_decided(&mut self, call: CallId, index: usize, answer: TokenAnswer) {
        let pending = self.lookups.token_calls.get_mut(&call).expect("it was there");
        pending.answers[index] = Some(answer);
        pending.undecided -= 1;
        if pending.undecided == 0 {
            let pending = self.lookups.token_calls.remove(&call).expect("it was there");
            self.answer_tokens(call, pending);
        }
    }

    fn answer_tokens(&mut self, call: CallId, pending: TokenCall) {
        let answers = pending.answers.iter().copied().map(|a| a.expect("all tokens are decided")).collect();
        let answer = match (&pending.verb, self.refuses_changes()) {
            (_, Some(why)) => pending.unavailable(Unavailable::Indeterminate { why }),
            (Verb::Ack, None) => Answer::Ack(Ok(answers)),
            (Verb::Nack { .. }, None) => Answer::Nack(Ok(answers)),
            (Verb::Extend { .. }, None) => Answer::Extend(Ok(answers)),
        };
        self.answer(call, answer);
    }

    fn decide_token(
        &mut self,
        now: Now,
        slot: Slot,
        queue: &QueueName,
        no: LeaseNo,
        verb: &Verb,
    ) -> TokenAnswer {
        let entry = self.entries.get(slot);
        if entry.task.queue != *queue {
            return TokenAnswer::Expired;
        }
        let speaks = match &entry.at {
            At::Ended(Outcome::Revoked(revoked)) if *revoked == no => return TokenAnswer::Revoked,
            At::Ended(_) => return TokenAnswer::Expired,
            _ if entry.task.revoked == Some(no) => return TokenAnswer::Revoked,
            At::Leased(held) => held.no == no || crate::planted::is("ack-by-old-token"),
            // A crash gave the task back. The token of an earlier life still speaks for it, for nobody else got it since
            // and its owner left it as it was: either would have raised the fence.
            At::Far | At::Waiting(_) | At::Rewound if entry.is_dead() => false,
            At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. } => {
                no >= entry.task.lease_fence && no.epoch() < self.guard.epoch
            }
        };
        if !speaks {
            return TokenAnswer::Expired;
        }
        match verb {
            Verb::Ack => {
                self.stats.acked_total += 1;
                let next = self.entries.get(slot).task.next_moment();
                match next.filter(|_| !crate::planted::is("step-forgotten")).map(|moment| moment.at) {
                    Some(at) => self.step_on(now, slot, at),
                    None => self.end(now, slot, Outcome::Done),
                }
                TokenAnswer::Acked
            }
            Verb::Nack { due_at, reason } => {
                self.stats.nacked_total += 1;
                let lapse = Lapse { how: Failed::Nacked, reason: reason.clone(), due_at: *due_at };
                self.lease_ended(slot, now, lapse);
                TokenAnswer::Nacked
            }
            Verb::Extend { .. } if !self.may_go_on(slot) => TokenAnswer::Expired,
            Verb::Extend { lease_ms } => {
                let lease_ms = self.lease_ms(queue, *lease_ms);
                self.extend(now, slot, no, lease_ms);
                TokenAnswer::Extended
            }
        }
    }

    /// The work of one instant of a timeline is done: the task waits for the next, with all its attempts before it.
    fn step_on(&mut self, now: Now, slot: Slot, at: Timestamp) {
        self.unplace(slot);
        let fence = self.next_lease;
        self.record(slot, |task| {
            let extra = task.extra_mut();
            extra.step += 1;
            extra.failures.clear();
            task.attempts = 0;
            task.due_at = at;
            task.lease_fence = fence;
            task.lease = None;
        });
        let task = Arc::clone(&self.entries.get(slot).task);
        self.watch_expiry(&task);
        self.place(slot, now);
        // Its expiry may have passed while it was leased: then there is no next instant, and whoever waits does not get it.
        self.expire_one(slot, now);
    }

    /// Keeps a lease for longer; one of an earlier life is taken up again.
    fn extend(&mut self, now: Now, slot: Slot, no: LeaseNo, lease_ms: u64) {
        let since = match &self.entries.get(slot).at {
            At::Leased(held) => held.ready_since,
            At::Ready { since } => *since,
            _ => now.wall,
        };
        self.unplace(slot);
        self.hold(slot, no, since, lease_ms, now);
        if self.stopping && self.failed.is_none() {
            // The look-up of its task came back after the others were written down.
            self.write_lease_down(slot);
        }
    }
}
