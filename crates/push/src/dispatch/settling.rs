//! [`Settling`]: acks that wait a moment for others, because one commit for many is cheaper than one for each.

use tickwheel_queue::Token;

/// An ack waits for others at most this long (ms).
const WAIT_MS: u64 = 5;
/// This many acks do not wait for more.
const TOKENS_MAX: usize = 100;

/// The acks that wait.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    acks: Vec<Token>,
    /// When the acks are handed over (ms). Meaningful only if acks wait.
    due_ms: u64,
}

impl Settling {
    /// Adds an ack.
    pub(crate) fn add(&mut self, token: Token, now_ms: u64) {
        if self.acks.is_empty() {
            self.due_ms = now_ms.saturating_add(WAIT_MS);
        }
        self.acks.push(token);
    }

    /// Returns the acks if they have waited long enough, if they are enough, or if no other comes soon (`is_last`). Else returns none.
    pub(crate) fn take(&mut self, now_ms: u64, is_last: bool) -> Vec<Token> {
        if is_last || self.acks.len() >= TOKENS_MAX || now_ms >= self.due_ms {
            return std::mem::take(&mut self.acks);
        }
        Vec::new()
    }

    /// Returns when the acks are to be taken; `None`: none waits.
    pub(crate) fn next_wake(&self) -> Option<u64> {
        (!self.acks.is_empty()).then_some(self.due_ms)
    }
}
