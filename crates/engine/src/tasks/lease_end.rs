//! [`LeaseEnd`]: a lease ends without an ack, and the task is tried again or given up.

use core::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use super::Tasks;
use crate::calls::Due;
use crate::residence::{At, Slot};
use crate::task::{Death, Failed, Failure, LeaseNo, Task};
use crate::time::{Now, Timestamp};
use crate::token::Token;

/// How a lease ended without an ack, and what happens to its task next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeaseEnd {
    pub(crate) how: Failed,
    /// Why the task is given up at once. `None`: the task is tried again, unless its retry policy or its expiry gives it up.
    pub(crate) death: Option<Death>,
    /// When the task is due again, unless the task is given up.
    pub(crate) again: Retrying,
    /// The new priority of the task. `None`: the priority stays.
    pub(crate) priority: Option<u32>,
    /// The reason that the worker gave.
    pub(crate) reason: Option<Arc<str>>,
}

/// When a task is due again after its lease ended without an ack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Retrying {
    /// At once, in its old place in the line.
    AtOnce,
    /// As the retry policy for the task says: the task's own, else that of its queue's settings, else that of its queue's target, else the
    /// default. But no sooner than this (ms).
    ByPolicy { at_least_ms: u64 },
    /// At this instant.
    At(Timestamp),
}

impl LeaseEnd {
    /// The end of a lease that ran out.
    pub(crate) const EXPIRED: Self =
        Self { how: Failed::LeaseEnded, death: None, again: Retrying::AtOnce, priority: None, reason: None };
}

impl Tasks<'_> {
    /// Ends a lease without an ack, and counts the attempt. The task is then ready again, due again later, or dead.
    pub(crate) fn lease_ended(&mut self, slot: Slot, lease_end: LeaseEnd) {
        // The attempt and the death that follows from it have to be durable together. No crash may leave the attempt without the death.
        self.together(|tasks| tasks.count_attempt(slot, lease_end));
    }

    fn count_attempt(&mut self, slot: Slot, lease_end: LeaseEnd) {
        self.unplace(slot);
        let task = self.residence.task(slot);
        let attempts = task.attempts.saturating_add(1);
        let retry = self.dispatch.retry_of(task);
        let death = match task.expire_at() {
            _ if lease_end.death.is_some() => lease_end.death,
            _ if retry.max_attempts.is_some_and(|max| attempts >= max) => Some(Death::MaxAttempts),
            Some(at) if at <= self.now.falls_due() => Some(Death::Expired),
            _ => None,
        };
        let due_at = match death {
            Some(_) => None,
            None => self.due_again(task, attempts, lease_end.again),
        };
        self.renew(slot, |task, now, _| {
            fail(task, now, lease_end.how, lease_end.reason);
            if lease_end.how == Failed::Nacked {
                task.extra_mut().tally.delay_ms =
                    Some(due_at.map_or(0, |due_at| due_at.ms_since(now.latest())));
            }
            task.priority = lease_end.priority.unwrap_or(task.priority);
            task.attempts = attempts;
            if let Some(due_at) = due_at {
                task.due_at = due_at;
            }
        });
        if let Some(why) = death {
            return self.die(slot, why);
        }
        // The watch of the expiry may have been used up while the task was leased. If the clock has stepped back since, the expiry is still
        // to come.
        let task = Arc::clone(self.residence.task(slot));
        self.watch_expiry(&task);
        match due_at {
            // The task is ready at once, even if the wall clock has stepped back behind its due time.
            None => self.make_ready(slot, self.now.wall),
            Some(_) => self.place(slot),
        }
    }

    /// Returns when a task whose attempt failed is due again; `None`: the task is ready at once, and its due time stays.
    fn due_again(&self, task: &Task, attempts: u32, again: Retrying) -> Option<Timestamp> {
        let due_at = match again {
            Retrying::AtOnce => return None,
            Retrying::ByPolicy { at_least_ms } => {
                let backoff = self.dispatch.retry_of(task).backoff;
                let wait_ms = backoff.map_or(0, |backoff| backoff.wait_ms(attempts, self.chance(task)));
                let wait_ms = wait_ms.max(at_least_ms).min(self.config.farthest_ms);
                self.instant(Due::After { ms: Some(wait_ms).filter(|&ms| ms > 0)? })?
            }
            Retrying::At(due_at) => due_at,
        };
        // The task is due no later than its expiry, at which it is given up.
        Some(due_at.min(task.expire_at().unwrap_or(Timestamp::MAX)))
    }

    /// Returns a pseudo-random number for this attempt of this task. The number is the same each time it is computed.
    fn chance(&self, task: &Task) -> u64 {
        let mut hasher = SipHasher13::new_with_key(self.secret);
        hasher.write(b"backoff");
        hasher.write_u64(task.id);
        hasher.write_u64(task.lease_fence.0);
        hasher.finish()
    }

    /// Checks the expiry of a task that comes back from a worker. If the expiry passed while the task was leased, gives the task up, so
    /// that no waiting call gets it. If the clock has stepped back and the expiry is still to come, watches the expiry again.
    pub(crate) fn back_from_worker(&mut self, slot: Slot) {
        let task = Arc::clone(self.residence.task(slot));
        self.watch_expiry(&task);
        self.expire_one(slot);
    }

    /// Takes back deliveries that reached no worker: the tasks are ready again, and no attempt is counted. A task that has expired
    /// meanwhile is given up.
    pub(crate) fn take_back(&mut self, tokens: &[Token]) {
        for token in tokens {
            let Some((id, no)) = self.dispatch.verify(token) else { continue };
            let Some(slot) = self.residence.by_id(id) else { continue };
            let (since, paced) = match &self.residence.get(slot).at {
                At::Leased(lease) if lease.no == no => (lease.ready_since, lease.paced),
                _ => continue,
            };
            self.unplace(slot);
            self.make_ready(slot, since.min(self.now.wall));
            if paced {
                self.dispatch.put_token_back(self.residence.task(slot));
            }
            self.back_from_worker(slot);
        }
    }
}

/// Records in `task` that the owner revoked the lease `no`. Adds a failure, and counts the attempt.
pub(crate) fn revoke(task: &mut Task, now: Now, no: LeaseNo) {
    fail(task, now, Failed::Revoked, None);
    task.revoked = Some(no);
    task.attempts = task.attempts.saturating_add(1);
}

/// Adds a failure to the task's list, which keeps the last [`Failure::KEPT`] failures, and counts the failure.
fn fail(task: &mut Task, now: Now, how: Failed, reason: Option<Arc<str>>) {
    let attempt = task.attempts.saturating_add(1);
    let failures = &mut task.extra_mut().failures;
    if failures.len() >= Failure::KEPT {
        failures.remove(0);
    }
    failures.push(Failure { at: now.wall, attempt, how, reason });
    task.extra_mut().tally.count(how);
}
