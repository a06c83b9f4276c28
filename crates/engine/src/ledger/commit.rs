//! Sends batches to the store, one at a time, and takes in the outcome of each.

use std::sync::Arc;

use super::Ledger;
use super::batch::SealedBatch;
use crate::calls::Unavailable;
use crate::input::Effect;
use crate::residence::Slot;
use crate::seam::{Request, RequestId};
use crate::time::{Now, Seq};

/// The commit that the store has not answered yet. There is at most one.
#[derive(Debug)]
pub(super) struct InFlight {
    request: RequestId,
    seq: Seq,
    slots: Vec<Slot>,
}

impl Ledger {
    /// Seals the current batch.
    pub(crate) fn seal(&mut self) {
        self.batch.seal(self.applied);
    }

    /// Seals the current batch, and sends the oldest sealed batch to the store. Does nothing while a commit is in flight, or once the
    /// engine takes no changes. With nothing to commit, sends an empty batch if the store is to be asked for its room.
    pub(crate) fn commit(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.in_flight.is_some() || !self.takes_changes() {
            return;
        }
        if self.batch.notes_time() {
            self.next_seq();
        }
        self.seal();
        let asks = self.room.take_question();
        let sealed = self.batch.next_sealed().or_else(|| asks.then(|| SealedBatch::nothing(self.durable)));
        let Some(sealed) = sealed else { return };
        let SealedBatch { batch, slots, seq, growth } = sealed;
        self.room.reserve(growth);
        let request = Request::Commit { ownership: self.ownership, seq, wall: now.falls_due(), batch };
        let request = self.request(request, out);
        self.in_flight = Some(InFlight { request, seq, slots });
    }

    /// Whether `request` is the commit in flight.
    pub(crate) fn is_in_flight(&self, request: RequestId) -> bool {
        self.in_flight.as_ref().is_some_and(|commit| commit.request == request)
    }

    /// Notes that the commit in flight is durable. `room`: as in [`Reply::Done`](crate::Reply::Done) (bytes); `None`: the
    /// store cannot grow for want of a file descriptor. Returns the entries that the commit touched, one for each effect on a task.
    pub(crate) fn committed(&mut self, now: Now, request: RequestId, room: Option<u64>) -> Vec<Slot> {
        let done = self.in_flight.take().expect("only a commit in flight is answered");
        assert_eq!(done.request, request, "commits are answered one by one");
        assert!(done.seq >= self.durable, "commit {} comes after {}", done.seq, self.durable);
        self.durable = done.seq;
        self.commits += 1;
        self.room.reported(room, self.batch.growth(), now);
        done.slots
    }

    /// Fails the ledger if a failure was held back until the commit in flight had its outcome. The answers that wait for this commit leave
    /// first.
    pub(crate) fn end_failing(&mut self, out: &mut Vec<Effect>) {
        if let Some(why) = self.failing.take() {
            self.release_answers(out);
            self.fail(&why);
        }
    }

    /// Fails the ledger at once, or after the outcome of the commit in flight if there is one.
    pub(crate) fn fail_after_commit(&mut self, why: &str) {
        if self.in_flight.is_some() {
            self.failing.get_or_insert_with(|| why.into());
        } else {
            self.fail(why);
        }
    }

    /// Fails the ledger, because the store failed by itself. While a commit is in flight, does nothing, because the reply to the commit
    /// says whether the commit is durable.
    pub(crate) fn store_failed(&mut self, why: &str) {
        if self.in_flight.is_none() {
            self.fail(why);
        }
    }

    /// Fails the ledger: the store takes no commit any more, and the engine makes no more changes. Does nothing if the ledger has failed
    /// before. Each answer that waits for a commit is replaced by [`Unavailable::Indeterminate`], because its outcome is unknown.
    pub(crate) fn fail(&mut self, why: &str) {
        if self.failed.is_some() {
            return;
        }
        let why: Arc<str> = why.into();
        self.failing = None;
        self.failed = Some(Arc::clone(&why));
        self.in_flight = None;
        for (call, answer) in self.barrier.take_all() {
            let unknown = Unavailable::Indeterminate { why: Arc::clone(&why) };
            self.answer(call, answer.unavailable(unknown));
        }
    }
}
