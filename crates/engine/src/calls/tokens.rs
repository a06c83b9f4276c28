//! Calls by lease token: ack, nack and extend.

use core::time::Duration;
use std::sync::Arc;

use super::put::ms_up;
use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::token::Token;

/// Acks leases: the work of their tasks is done. The task ends, or goes on to the next instant of its timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The queue that the tasks were leased from.
    pub queue: QueueName,
    /// The tokens of the leases.
    pub tokens: Vec<Token>,
}

/// Gives leases back without an ack. Each lease counts as an attempt of its task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nack {
    /// The queue that the tasks were leased from.
    pub queue: QueueName,
    /// The tokens of the leases.
    pub tokens: Vec<Token>,
    /// Why the leases are given back.
    pub how: NackHow,
    /// The time until the tasks are due again (ms); 0: each task is ready at once, in its old place in the line. `None`: as the retry
    /// policy of the task, or else of its queue, says; without a policy the task is ready at once. The delay is ignored if `how` says that
    /// the worker is gone (the task is ready at once) or gives the task up.
    pub delay_ms: Option<u64>,
    /// The least time until the tasks are due again (ms), if `delay_ms` is `None`: the tasks wait as the retry policy says, but at least this
    /// long; without a policy, this long. Ignored if `delay_ms` names a time, or if `how` makes `delay_ms` be ignored.
    pub at_least_ms: Option<u64>,
    /// The new priority of the tasks; `None`: the priority stays.
    pub priority: Option<u32>,
    /// The reason of the failure, for users that look at the task later.
    pub reason: Option<Arc<str>>,
}

/// Why a lease is given back.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum NackHow {
    /// The worker gives the task back.
    #[default]
    Returned,
    /// The worker is gone, for example because its connection closed.
    Gone,
    /// The worker gives the task up: it is dead until a caller redrives or cancels it.
    Buried,
    /// The task cannot be delivered to its target: it is dead at once, for this reason, and is forgotten like a task whose attempts are used
    /// up.
    Undeliverable(Undeliverable),
}

/// Why a task can never be delivered to the target of its queue, so that no further attempt makes sense.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Undeliverable {
    /// The target refused the task for good.
    Refused,
    /// The template of the target cannot be filled with the values of the task.
    Template,
    /// The payload of the task is larger than the target takes.
    TooLarge,
    /// The task was tried as often as its policy allows, under this one lease. The death is that of a task without attempts left.
    Exhausted,
}

/// Gives running leases a new end, counted from now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extend {
    /// The queue that the tasks were leased from.
    pub queue: QueueName,
    /// The tokens of the leases.
    pub tokens: Vec<Token>,
    /// The time from now until the leases end (ms). `None`: as each task says, else as its queue's settings say, else
    /// [`LEASE_MS_DEFAULT`](crate::LEASE_MS_DEFAULT).
    pub lease_ms: Option<u64>,
}

impl Ack {
    /// Makes an ack of these leases.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>) -> Self {
        Self { queue: queue.clone(), tokens: tokens.into_iter().collect() }
    }
}

impl Nack {
    /// Makes a nack of these leases. Each task is due again as its retry policy says.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>) -> Self {
        Self {
            queue: queue.clone(),
            tokens: tokens.into_iter().collect(),
            how: NackHow::Returned,
            delay_ms: None,
            at_least_ms: None,
            priority: None,
            reason: None,
        }
    }

    /// Makes the nack give the tasks up.
    #[must_use]
    pub fn buried(self) -> Self {
        Self { how: NackHow::Buried, ..self }
    }

    /// Makes the nack give the tasks up, because their target will never take them.
    #[must_use]
    pub fn undeliverable(self, why: Undeliverable) -> Self {
        Self { how: NackHow::Undeliverable(why), ..self }
    }

    /// Makes the tasks wait at least this long, rounded up to a whole millisecond, where their retry policy says a shorter time or none.
    #[must_use]
    pub fn at_least(self, wait: Duration) -> Self {
        Self { at_least_ms: Some(ms_up(wait)), ..self }
    }

    /// Makes the tasks due again after this time, rounded up to a whole millisecond.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay_ms: Some(ms_up(delay)), ..self }
    }
}

impl Extend {
    /// Makes a call that lets these leases end this long after the call is received, rounded up to a whole millisecond.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>, lease: Duration) -> Self {
        Self { queue: queue.clone(), tokens: tokens.into_iter().collect(), lease_ms: Some(ms_up(lease)) }
    }
}

/// The answer for one token.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TokenAnswer {
    /// The task is done, or the present instant of its timeline is done. A second ack with the same token gets this answer, too, while the
    /// engine remembers the first ack.
    Acked,
    /// The lease was given back.
    Nacked,
    /// The lease runs until its new end.
    Extended,
    /// The token is not valid for this queue: its lease has ended, or never existed. An extension after a crash also gets this answer while
    /// the limits of the queue allow no more leased tasks.
    Expired,
    /// The owner took the task from the worker.
    Revoked,
}

/// Why a nack was refused as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NackError {
    /// The tasks would be due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest due time allowed (ms from now).
        limit_ms: u64,
    },
    /// The engine cannot do the call now. The caller made no mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
