//! Ack, nack and extend: what a worker does with its leases, named by their tokens.

use std::sync::Arc;

use crate::calls::{Due, Nack, NackError, NackHow, TokenAnswer, Unavailable, Undeliverable};
use crate::dispatch::{BegunLease, Holder};
use crate::figures::Event;
use crate::input::CallId;
use crate::reads::{TokenCall, Verb};
use crate::residence::{At, Slot};
use crate::seam::Found;
use crate::task::{Death, Failed, LeaseNo, Outcome};
use crate::tasks::{LeaseEnd, Retrying, Tasks};
use crate::time::Timestamp;

impl Tasks<'_> {
    /// Translates a nack into the verb that ends its leases.
    ///
    /// # Errors
    /// [`NackError::TooFar`]: the delay, or the least wait, is longer than the limit.
    pub(crate) fn nack(&self, nack: &Nack) -> Result<Verb, NackError> {
        let instant = |ms| {
            let too_far = NackError::TooFar { limit_ms: self.config.farthest_ms };
            self.instant(Due::After { ms }).ok_or(too_far)
        };
        let (how, again) = match (nack.how, nack.delay_ms) {
            (NackHow::Gone, _) => (Failed::Gone, Retrying::AtOnce),
            (NackHow::Buried, _) => (Failed::Buried, Retrying::AtOnce),
            (NackHow::Undeliverable(Undeliverable::Exhausted), _) => (Failed::Nacked, Retrying::AtOnce),
            (NackHow::Undeliverable(_), _) => (Failed::Undeliverable, Retrying::AtOnce),
            (NackHow::Returned, None) => {
                let at_least_ms = nack.at_least_ms.unwrap_or(0);
                if at_least_ms > 0 {
                    instant(at_least_ms)?;
                }
                (Failed::Nacked, Retrying::ByPolicy { at_least_ms })
            }
            (NackHow::Returned, Some(0)) => (Failed::Nacked, Retrying::AtOnce),
            (NackHow::Returned, Some(ms)) => (Failed::Nacked, Retrying::At(instant(ms)?)),
        };
        let death = match nack.how {
            NackHow::Returned | NackHow::Gone => None,
            NackHow::Buried => Some(Death::Buried),
            NackHow::Undeliverable(Undeliverable::Refused) => Some(Death::Refused),
            NackHow::Undeliverable(Undeliverable::Template) => Some(Death::Template),
            NackHow::Undeliverable(Undeliverable::TooLarge) => Some(Death::TooLarge),
            NackHow::Undeliverable(Undeliverable::Exhausted) => Some(Death::MaxAttempts),
        };
        let reason = nack.reason.clone();
        Ok(Verb::Nack(LeaseEnd { how, death, again, priority: nack.priority, reason }))
    }

    pub(crate) fn decide_token(&mut self, slot: Slot, no: LeaseNo, call: &TokenCall) -> TokenAnswer {
        let TokenCall { queue, verb, .. } = call;
        let entry = self.residence.get(slot);
        if entry.task.queue != *queue {
            return TokenAnswer::Expired;
        }
        let speaks = match &entry.at {
            At::Ended(outcome) => return answer_of_ended(*outcome, no, verb, true),
            _ if *verb == Verb::Ack && entry.task.acked() == Some(no) => return TokenAnswer::Acked,
            _ if entry.task.revoked == Some(no) => return TokenAnswer::Revoked,
            At::Leased(lease) => lease.no == no,
            At::Far | At::Waiting(_) | At::Rewound if entry.is_dead() => false,
            // After a crash, the engine does not know which worker had the task. A token of an earlier epoch is valid if its number is not
            // below the fence. A later delivery, the end of the lease or a change by the task's owner would have raised the fence.
            At::Far | At::Waiting(_) | At::Rewound | At::Ready { .. } => {
                no >= entry.task.lease_fence && no.epoch() < self.ledger.ownership().epoch
            }
        };
        if !speaks {
            return TokenAnswer::Expired;
        }
        match verb {
            Verb::Ack => {
                let next = self.residence.task(slot).next_moment();
                match next.map(|moment| moment.at) {
                    Some(at) => {
                        self.dispatch.count(self.ledger, queue, Event::Acked);
                        self.step_on(slot, no, at);
                    }
                    None => self.end(slot, Outcome::Done(no)),
                }
                TokenAnswer::Acked
            }
            Verb::Nack(lease_end) => {
                self.dispatch.count(self.ledger, queue, Event::Nacked);
                self.lease_ended(slot, lease_end.clone());
                TokenAnswer::Nacked
            }
            Verb::Extend { .. } if !self.dispatch.may_go_on(self.residence, slot) => TokenAnswer::Expired,
            Verb::Extend { lease_ms } => {
                let lease_ms = self.dispatch.lease_ms(self.residence.task(slot), *lease_ms);
                self.extend(slot, no, lease_ms);
                TokenAnswer::Extended
            }
        }
    }

    /// Takes in that the work of one instant of a timeline was acked under this lease. The task waits for the next instant (`at`), and its
    /// attempts start at 0 again.
    fn step_on(&mut self, slot: Slot, no: LeaseNo, at: Timestamp) {
        self.unplace(slot);
        self.renew(slot, |task, _, _| {
            let extra = task.extra_mut();
            extra.step += 1;
            extra.acked = Some(no);
            extra.failures.clear();
            task.attempts = 0;
            task.due_at = at;
        });
        self.place(slot);
        self.back_from_worker(slot);
    }

    /// Lets a lease end `lease_ms` from now. A lease of an earlier epoch becomes a running lease again.
    fn extend(&mut self, slot: Slot, no: LeaseNo, lease_ms: u64) {
        let (since, holder) = match &self.residence.get(slot).at {
            At::Leased(lease) => (lease.ready_since, self.dispatch.leases().holder(lease.no)),
            At::Ready { since } => (*since, Holder::default()),
            _ => (self.now.wall, Holder::default()),
        };
        self.unplace(slot);
        let until = self.now.due_after(lease_ms).unwrap_or(Timestamp::MAX);
        let begun = BegunLease { no, ready_since: since, until, holder };
        self.dispatch.begin_lease(self.residence, slot, begun, self.now);
        if self.ledger.is_stopping() && !self.ledger.has_failed() {
            // The look-up of this task returned after the stop had written the other leases down. So this lease is written down now.
            self.write_lease_down(slot);
        }
    }

    /// Decides one token of a call after the store was asked for the token's task, and evicts the task if the task was loaded for the
    /// token.
    pub(crate) fn decide_found(
        &mut self,
        call: &TokenCall,
        id: u64,
        no: LeaseNo,
        found: &Found,
    ) -> TokenAnswer {
        let known = self.residence.by_id(id);
        let loaded = match (found, known) {
            (Found::Live(task), None) => self.load(Arc::clone(task)),
            (Found::Live(_), Some(_)) | (Found::Ended(_) | Found::Absent, _) => None,
        };
        let slot = known.or(loaded);
        let answer = match (slot, found) {
            (Some(_), _) if !self.ledger.takes_changes() => TokenAnswer::Expired,
            (Some(slot), _) => self.decide_token(slot, no, call),
            (None, Found::Ended(ended)) if ended.queue == call.queue => {
                let is_kept = self.is_kept(ended);
                answer_of_ended(ended.outcome, no, &call.verb, is_kept)
            }
            (None, _) => TokenAnswer::Expired,
        };
        if let Some(slot) = loaded {
            self.evict(slot);
        }
        answer
    }

    /// Answers a call whose tokens are all decided.
    pub(crate) fn answer_tokens(&mut self, call: CallId, pending: TokenCall) {
        let why = self.ledger.refuses_changes().map(|why| Unavailable::Indeterminate { why });
        self.ledger.answer(call, pending.answer(why));
    }
}

/// Returns the answer to a token of a task that has ended. The worker may send the ack that ended the task again, because the first answer
/// may have been lost.
fn answer_of_ended(outcome: Outcome, no: LeaseNo, verb: &Verb, is_kept: bool) -> TokenAnswer {
    match outcome {
        Outcome::Revoked(revoked) if revoked == no => TokenAnswer::Revoked,
        Outcome::Done(acked) if *verb == Verb::Ack && is_kept && acked == no => TokenAnswer::Acked,
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Revoked(_) | Outcome::Forgotten => {
            TokenAnswer::Expired
        }
    }
}
