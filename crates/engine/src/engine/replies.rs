//! Gives the store's replies to the calls and to the parts of the engine that wait for them.

use std::sync::Arc;

use super::Engine;
use crate::calls::{Answer, Unavailable};
use crate::dispatch::Fetch;
use crate::input::{CallId, Effect};
use crate::name::{Key, QueueName};
use crate::reads::{Identified, Purpose};
use crate::seam::{DueKey, Found, Page, Reply, RequestId};
use crate::time::Now;

impl Engine {
    pub(super) fn store_replied(
        &mut self,
        now: Now,
        request: RequestId,
        reply: Reply,
        out: &mut Vec<Effect>,
    ) {
        match reply {
            Reply::Found(found) => self.looked_up(now, request, found),
            Reply::Page(page) => self.paged(now, request, page, out),
            Reply::Counts { counts, counted } => {
                self.reads.counted(&mut self.ledger, request, counts, counted, out);
            }
            Reply::Done { room } => self.committed(now, request, Some(room), out),
            Reply::DoneWithoutDescriptor => self.committed(now, request, None, out),
            Reply::Failed { why } => self.request_failed(now, request, &why),
            Reply::Unanswered { why } => self.unanswered(now, request, &why),
            Reply::Acquired(_) | Reply::AcquiredPage(_) | Reply::Held | Reply::Fenced | Reply::Released => {
                unreachable!("the driver takes, loses and releases the shard, not the engine: {reply:?}")
            }
        }
    }

    fn committed(&mut self, now: Now, request: RequestId, room: Option<u64>, out: &mut Vec<Effect>) {
        let slots = self.ledger.committed(now, request, room);
        let mut tasks = self.tasks(now);
        for slot in slots {
            tasks.made_durable(slot);
        }
        self.recurrence.made_durable();
        self.ledger.end_failing(out);
    }

    /// Handles a request that the store failed to do. If the request is the commit in flight, the engine fails at once. If the request is a
    /// read, the engine fails after the commit in flight, or at once if there is none, and the calls that waited for the read are refused.
    fn request_failed(&mut self, now: Now, request: RequestId, why: &str) {
        if self.ledger.is_in_flight(request) {
            return self.ledger.fail(why);
        }
        let why = self.ledger.refuses_changes().unwrap_or_else(|| why.into());
        self.ledger.fail_after_commit(&why);
        if let Some((_, purposes)) = self.reads.take_looked_up(request) {
            self.look_up_failed(now, purposes, &why);
        } else if let Some((call, list)) = self.reads.take_list(request) {
            let why = Unavailable::ReadOnly { why };
            self.ledger.answer(call, list.answer(Err(why)));
        } else if let Some(call) = self.reads.take_forecast(request) {
            return self.ledger.answer(call, Answer::Forecast(Err(Unavailable::ReadOnly { why })));
        } else if self.recurrence.searches_by(request) {
            self.recurrence.search_failed(&mut self.ledger, now);
        } else {
            assert!(self.residence.has_scan(request), "a failure answers a request under way");
            self.residence.scan_failed();
        }
        self.end_read(now, request);
    }

    /// Handles a read of a list or a forecast that the store cannot answer now: only its call is refused. A search for live tasks asks again
    /// later.
    fn unanswered(&mut self, now: Now, request: RequestId, why: &str) {
        let late = || Unavailable::Late { why: why.into() };
        if let Some((call, list)) = self.reads.take_list(request) {
            self.ledger.answer(call, list.answer(Err(late())));
            self.end_read(now, request);
        } else if let Some(call) = self.reads.take_forecast(request) {
            self.ledger.answer(call, Answer::Forecast(Err(late())));
        } else if self.recurrence.searches_by(request) {
            self.recurrence.search_failed(&mut self.ledger, now);
            self.end_read(now, request);
        } else {
            self.request_failed(now, request, why);
        }
    }

    /// Ends a read: all of its results are used, or the store has failed. Evicts the pinned entries whose reads are all over, if nothing
    /// else needs them.
    fn end_read(&mut self, now: Now, request: RequestId) {
        self.residence.end_read(request);
        self.tasks(now).evict_unpinned();
    }

    /// Takes a page of a list, of a search for live tasks, or of the scan under way.
    fn paged(&mut self, now: Now, request: RequestId, page: Page, out: &mut Vec<Effect>) {
        if self.recurrence.searches_by(request) {
            let residence = &self.residence;
            // Memory knows a task better than the store does.
            let is_live = |id| residence.by_id(id).is_none_or(|slot| residence.get(slot).is_live());
            self.recurrence.live_found(&mut self.ledger, &page, is_live);
            return self.end_read(now, request);
        }
        let Some((call, list)) = self.reads.take_list(request) else {
            assert!(self.residence.has_scan(request), "a page answers a list or the scan under way");
            return self.scanned(now, page, out);
        };
        let answer = self.tasks(now).page_of(&list, &page);
        self.ledger.answer(call, list.answer(answer));
        self.end_read(now, request);
    }

    fn scanned(&mut self, now: Now, page: Page, out: &mut Vec<Effect>) {
        if self.residence.scan_loads() {
            let next = page.next;
            if self.load_page(now, page) {
                self.residence.scan_on(&mut self.ledger, next, out);
            }
        } else {
            self.residence.peeked(page.tasks.first().map(|task| DueKey::of(task)));
        }
        self.tasks(now).evict_unpinned();
    }

    /// Takes the tasks of a page into memory, until a task need not be in memory; the scan ends before this task. Returns whether all tasks
    /// of the page went into memory, so that the scan goes on.
    fn load_page(&mut self, now: Now, page: Page) -> bool {
        let mut tasks = self.tasks(now);
        page.tasks.into_iter().all(|task| {
            let place = DueKey::of(&task);
            let keeps = tasks.residence.scan_keeps(now, place);
            if keeps {
                tasks.take_in(task);
                tasks.residence.scan_reached(place);
            }
            keeps
        })
    }

    /// Gives each result of a look-up to the call or the part that asked for the result.
    fn looked_up(&mut self, now: Now, request: RequestId, found: Vec<Found>) {
        // The read stays under way until all results are used. Otherwise an entry could be evicted whose record is newer than a result that
        // is still to be used. That result would then bring the older record into memory.
        let (questions, purposes) = self.reads.take_looked_up(request).expect("a look-up is answered once");
        assert_eq!(questions, found.len(), "one find for each question");
        let mut found = found.into_iter();
        for purpose in purposes {
            let mut next = || found.next().expect("one find for each question");
            match purpose {
                Purpose::Key(queue, key) => self.key_found(now, &(queue, key), next()),
                Purpose::Tokens(call, mut pending) => {
                    for (index, id, no) in core::mem::take(&mut pending.looked_up) {
                        pending.answers[index] = self.tasks(now).decide_found(&pending, id, no, &next());
                    }
                    self.tasks(now).answer_tokens(call, pending);
                }
                Purpose::Head(fetch) => self.head_found(now, fetch, next()),
                Purpose::Id(call, command) => self.id_found(now, call, command, next()),
                Purpose::Overdue(id, expired) => {
                    self.reads.end_overdue();
                    self.tasks(now).overdue_found(id, expired.as_ref(), next());
                }
                Purpose::Import { call, import, keeps_ids } => {
                    let questions = import.tasks.len() * if keeps_ids { 2 } else { 1 };
                    let found = found.by_ref().take(questions).collect();
                    self.tasks(now).carry_in(call, import, found);
                }
            }
        }
        self.end_read(now, request);
    }

    /// Ends a look-up that the store failed to answer; the engine has failed or is about to. The calls that waited for the look-up had no
    /// effect. One exception: of a call with several tokens, some may have been decided before.
    fn look_up_failed(&mut self, now: Now, purposes: Vec<Purpose>, why: &Arc<str>) {
        let read_only = || Unavailable::ReadOnly { why: Arc::clone(why) };
        for purpose in purposes {
            match purpose {
                Purpose::Key(queue, key) => {
                    for (call, command) in self.reads.end_wait_for_key(&(queue, key)) {
                        if let Some(answer) = command.unavailable(read_only()) {
                            self.ledger.answer(call, answer);
                        }
                    }
                }
                Purpose::Tokens(call, pending) => self.tasks(now).answer_tokens(call, pending),
                Purpose::Head(fetch) => drop(self.dispatch.fetched(fetch)),
                Purpose::Id(call, command) => {
                    self.ledger.answer(call, command.into_command().unavailable(read_only()));
                }
                Purpose::Overdue(..) => self.reads.end_overdue(),
                Purpose::Import { call, .. } => {
                    self.ledger.answer(call, Answer::Import(Err(read_only())));
                }
            }
        }
    }

    fn key_found(&mut self, now: Now, place: &(QueueName, Key), found: Found) {
        let (loaded, gone) = self.tasks(now).take_found(&place.0, &place.1, found);
        for (call, command) in self.reads.end_wait_for_key(place) {
            self.run(now, call, command, gone.as_ref());
        }
        if let Some(slot) = loaded {
            self.tasks(now).evict(slot);
        }
    }

    fn id_found(&mut self, now: Now, call: CallId, command: Identified, found: Found) {
        if let Found::Live(task) = found
            && command.means(&task)
        {
            self.tasks(now).load(task);
        }
        match self.residence.by_id(command.id()) {
            Some(_) => self.identified(now, call, command, false),
            None => self.ledger.answer(call, command.not_found()),
        }
    }

    /// Takes the store's record of a stub into memory. Ignores the record if the line does not have the stub any more, for example because
    /// a command has loaded the task before.
    fn head_found(&mut self, now: Now, fetch: Fetch, found: Found) {
        if !self.dispatch.fetched(fetch) {
            return;
        }
        match found {
            Found::Live(task) => {
                self.tasks(now).load(task);
            }
            Found::Ended(_) | Found::Absent => {
                self.ledger.fail_after_commit(&format!("the store has lost task {}", fetch.id));
            }
        }
    }
}
