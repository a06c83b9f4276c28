//! Batches go to the store, and what becomes durable leaves: answers to callers, entries from memory.

use std::sync::Arc;

use super::Engine;
use super::entries::{At, Slot};
use super::filling::Sealed;
use crate::calls::{Answer, Unavailable};
use crate::input::Effect;
use crate::seam::{Reply, Request, RequestId};
use crate::time::{Now, Seq};

/// The one commit on its way.
#[derive(Debug)]
pub(super) struct InFlight {
    request: RequestId,
    seq: Seq,
    slots: Vec<Slot>,
}

impl Engine {
    /// Closes the batch that fills.
    pub(super) fn seal(&mut self) {
        for slot in self.filling.seal(self.applied) {
            self.entries.get_mut(slot).body_sealed = true;
        }
    }

    /// Hands the next batch over, unless one is in flight.
    pub(super) fn commit(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.in_flight.is_some() || self.failed.is_some() || self.failing.is_some() {
            return;
        }
        if self.filling.notes_time() {
            self.next_seq();
        }
        self.seal();
        let asks = core::mem::take(&mut self.ask_room);
        let sealed = self.filling.next_sealed().or_else(|| asks.then(|| Sealed::nothing(self.durable)));
        let Some(sealed) = sealed else { return };
        let request = Request::Commit {
            ownership: self.ownership,
            seq: sealed.seq,
            wall: now.wall,
            batch: sealed.batch,
        };
        self.room = self.room.saturating_sub(sealed.growth);
        let request = self.request(request, out);
        self.in_flight = Some(InFlight { request, seq: sealed.seq, slots: sealed.slots });
    }

    pub(super) fn store_replied(
        &mut self,
        now: Now,
        request: RequestId,
        reply: Reply,
        out: &mut Vec<Effect>,
    ) {
        match reply {
            Reply::Found(found) => self.looked_up(now, request, found),
            Reply::Page(page) if self.lists.has_asked(request) => self.listed(now, request, page),
            Reply::Page(page) => {
                assert_eq!(
                    self.window.request(),
                    Some(request),
                    "a page answers a list or the scan under way"
                );
                self.scanned(now, page, out);
            }
            Reply::Counts { counts, counted } => self.counted(request, counts, counted, out),
            Reply::Done { room } => self.committed(now, request, room, out),
            Reply::Failed { why } => self.request_failed(now, request, &why),
            Reply::Acquired(_) | Reply::AcquiredPage(_) | Reply::Held | Reply::Fenced | Reply::Released => {
                unreachable!("the driver takes, loses and releases the shard, not the machine: {reply:?}")
            }
        }
    }

    fn committed(&mut self, now: Now, request: RequestId, room: u64, out: &mut Vec<Effect>) {
        let done = self.in_flight.take().expect("only a commit in flight is answered");
        assert_eq!(done.request, request, "commits are answered one by one");
        assert!(done.seq >= self.durable, "commit {} comes after {}", done.seq, self.durable);
        self.durable = done.seq;
        self.room = room;
        self.shortage.told(self.room_left(), now);
        for slot in done.slots {
            self.settle(slot, now);
        }
        self.schedules.settle();
        if let Some(why) = self.failing.take() {
            self.gate.release(self.durable, out);
            self.fail(&why);
        }
    }

    /// The store failed to do what `request` asked. Whoever waited for that hears of it.
    fn request_failed(&mut self, now: Now, request: RequestId, why: &str) {
        if self.in_flight.as_ref().is_some_and(|commit| commit.request == request) {
            return self.fail(why);
        }
        let why = self.refuses_changes().unwrap_or_else(|| why.into());
        self.fail_after_commit(&why);
        if self.lookups.has_asked(request) {
            self.look_up_failed(now, request, &why);
        } else if self.lists.has_asked(request) {
            self.list_failed(now, request, &why);
        } else if self.forecasts.has_asked(request) {
            self.count_failed(request, &why);
        } else {
            assert_eq!(self.window.request(), Some(request), "a failure answers a request under way");
            self.scan_failed();
            self.retire(now);
        }
    }

    /// An effect of this entry is durable. If it was the last one, the entry may leave memory.
    fn settle(&mut self, slot: Slot, now: Now) {
        if !self.entries.has(slot) {
            return;
        }
        let durable = self.durable;
        let entry = self.entries.get_mut(slot);
        if entry.dirty.is_some_and(|seq| seq > durable) {
            return;
        }
        entry.dirty = None;
        let may_stay = matches!(entry.at, At::Waiting(_) | At::Rewound | At::Ready { .. } | At::Leased(_));
        if !may_stay || entry.bulky || self.is_full() {
            self.let_go(slot, now);
        }
    }

    /// Fails, but first learns what the commit in flight has come to.
    pub(super) fn fail_after_commit(&mut self, why: &str) {
        if self.in_flight.is_some() {
            self.failing.get_or_insert_with(|| why.into());
        } else {
            self.fail(why);
        }
    }

    /// The store takes no commit any more. What waits for one has an unknown outcome, and nothing is changed from now on.
    pub(super) fn fail(&mut self, why: &str) {
        if self.failed.is_some() {
            return;
        }
        let why: Arc<str> = why.into();
        self.failing = None;
        self.failed = Some(Arc::clone(&why));
        self.in_flight = None;
        let waiting: Vec<_> = self.gate.take_all().collect();
        for (call, answer) in waiting {
            let unknown = Unavailable::Indeterminate { why: Arc::clone(&why) };
            self.answer(call, answer.unavailable(unknown));
        }
        while let Some(call) = self.queues.first_waiting() {
            self.queues.end_wait(call);
            self.answer(call, Answer::Lease(Err(Unavailable::ReadOnly { why: Arc::clone(&why) })));
        }
    }

    pub(super) fn refusal_of_changes(&self) -> Option<Unavailable> {
        self.refuses_changes().map(|why| Unavailable::ReadOnly { why })
    }

    /// Why nothing is changed any more.
    pub(super) fn refuses_changes(&self) -> Option<Arc<str>> {
        self.failed.clone().or_else(|| self.failing.clone())
    }

    /// Whether the store is still to answer a read. What such a read says may be older than what memory knows, so entries
    /// stay until then.
    pub(super) fn reads_under_way(&self) -> bool {
        self.oldest_read().is_some()
    }

    fn oldest_read(&self) -> Option<RequestId> {
        // Not the forecasts: what they count is not compared with what memory knows.
        [self.lookups.oldest(), self.lists.oldest(), self.window.request()].into_iter().flatten().min()
    }

    /// Keeps a durable entry until every read under way is answered.
    pub(super) fn linger(&mut self, slot: Slot) {
        let last = RequestId(self.next_request);
        self.entries.get_mut(slot).lingers = Some(last);
        self.lingering.push_back((last, slot));
    }

    /// Lets go what no read under way can contradict.
    pub(super) fn retire(&mut self, now: Now) {
        let oldest = self.oldest_read();
        while let Some((last, slot)) =
            self.lingering.pop_front_if(|(last, _)| oldest.is_none_or(|oldest| *last < oldest))
        {
            // The place may have another entry by now, or this one may linger for a later read.
            let its_turn = self.entries.has(slot) && self.entries.get(slot).lingers == Some(last);
            if !its_turn || self.entries.get(slot).dirty.is_some() {
                continue;
            }
            self.entries.get_mut(slot).lingers = None;
            self.let_go_now(slot, now);
        }
    }
}
