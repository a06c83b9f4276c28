//! [`CommitBarrier`]: answers wait here for the commit that covers what they saw.

use std::collections::VecDeque;

use crate::calls::Answer;
use crate::input::{CallId, Effect};
use crate::time::Seq;

/// Holds each answer until everything that had been applied when it was made is durable. One queue is enough: what was
/// applied only grows, so answers leave in the order they were made. Deliveries of tasks whose records are durable pass the others: what else
/// had been applied says nothing of them.
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

    /// Adds an answer that rests on nothing but what is durable.
    pub(super) fn pass(&mut self, call: CallId, answer: Answer) {
        self.passing.push((call, answer));
    }

    /// Lets out what `durable` covers.
    pub(super) fn release(&mut self, durable: Seq, out: &mut Vec<Effect>) {
        out.extend(self.passing.drain(..).map(|(call, answer)| Effect::Answer { call, answer }));
        while let Some((_, call, answer)) = self.waiting.pop_front_if(|(seen, ..)| *seen <= durable) {
            out.push(Effect::Answer { call, answer });
        }
    }

    /// All that is left, once no commit will come any more.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (CallId, Answer)> + use<> {
        core::mem::take(&mut self.waiting).into_iter().map(|(_, call, answer)| (call, answer))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.passing.is_empty()
    }
}
