//! Acks, nacks and extensions: calls by lease token.

use core::time::Duration;
use std::sync::Arc;

use super::put::ms_up;
use super::unavailable::Unavailable;
use crate::name::QueueName;
use crate::token::Token;

/// Ends tasks: their work is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
}

/// Gives leases back. The attempt counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nack {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
    /// Why they come back.
    pub how: NackHow,
    /// The time until the tasks are due again (ms); 0: ready at once, in the old place. `None`: as the task's retry policy says; without a
    /// policy the task is ready at once, too. The delay does not count if the worker went away (the task is ready at once) or gave the task
    /// up.
    pub delay_ms: Option<u64>,
    /// Another priority; `None`: as it was.
    pub priority: Option<u32>,
    /// The reason of the failure, for users that look at the task later.
    pub reason: Option<Arc<str>>,
}

/// Why a lease comes back.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum NackHow {
    /// The worker gives the task back.
    #[default]
    Returned,
    /// The worker is gone, for example because its connection closed.
    Gone,
    /// The worker gives the task up: it is dead until a caller redrives or cancels it.
    Buried,
}

/// Keeps leases for longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extend {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
    /// The time from now until the leases end (ms). `None`: as each task says, else as its queue's settings say, else
    /// [`LEASE_MS_DEFAULT`](crate::LEASE_MS_DEFAULT).
    pub lease_ms: Option<u64>,
}

impl Ack {
    /// Acks these leases.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>) -> Self {
        Self { queue: queue.clone(), tokens: tokens.into_iter().collect() }
    }
}

impl Nack {
    /// Gives these leases back, ready at once.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>) -> Self {
        Self {
            queue: queue.clone(),
            tokens: tokens.into_iter().collect(),
            how: NackHow::Returned,
            delay_ms: None,
            priority: None,
            reason: None,
        }
    }

    /// Gives the tasks up.
    #[must_use]
    pub fn buried(self) -> Self {
        Self { how: NackHow::Buried, ..self }
    }

    /// Ready again after this time, rounded up to the millisecond.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay_ms: Some(ms_up(delay)), ..self }
    }
}

impl Extend {
    /// Keeps these leases for this time from now, rounded up to the millisecond.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>, lease: Duration) -> Self {
        Self { queue: queue.clone(), tokens: tokens.into_iter().collect(), lease_ms: Some(ms_up(lease)) }
    }
}

/// The result for one token.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TokenAnswer {
    /// The task is done, or this instant of its timeline. A second ack of the token is told the same while that is remembered.
    Acked,
    /// The task is given back.
    Nacked,
    /// The lease goes on.
    Extended,
    /// The lease had ended, or never was.
    Expired,
    /// The owner took the task back.
    Revoked,
}

/// Why a nack was refused as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NackError {
    /// Due later than allowed.
    #[error("the task would be due more than {limit_ms} ms ahead")]
    TooFar {
        /// The farthest allowed, milliseconds from now.
        limit_ms: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
