//! [`TokenCall`]: a call with lease tokens that waits for the look-up of some of its tasks.

use super::Reads;
use crate::calls::{Answer, NackError, TokenAnswer, Unavailable};
use crate::input::CallId;
use crate::lease_end::LeaseEnd;
use crate::name::QueueName;

/// The operation that a worker asks for on its leases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Ack,
    Nack(LeaseEnd),
    Extend { lease_ms: Option<u64> },
}

/// A call with some tokens that are not decided yet, because their tasks have to be looked up.
#[derive(Debug)]
pub(crate) struct TokenCall {
    pub(crate) verb: Verb,
    pub(crate) queue: QueueName,
    answers: Vec<Option<TokenAnswer>>,
    undecided: usize,
}

impl TokenCall {
    pub(crate) fn unavailable(&self, why: Unavailable) -> Answer {
        match self.verb {
            Verb::Ack => Answer::Ack(Err(why)),
            Verb::Nack(_) => Answer::Nack(Err(NackError::Unavailable(why))),
            Verb::Extend { .. } => Answer::Extend(Err(why)),
        }
    }

    /// A call without any decided token.
    pub(crate) fn new(queue: QueueName, verb: Verb, tokens: usize) -> Self {
        Self { verb, queue, answers: Vec::with_capacity(tokens), undecided: 0 }
    }

    /// The next token is decided, or its task is looked up.
    pub(crate) fn push(&mut self, answer: Option<TokenAnswer>) {
        self.undecided += usize::from(answer.is_none());
        self.answers.push(answer);
    }

    /// Whether all tokens are decided.
    pub(crate) fn is_decided(&self) -> bool {
        self.undecided == 0
    }

    /// The answer to the call. All tokens must be decided.
    pub(crate) fn answer(&self) -> Answer {
        let answers = self.answers.iter().map(|answer| answer.expect("all tokens are decided")).collect();
        match &self.verb {
            Verb::Ack => Answer::Ack(Ok(answers)),
            Verb::Nack(_) => Answer::Nack(Ok(answers)),
            Verb::Extend { .. } => Answer::Extend(Ok(answers)),
        }
    }
}

impl Reads {
    /// A call waits for the tasks of some of its tokens.
    pub(crate) fn wait_for_tokens(&mut self, call: CallId, pending: TokenCall) {
        self.token_calls.insert(call, pending);
    }

    /// The call that waits.
    pub(crate) fn token_call(&self, call: CallId) -> Option<&TokenCall> {
        self.token_calls.get(&call)
    }

    /// Decides one more token of a call that waits. Returns the call if that was the last token.
    pub(crate) fn token_decided(
        &mut self,
        call: CallId,
        index: usize,
        answer: TokenAnswer,
    ) -> Option<TokenCall> {
        let pending = self.token_calls.get_mut(&call)?;
        pending.answers[index] = Some(answer);
        pending.undecided -= 1;
        if pending.is_decided() { self.token_calls.remove(&call) } else { None }
    }
}
