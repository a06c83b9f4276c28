//! [`CommitBarrier`]: holds answers until the changes that the answers depend on are durable.

use std::collections::VecDeque;

use crate::calls::Answer;
use crate::input::{CallId, Effect};
use crate::time::Seq;

/// Holds each answer until all changes that had been applied before the answer was made are durable. One queue is enough: the seq of the
/// last applied change only grows, so the answers leave in the order in which they were made. Deliveries of tasks with durable records pass
/// the other answers, because the changes that are not durable yet do not concern these tasks.
#[derive(Debug, Default)]
pub(super) struct CommitBarrier {
    waiting: VecDeque<(Seq, CallId, Answer)>,
    passing: Vec<(CallId, Answer)>,
}

impl CommitBarrier {
    /// Adds an answer that depends on all changes up to `seen`.
    pub(super) fn hold(&mut self, seen: Seq, call: CallId, answer: Answer) {
        assert!(
            self.waiting.back().is_none_or(|&(last, ..)| last <= seen),
            "what an answer saw never goes back: {seen} after {:?}",
            self.waiting.back().map(|&(last, ..)| last)
        );
        self.waiting.push_back((seen, call, answer));
    }

    /// Adds an answer that depends on durable changes only.
    pub(super) fn pass(&mut self, call: CallId, answer: Answer) {
        self.passing.push((call, answer));
    }

    /// Lets out the answers that depend on no change after `durable`, and all answers that [`pass`](Self::pass) added.
    pub(super) fn release(&mut self, durable: Seq, out: &mut Vec<Effect>) {
        out.extend(self.passing.drain(..).map(|(call, answer)| Effect::Answer { call, answer }));
        while let Some((_, call, answer)) = self.waiting.pop_front_if(|(seen, ..)| *seen <= durable) {
            out.push(Effect::Answer { call, answer });
        }
    }

    /// Takes out all answers that [`hold`](Self::hold) added and that have not left, because no commit will follow any more.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (CallId, Answer)> + use<> {
        core::mem::take(&mut self.waiting).into_iter().map(|(_, call, answer)| (call, answer))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.passing.is_empty()
    }
}
