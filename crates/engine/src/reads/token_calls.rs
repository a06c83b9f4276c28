//! [`TokenCall`]: a call with lease tokens. The tasks of some of its tokens may have to be looked up.

use crate::calls::{Answer, NackError, TokenAnswer, Unavailable};
use crate::name::QueueName;
use crate::task::LeaseNo;
use crate::tasks::LeaseEnd;

/// The operation that a worker asks for on its leases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Ack,
    Nack(LeaseEnd),
    Extend { lease_ms: Option<u64> },
}

/// A call with lease tokens, and the answers to its tokens so far.
#[derive(Debug)]
pub(crate) struct TokenCall {
    pub(crate) verb: Verb,
    pub(crate) queue: QueueName,
    /// The answer to each token, in the order of the tokens. A token that is not decided yet has the answer `Expired`.
    pub(crate) answers: Vec<TokenAnswer>,
    /// The tokens whose tasks have to be looked up: the index of the token, the id of the task, and the lease.
    pub(crate) looked_up: Vec<(usize, u64, LeaseNo)>,
}

impl TokenCall {
    /// Returns the answer to the call. With `why`, the call gets this error instead of the answers: the engine takes no changes any more,
    /// so the outcome is not known.
    pub(crate) fn answer(self, why: Option<Unavailable>) -> Answer {
        debug_assert!(why.is_some() || self.looked_up.is_empty(), "all tokens are decided");
        let answers = why.map_or(Ok(self.answers), Err);
        match self.verb {
            Verb::Ack => Answer::Ack(answers),
            Verb::Nack(_) => Answer::Nack(answers.map_err(NackError::from)),
            Verb::Extend { .. } => Answer::Extend(answers),
        }
    }
}
