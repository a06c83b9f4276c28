//! The store's replies, given to the calls and parts that wait for them.

use std::sync::Arc;

use super::Engine;
use crate::calls::{Answer, TokenAnswer, Unavailable};
use crate::dispatch::Fetch;
use crate::input::{CallId, Effect};
use crate::name::{Key, QueueName};
use crate::reads::{ImportLook, OnId, Purpose};
use crate::seam::{Found, Page, Place, Reply, RequestId};
use crate::task::LeaseNo;
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
            Reply::Done { room } => self.committed(now, request, room, out),
            Reply::Failed { why } => self.request_failed(now, request, &why),
            Reply::Acquired(_) | Reply::AcquiredPage(_) | Reply::Held | Reply::Fenced | Reply::Released => {
                unreachable!("the driver takes, loses and releases the shard, not the engine: {reply:?}")
            }
        }
    }

    fn committed(&mut self, now: Now, request: RequestId, room: u64, out: &mut Vec<Effect>) {
        let slots = self.ledger.committed(now, request, room);
        let mut tasks = self.tasks();
        for slot in slots {
            tasks.made_durable(slot, now);
        }
        self.recurrence.made_durable();
        self.ledger.end_failing(out);
    }

    /// The store failed to do what `request` asked. The calls that waited for this request are told so.
    fn request_failed(&mut self, now: Now, request: RequestId, why: &str) {
        if self.ledger.is_in_flight(request) {
            return self.ledger.fail(why);
        }
        let why = self.ledger.refuses_changes().unwrap_or_else(|| why.into());
        self.ledger.fail_after_commit(&why);
        if self.reads.is_look_up(request) {
            self.look_up_failed(request, &why);
        } else if let Some((call, list)) = self.reads.take_list(request) {
            let why = Unavailable::ReadOnly { why };
            self.ledger.answer(call, list.answer(Err(why)));
        } else if self.reads.is_forecast(request) {
            return self.reads.count_failed(&mut self.ledger, request, &why);
        } else {
            assert!(self.residence.has_scan(request), "a failure answers a request under way");
            self.residence.scan_failed();
        }
        self.end_read(now, request);
    }

    /// Ends a read that is dealt out completely. Tasks that were in memory for this read alone leave.
    fn end_read(&mut self, now: Now, request: RequestId) {
        self.residence.end_read(request);
        self.tasks().evict_unpinned(now);
    }

    /// Takes a page of a list, or of the scan under way.
    fn paged(&mut self, now: Now, request: RequestId, page: Page, out: &mut Vec<Effect>) {
        let Some((call, list)) = self.reads.take_list(request) else {
            assert!(self.residence.has_scan(request), "a page answers a list or the scan under way");
            return self.scanned(now, page, out);
        };
        let answer = self.tasks().page_of(&list, &page);
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
            self.residence.peeked(page.tasks.first().map(|task| Place::of(task)));
        }
        self.tasks().evict_unpinned(now);
    }

    /// Takes the tasks of a page into memory. Returns whether all of them stay there, so that the scan goes on.
    fn load_page(&mut self, now: Now, page: Page) -> bool {
        let mut tasks = self.tasks();
        page.tasks.into_iter().all(|task| {
            let place = Place::of(&task);
            let keeps = tasks.residence.scan_keeps(now, place);
            if keeps {
                tasks.take_in(now, task);
                tasks.residence.scan_reached(place);
            }
            keeps
        })
    }

    /// Deals out the results of a look-up.
    fn looked_up(&mut self, now: Now, request: RequestId, found: Vec<Found>) {
        // The read stays under way until all results are dealt out. Otherwise the first result could make an entry leave memory that knows
        // a task better than the last result does.
        let purposes = self.reads.take_looked_up(request);
        assert_eq!(purposes.len(), found.len(), "one find for each look-up");
        for (purpose, found) in purposes.into_iter().zip(found) {
            match purpose {
                Purpose::Key(queue, key) => self.key_found(now, &(queue, key), found),
                Purpose::Token { call, index, id, no } => {
                    self.token_found(now, call, index, (id, no), &found)
                }
                Purpose::Head(fetch) => self.head_found(now, fetch, found),
                Purpose::OnId(call, on_id) => self.id_found(now, call, on_id, found),
                Purpose::Overdue(id, expired) => {
                    self.reads.end_overdue();
                    self.tasks().overdue_found(now, id, expired.as_ref(), found);
                }
                Purpose::Import(look) => self.import_found(now, &look, found),
            }
        }
        self.end_read(now, request);
    }

    /// The store failed to answer this look-up, and so the engine has failed. Calls that waited for the look-up had no effect, except that
    /// other tokens of a call may have been decided.
    fn look_up_failed(&mut self, request: RequestId, why: &Arc<str>) {
        let read_only = || Unavailable::ReadOnly { why: Arc::clone(why) };
        for purpose in self.reads.take_looked_up(request) {
            match purpose {
                Purpose::Key(queue, key) => {
                    for (call, command) in self.reads.end_wait_for_key(&(queue, key)) {
                        if let Some(answer) = command.unavailable(read_only()) {
                            self.ledger.answer(call, answer);
                        }
                    }
                }
                Purpose::Token { call, index, .. } => self.token_decided(call, index, TokenAnswer::Expired),
                Purpose::Head(fetch) => drop(self.dispatch.fetched(fetch)),
                Purpose::OnId(call, on_id) => {
                    self.ledger.answer(call, on_id.command().unavailable(read_only()));
                }
                Purpose::Overdue(..) => self.reads.end_overdue(),
                Purpose::Import(look) => {
                    if self.reads.end_import(look.call) {
                        self.ledger.answer(look.call, Answer::Import(Err(read_only())));
                    }
                }
            }
        }
    }

    fn key_found(&mut self, now: Now, place: &(QueueName, Key), found: Found) {
        let mut gone = None;
        let mut loaded = None;
        match found {
            // Memory may have learned the key meanwhile, from a scan or a token. Then memory knows the key better than the store.
            _ if self.residence.by_key(&place.0, &place.1).is_some() => {}
            Found::Live(task) => loaded = self.tasks().load(now, task),
            Found::Ended(ended) => gone = Some(ended),
            Found::Absent => {}
        }
        for (call, command) in self.reads.end_wait_for_key(place) {
            self.run(now, call, command, gone.as_ref());
        }
        if let Some(slot) = loaded {
            self.tasks().evict(slot, now);
        }
    }

    fn id_found(&mut self, now: Now, call: CallId, on_id: OnId, found: Found) {
        if let Found::Live(task) = found
            && on_id.means(&task)
        {
            self.tasks().load(now, task);
        }
        match self.residence.by_id(on_id.id()) {
            Some(_) => self.on_id(now, call, on_id, false),
            None => self.ledger.answer(call, on_id.not_found()),
        }
    }

    fn token_found(&mut self, now: Now, call: CallId, index: usize, token: (u64, LeaseNo), found: &Found) {
        let Some(pending) = self.reads.token_call(call) else { return };
        let (queue, verb) = (pending.queue.clone(), pending.verb.clone());
        let answer = self.tasks().decide_found(now, &queue, &verb, token, found);
        self.token_decided(call, index, answer);
    }

    fn token_decided(&mut self, call: CallId, index: usize, answer: TokenAnswer) {
        if let Some(pending) = self.reads.token_decided(call, index, answer) {
            self.tasks().answer_tokens(call, &pending);
        }
    }

    /// Takes the store's record of a stub. The record is ignored if a command has met that stub before.
    fn head_found(&mut self, now: Now, fetch: Fetch, found: Found) {
        if !self.dispatch.fetched(fetch) {
            return;
        }
        match found {
            Found::Live(task) => {
                self.tasks().load(now, task);
            }
            Found::Ended(_) | Found::Absent => {
                self.ledger.fail_after_commit(&format!("the store has lost task {}", fetch.id));
            }
        }
    }

    fn import_found(&mut self, now: Now, look: &ImportLook, found: Found) {
        if let Some(importing) = self.reads.found_for_import(look, found) {
            self.tasks().carry_in(now, look.call, importing);
        }
    }
}
