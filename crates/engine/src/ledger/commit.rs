//! Batches go to the store, one at a time, and their outcome comes back.

use std::sync::Arc;

use super::Ledger;
use super::batch::SealedBatch;
use crate::calls::Unavailable;
use crate::input::Effect;
use crate::seam::{Request, RequestId};
use crate::slot::Slot;
use crate::time::{Now, Seq};

/// The one commit on its way.
#[derive(Debug)]
pub(super) struct InFlight {
    request: RequestId,
    seq: Seq,
    slots: Vec<Slot>,
}

impl Ledger {
    /// Closes the current batch.
    pub(crate) fn seal(&mut self) {
        self.batch.seal(self.applied);
    }

    /// Hands the next batch over, unless one is in flight.
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
        let request = Request::Commit { ownership: self.ownership, seq, wall: now.wall, batch };
        let request = self.request(request, out);
        self.in_flight = Some(InFlight { request, seq, slots });
    }

    /// Whether `request` is the commit in flight.
    pub(crate) fn is_in_flight(&self, request: RequestId) -> bool {
        self.in_flight.as_ref().is_some_and(|commit| commit.request == request)
    }

    /// The commit in flight is durable. `room`: as in [`Reply::Done`](crate::Reply::Done). Returns the tasks that the commit touched, once
    /// for each batch that has an effect of them.
    pub(crate) fn committed(&mut self, now: Now, request: RequestId, room: u64) -> Vec<Slot> {
        let done = self.in_flight.take().expect("only a commit in flight is answered");
        assert_eq!(done.request, request, "commits are answered one by one");
        assert!(done.seq >= self.durable, "commit {} comes after {}", done.seq, self.durable);
        self.durable = done.seq;
        self.room.reported(room, self.batch.growth(), now);
        done.slots
    }

    /// Lets a failure take effect that was held back until the commit in flight had its outcome. The answers that rest on that commit leave
    /// first.
    pub(crate) fn end_failing(&mut self, out: &mut Vec<Effect>) {
        if let Some(why) = self.failing.take() {
            self.release_answers(out);
            self.fail(&why);
        }
    }

    /// Fails the ledger, but only after the commit in flight has its outcome.
    pub(crate) fn fail_after_commit(&mut self, why: &str) {
        if self.in_flight.is_some() {
            self.failing.get_or_insert_with(|| why.into());
        } else {
            self.fail(why);
        }
    }

    /// The store failed by itself. If a commit is in flight, its reply comes first and says that the store failed.
    pub(crate) fn store_failed(&mut self, why: &str) {
        if self.in_flight.is_none() {
            self.fail(why);
        }
    }

    /// The store takes no commit any more. The answers that wait for a commit have an unknown outcome, and nothing is changed from now on.
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
