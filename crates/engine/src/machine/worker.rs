//! The worker's verbs: lease, ack, nack, extend.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use super::dead::{Again, Lapse};
use super::entries::{At, Slot};
use super::flow::Choice;
use super::leases::{Holder, Taking};
use super::queue::Queue;
use super::queues::Waiter;
use crate::calls::{Answer, Lease, Leased, Nack, NackError, NackHow, TokenAnswer, Unavailable};
use crate::figures::Event;
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
    Nack(Lapse),
    Extend { lease_ms: Option<u64> },
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
            Verb::Nack(_) => Answer::Nack(Err(NackError::Unavailable(why))),
            Verb::Extend { .. } => Answer::Extend(Err(why)),
        }
    }
}

impl Engine {
    pub(super) fn lease(&mut self, now: Now, call: CallId, lease: Lease) {
        let Lease { queues, max, lease_ms, wait, worker } = lease;
        // A lease of no task is answered as it is asked: it must not stand in the way of those that want one.
        if max == 0 || queues.is_empty() {
            return self.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        let unawaited = |name| self.queues.get(name).is_none_or(|queue| queue.waiters.is_empty());
        let first_in_line = queues.iter().all(unawaited);
        let taking = Taking { lease_ms, worker: worker.as_ref() };
        let granted = if first_in_line { self.grant(now, &queues, max, taking) } else { Vec::new() };
        let at_once = !granted.is_empty() || !wait && self.shows_all(now, &queues);
        if at_once {
            return self.deliver(call, granted);
        }
        let waiter = Waiter { queues: Arc::clone(&queues), max, lease_ms, worker, patient: wait };
        self.queues.wait(call, waiter);
        if first_in_line && self.knows_what_is_due(now) {
            queues.iter().for_each(|name| self.watch_gate(now, name));
        } else {
            // It may stand in front of the others, for numbers need not come in their order, and want less than they do.
            self.look_among(now, &queues);
        }
    }

    /// Whoever waits on one of these queues is looked at, where there may be something for it: a call may name a thousand of them.
    fn look_among(&mut self, now: Now, names: &[QueueName]) {
        let is_known = self.knows_what_is_due(now);
        let worth_a_look = names.iter().filter(|name| !is_known || self.queues.has_line(name));
        self.to_serve.extend(worth_a_look.cloned());
    }

    /// Whether a lease over these queues that is given nothing can say that there is nothing for it: not while it is unknown what is due, nor
    /// while records of ready tasks are on their way.
    pub(super) fn shows_all(&self, now: Now, names: &[QueueName]) -> bool {
        let none = |queue: &Queue| queue.line.is_empty() || queue.allowance(now) == 0;
        self.knows_what_is_due(now) && names.iter().all(|name| self.queues.get(name).is_none_or(none))
    }

    /// A lease has waited long enough. What is ready by now it still gets.
    pub(super) fn end_wait(&mut self, now: Now, call: CallId) {
        let Some(queues) = self.queues.waiter(call).map(|waiter| Arc::clone(&waiter.queues)) else { return };
        if self.shows_all(now, &queues) {
            self.queues.end_wait(call);
            return self.answer(call, Answer::Lease(Ok(Vec::new())));
        }
        self.queues.hurry(call);
        self.look_among(now, &queues);
    }

    /// Gives what is ready to the calls that wait, in the order they asked.
    pub(super) fn serve_waiters(&mut self, now: Now) {
        if self.failed.is_some() || !self.knows_what_is_due(now) {
            return;
        }
        while let Some(name) = self.to_serve.pop_first() {
            while self.queues.has_line(&name)
                && let Some((call, waiter)) = self.queues.first_waiter(&name)
            {
                let Waiter { queues, max, lease_ms, worker, .. } = waiter.clone();
                let taking = Taking { lease_ms, worker: worker.as_ref() };
                let granted = self.grant(now, &queues, max, taking);
                if granted.is_empty() {
                    break;
                }
                self.served(call, granted);
            }
            while let Some(call) = self.first_in_vain(now, &name) {
                self.served(call, Vec::new());
            }
            self.watch_gate(now, &name);
        }
    }

    /// The call that has waited longest on this queue of those that wait no longer and for which there is nothing.
    fn first_in_vain(&self, now: Now, name: &QueueName) -> Option<CallId> {
        let mut calls = self.queues.impatient(name);
        calls.find(|(_, waiter)| self.shows_all(now, &waiter.queues)).map(|(call, _)| call)
    }

    /// A call that waited is answered. Whoever stood behind it in another queue may have something there.
    fn served(&mut self, call: CallId, granted: Vec<Leased>) {
        let waiter = self.queues.end_wait(call);
        for name in waiter.iter().filter(|waiter| waiter.queues.len() > 1).flat_map(|w| w.queues.iter()) {
            if self.queues.has_line(name) || self.queues.impatient(name).next().is_some() {
                self.to_serve.insert(name.clone());
            }
        }
        self.deliver(call, granted);
    }

    /// Answers a lease: at once if all that it delivers is durable. Else, or if there is nothing, as any other call.
    fn deliver(&mut self, call: CallId, granted: Vec<Leased>) {
        let is_durable = |one: &Leased| {
            self.entries.by_id(one.id).is_some_and(|slot| self.entries.get(slot).dirty.is_none())
        };
        let passes = !granted.is_empty() && granted.iter().all(is_durable);
        let answer = Answer::Lease(Ok(granted));
        if passes { self.gate.pass(call, answer) } else { self.answer(call, answer) }
    }

    /// Leases the first `max` of what is ready and may be handed out, or all if there are fewer. Nothing, if the records of some
    /// of them have to be fetched first.
    fn grant(&mut self, now: Now, queues: &[QueueName], max: usize, taking: Taking<'_>) -> Vec<Leased> {
        match queues {
            _ if !self.knows_what_is_due(now) => Vec::new(),
            [queue] => self.grant_of(now, queue, max, taking),
            _ => self.grant_among(now, queues, max, taking),
        }
    }

    /// The same of one queue.
    fn grant_of(&mut self, now: Now, queue: &QueueName, max: usize, taking: Taking<'_>) -> Vec<Leased> {
        match self.choose(now, queue, max) {
            Choice::These(slots) => self.hand_out(now, queue, &slots, taking),
            Choice::Unknown => {
                self.hungry.insert(queue.clone());
                Vec::new()
            }
        }
    }

    /// The same of several, one after the other; fewer, if the record of the next has to be fetched first.
    fn grant_among(&mut self, now: Now, queues: &[QueueName], max: usize, taking: Taking<'_>) -> Vec<Leased> {
        // The first of each, in the ready order. Only that of a queue which gave one is another afterwards.
        let mut firsts = BTreeMap::new();
        for queue in queues {
            if let Some((key, choice)) = self.choose_first(now, queue) {
                firsts.insert(key, (queue, choice));
            }
        }
        let mut granted = Vec::new();
        while granted.len() < max
            && let Some((_, (queue, choice))) = firsts.pop_first()
        {
            match choice {
                Choice::These(slots) => granted.extend(self.hand_out(now, queue, &slots, taking)),
                Choice::Unknown => {
                    self.hungry.insert(queue.clone());
                    break;
                }
            }
            if let Some((key, choice)) = self.choose_first(now, queue) {
                firsts.insert(key, (queue, choice));
            }
        }
        granted
    }

    /// Leases these tasks of a queue, which are in its line.
    fn hand_out(&mut self, now: Now, queue: &QueueName, slots: &[Slot], taking: Taking<'_>) -> Vec<Leased> {
        // Where nothing is handed out nobody needs the next ones either.
        if slots.is_empty() {
            return Vec::new();
        }
        self.take_tokens(now, queue, slots.len());
        let mut granted = Vec::with_capacity(slots.len());
        for &slot in slots {
            granted.push(self.grant_one(now, slot, taking));
            if let At::Leased(held) = &mut self.entries.get_mut(slot).at {
                held.paced = true;
            }
        }
        self.fetch_ahead(queue);
        granted
    }

    /// Leases a task that is ready.
    pub(super) fn grant_one(&mut self, now: Now, slot: Slot, taking: Taking<'_>) -> Leased {
        let At::Ready { since } = self.entries.get(slot).at else {
            unreachable!("the ready index holds ready tasks only, not {:?}", self.entries.get(slot).at)
        };
        self.leave_line(slot);
        let no = self.next_lease;
        self.next_lease = no.next();
        assert_eq!(self.next_lease.epoch(), self.ownership.epoch, "an epoch has fewer than 2^40 leases");
        if self.entries.get(slot).task.lease_fence.epoch() != self.ownership.epoch {
            // A worker of an earlier life may hold a token of this task. From the moment somebody else gets it that token
            // is void, so this is written down, and the delivery waits for it.
            self.record(slot, |task| {
                task.lease_fence = no;
                task.lease = None;
            });
        }
        let lease_ms = self.lease_ms(&self.entries.get(slot).task, taking.lease_ms);
        let until = now.due_after(lease_ms).unwrap_or(Timestamp::MAX);
        let holder = Holder { since: Some(now.wall), worker: taking.worker.cloned() };
        self.hold(slot, no, since, until, holder, now);
        let entry = self.entries.get(slot);
        let At::Leased(held) = &entry.at else { unreachable!("it was just leased") };
        let task = &entry.task;
        Leased {
            id: task.id,
            queue: task.queue.clone(),
            key: task.key.clone(),
            due_at: task.due_at,
            ready_at: since,
            put_seq: task.put_seq,
            attempt: task.attempts.saturating_add(1),
            token: Token::issue(&self.secret, task.id, no),
            lease_until: held.until,
            lease_ms,
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
            let (since, paced) = match &self.entries.get(slot).at {
                At::Leased(held) if held.no == no => (held.ready_since, held.paced),
                _ => continue,
            };
            self.unplace(slot);
            self.make_ready(slot, since.min(now.wall));
            if paced {
                self.put_token_back(slot);
            }
            self.back_from_worker(slot, now);
        }
    }

    pub(super) fn nack(&mut self, now: Now, call: CallId, nack: Nack) {
        let Nack { queue, tokens, how, delay_ms, priority, reason } = nack;
        let (how, again) = match (how, delay_ms) {
            (NackHow::Gone, _) => (Failed::Gone, Again::AtOnce),
            (NackHow::Buried, _) => (Failed::Buried, Again::AtOnce),
            (NackHow::Returned, None) => (Failed::Nacked, Again::ByPolicy),
            (NackHow::Returned, Some(0)) => (Failed::Nacked, Again::AtOnce),
            (NackHow::Returned, Some(ms)) => match self.nack_instant(now, ms) {
                Some(due_at) => (Failed::Nacked, Again::At(due_at)),
                None => {
                    let limit_ms = self.config.farthest_ms;
                    return self.answer(call, Answer::Nack(Err(NackError::TooFar { limit_ms })));
                }
            },
        };
        self.tokens(now, call, &queue, &tokens, &Verb::Nack(Lapse { how, again, priority, reason }));
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
            (None, Found::Ended(ended)) if ended.queue == queue => {
                let is_kept = self.is_kept(now, ended);
                answer_of_ended(ended.outcome, no, &verb, is_kept)
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
            (Verb::Nack(_), None) => Answer::Nack(Ok(answers)),
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
            At::Ended(outcome) => return answer_of_ended(*outcome, no, verb, true),
            _ if *verb == Verb::Ack && entry.task.acked() == Some(no) => return TokenAnswer::Acked,
            _ if entry.task.revoked == Some(no) => return TokenAnswer::Revoked,
            At::Leased(held) => held.no == no || crate::planted::is("ack-by-old-token"),
            // A crash gave the task back. The token of an earlier life still speaks for it, for nobody else got it since
            // and its owner left it as it was: either would have raised the fence.
            At::Far | At::Waiting(_) | At::Rewound if entry.is_dead() => false,
            At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. } => {
                no >= entry.task.lease_fence && no.epoch() < self.ownership.epoch
            }
        };
        if !speaks {
            return TokenAnswer::Expired;
        }
        match verb {
            Verb::Ack => {
                let next = self.entries.get(slot).task.next_moment();
                match next.filter(|_| !crate::planted::is("step-forgotten")).map(|moment| moment.at) {
                    Some(at) => {
                        self.count_event(queue, Event::Acked);
                        self.step_on(now, slot, no, at);
                    }
                    None => self.end(now, slot, Outcome::Done(no)),
                }
                TokenAnswer::Acked
            }
            Verb::Nack(lapse) => {
                self.count_event(queue, Event::Nacked);
                self.lease_ended(slot, now, lapse.clone());
                TokenAnswer::Nacked
            }
            Verb::Extend { .. } if !self.may_go_on(slot) => TokenAnswer::Expired,
            Verb::Extend { lease_ms } => {
                let lease_ms = self.lease_ms(&self.entries.get(slot).task, *lease_ms);
                self.extend(now, slot, no, lease_ms);
                TokenAnswer::Extended
            }
        }
    }

    /// The work of one instant of a timeline was done under this lease: the task waits for the next, with all its attempts before it.
    fn step_on(&mut self, now: Now, slot: Slot, no: LeaseNo, at: Timestamp) {
        self.unplace(slot);
        let fence = self.next_lease;
        self.record(slot, |task| {
            let extra = task.extra_mut();
            extra.step += 1;
            extra.acked = Some(no);
            extra.failures.clear();
            task.attempts = 0;
            task.due_at = at;
            task.lease_fence = fence;
            task.lease = None;
        });
        self.place(slot, now);
        self.back_from_worker(slot, now);
    }

    /// A task stands where nobody has it again. Its expiry may have passed while it was leased: then it is given up, and whoever waits does not
    /// get it; or it is still to come, for the clock has stepped back.
    pub(super) fn back_from_worker(&mut self, slot: Slot, now: Now) {
        let task = Arc::clone(&self.entries.get(slot).task);
        self.watch_expiry(&task);
        self.expire_one(slot, now);
    }

    /// Keeps a lease for longer; one of an earlier life is taken up again.
    fn extend(&mut self, now: Now, slot: Slot, no: LeaseNo, lease_ms: u64) {
        let (since, holder) = match &self.entries.get(slot).at {
            At::Leased(held) => (held.ready_since, self.holder(held.no)),
            At::Ready { since } => (*since, Holder::default()),
            _ => (now.wall, Holder::default()),
        };
        self.unplace(slot);
        let until = now.due_after(lease_ms).unwrap_or(Timestamp::MAX);
        self.hold(slot, no, since, until, holder, now);
        if self.stopping && self.failed.is_none() {
            // The look-up of its task came back after the others were written down.
            self.write_lease_down(slot);
        }
    }
}

/// What a token hears whose task has ended. The ack that ended it may be sent again, because its answer may have been lost.
fn answer_of_ended(outcome: Outcome, no: LeaseNo, verb: &Verb, is_kept: bool) -> TokenAnswer {
    match outcome {
        Outcome::Revoked(revoked) if revoked == no => TokenAnswer::Revoked,
        Outcome::Done(_) if *verb == Verb::Ack && is_kept && crate::planted::is("any-ack-of-done") => {
            TokenAnswer::Acked
        }
        Outcome::Done(acked) if *verb == Verb::Ack && is_kept && acked == no => TokenAnswer::Acked,
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Revoked(_) | Outcome::Forgotten => {
            TokenAnswer::Expired
        }
    }
}
