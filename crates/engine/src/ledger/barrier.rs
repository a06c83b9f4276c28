//! [`CommitBarrier`]: answers wait here for the commit that covers the state that they saw.

use std::collections::VecDeque;

use crate::calls::Answer;
use crate::input::{CallId, Effect};
use crate::time::Seq;

/// Holds each answer until all changes that had been applied when it was made are durable. One queue is enough: the number of the last
/// applied change only grows, so answers leave in the order in which they were made. Deliveries of tasks with durable records pass the
/// others: the other applied changes do not concern these tasks.
#[derive(Debug, Default)]
pub(super) struct CommitBarrier {
    waiting: VecDeque<(Seq, CallId, Answer)>,
    passing: Vec<(CallId, Answer)>,
}

impl CommitBarrier {
    /// Adds an answer that saw the state up to `seen`.
    pub(super) fn hold(&mut self, seen: Seq, call: CallId, answer: Answer) {
        assert!(
            self.waiting.back().is_none_or(|&(last, ..)| last <= seen),
            "what an answer saw never goes back: {seen} after {:?}",
            self.waiting.back().map(|&(last, ..)| last)
        );
        self.waiting.push_back((seen, call, answer));
    }

    /// Adds an answer that rests on durable changes only.
    pub(super) fn pass(&mut self, call: CallId, answer: Answer) {
        self.passing.push((call, answer));
    }

    /// Lets out the answers that `durable` covers.
    pub(super) fn release(&mut self, durable: Seq, out: &mut Vec<Effect>) {
        out.extend(self.passing.drain(..).map(|(call, answer)| Effect::Answer { call, answer }));
        while let Some((_, call, answer)) = self.waiting.pop_front_if(|(seen, ..)| *seen <= durable) {
            out.push(Effect::Answer { call, answer });
        }
    }

    /// Takes all answers that still wait, once no commit will come any more.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (CallId, Answer)> + use<> {
        core::mem::take(&mut self.waiting).into_iter().map(|(_, call, answer)| (call, answer))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.passing.is_empty()
    }
}
