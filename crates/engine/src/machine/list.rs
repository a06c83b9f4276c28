//! Lists: pages of live tasks, read from the store and shown as memory knows them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tickwheel_core::TimerQueue;

use super::Engine;
use super::dead::BURIED_FROM;
use super::entries::At;
use crate::calls::{Answer, List, ListAllTasks, State, TaskFilter, TaskPage, TaskView, Unavailable};
use crate::cursor::TaskCursor;
use crate::input::{CallId, Effect};
use crate::seam::{Filter, Page, Place, Request, RequestId};
use crate::task::{Death, Task};
use crate::time::{Now, Seq, Timestamp};

/// Lists under way.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Wait until the store has all that had been applied when they came.
    waiting: VecDeque<(Seq, CallId, Listing)>,
    asked: BTreeMap<RequestId, (CallId, Listing)>,
}

/// What a list is of.
#[derive(Debug)]
pub(super) enum Listing {
    /// Tasks of one queue, of those that a filter finds.
    Queue(List),
    /// Tasks of all queues, live and dead.
    All(ListAllTasks),
}

impl Listing {
    fn answer(&self, page: Result<TaskPage, Unavailable>) -> Answer {
        match self {
            Self::Queue(_) => Answer::List(page),
            Self::All(_) => Answer::AllTasks(page),
        }
    }
}

impl From<List> for Listing {
    fn from(list: List) -> Self {
        Self::Queue(list)
    }
}

impl From<ListAllTasks> for Listing {
    fn from(list: ListAllTasks) -> Self {
        Self::All(list)
    }
}

impl List {
    /// What the list asks for of this span of due times, both ends included.
    fn span(&self, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
        let TaskFilter { due_from, due_to, .. } = self.filter;
        (due_from.map_or(from, |wanted| wanted.max(from)), due_to.map_or(to, |wanted| wanted.min(to)))
    }
}

impl Lists {
    pub(super) fn ask(&mut self, applied: Seq, call: CallId, list: Listing) {
        self.waiting.push_back((applied, call, list));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }

    pub(super) fn has_asked(&self, request: RequestId) -> bool {
        self.asked.contains_key(&request)
    }

    pub(super) fn oldest(&self) -> Option<RequestId> {
        self.asked.first_key_value().map(|(&id, _)| id)
    }
}

impl Engine {
    /// Asks the store for the lists that it can answer by now. What is due has to be in memory before, or a list would call it
    /// scheduled after its time.
    pub(super) fn scan_lists(&mut self, now: Now, out: &mut Vec<Effect>) {
        if !self.knows_what_is_due(now) {
            return;
        }
        let (durable, failed) = (self.durable, self.failed.is_some());
        while let Some((_, call, list)) =
            self.lists.waiting.pop_front_if(|(seq, ..)| *seq <= durable || failed)
        {
            let request = match &list {
                Listing::Queue(list) => self.scan_of(now, list),
                Listing::All(ListAllTasks { max, after }) => self
                    .place_after(*after)
                    .map(|after| Request::ScanDue { after, until: Timestamp::MAX, max: (*max).max(1) }),
            };
            let Some(request) = request else {
                let past = TaskPage { as_of: self.applied, ..TaskPage::default() };
                self.answer(call, list.answer(Ok(past)));
                continue;
            };
            let id = self.request(request, out);
            self.lists.asked.insert(id, (call, list));
        }
    }

    /// The place behind which a page of this shard begins; `None`: the list is past the shard.
    fn place_after(&self, after: Option<TaskCursor>) -> Option<Place> {
        after.unwrap_or(TaskCursor::START).place_in(self.ownership.shard.number())
    }

    /// What the store is asked for a list of one queue; `None`: the list is past this shard.
    fn scan_of(&self, now: Now, list: &List) -> Option<Request> {
        // What is ready or leased is due by the latest time seen; what is scheduled is due later than now.
        let latest =
            Timestamp::from_ms(i64::try_from(self.wheel.now()).unwrap_or(i64::MAX)).unwrap_or(now.wall);
        let dead = list.filter.state == Some(State::Dead);
        let (due_from, due_to) = match list.filter.state {
            // Those that workers gave up are forgotten after all others.
            Some(State::Dead) if list.filter.why == Some(Death::Buried) => (BURIED_FROM, Timestamp::MAX),
            // Of the dead the store knows when they are forgotten.
            Some(State::Dead) => (Timestamp::EPOCH, Timestamp::MAX),
            None => list.span(Timestamp::EPOCH, Timestamp::MAX),
            Some(State::Scheduled) => list.span(now.wall.saturating_plus_ms(1), Timestamp::MAX),
            Some(State::Ready | State::Leased) => {
                // Or it was leased over a restart, and the clock has gone back since.
                let ready = self.queues.get(&list.queue).and_then(|queue| queue.last_due());
                let leased = self.leases.values().map(|running| self.entries.get(running.slot).task.due_at);
                let held = leased.chain(ready).max();
                list.span(Timestamp::EPOCH, latest.max(now.wall).max(held.unwrap_or_default()))
            }
        };
        let filter = Filter { queue: list.queue.clone(), due_from, due_to, dead };
        let after = self.place_after(list.after)?;
        Some(Request::ScanFilter { filter, after, max: list.max.max(1) })
    }

    pub(super) fn listed(&mut self, now: Now, request: RequestId, page: Page) {
        let (call, list) = self.lists.asked.remove(&request).expect("the page answers a list under way");
        let answer = match &self.failed {
            // What memory knows may have been written down or not, and the store's record does not say who holds the task.
            Some(why) if page.tasks.iter().any(|task| self.is_unsure(task)) => {
                Err(Unavailable::Indeterminate { why: Arc::clone(why) })
            }
            _ => {
                let shard = self.ownership.shard.number();
                let cursor = |place| TaskCursor::behind(shard, place);
                let views =
                    page.tasks.iter().filter_map(|task| Some((self.view_of(task)?, cursor(Place::of(task)))));
                let ((tasks, cursors), looked_at) = match &list {
                    Listing::All(_) => (views.unzip(), page.tasks.len()),
                    Listing::Queue(List { filter, .. }) => {
                        let of_then = |task: &&Arc<Task>| {
                            filter.put_until.is_none_or(|until| task.put_seq <= until)
                                && filter.changed_until.is_none_or(|until| task.version <= until)
                        };
                        let looked_at = page.tasks.iter().filter(of_then).count();
                        (views.filter(|(view, _)| filter.matches(view)).unzip(), looked_at)
                    }
                };
                let next = page.next.map(cursor);
                Ok(TaskPage { tasks, cursors, looked_at, next, as_of: self.applied })
            }
        };
        self.answer(call, list.answer(answer));
        self.retire(now);
    }

    /// The store failed to answer this list.
    pub(super) fn list_failed(&mut self, now: Now, request: RequestId, why: &Arc<str>) {
        let (call, list) = self.lists.asked.remove(&request).expect("the failure answers a list under way");
        self.answer(call, list.answer(Err(Unavailable::ReadOnly { why: Arc::clone(why) })));
        self.retire(now);
    }

    /// Whether memory knows more of a task of the store than is known to be durable.
    fn is_unsure(&self, task: &Task) -> bool {
        self.entries.by_id(task.id).is_some_and(|slot| self.entries.get(slot).dirty.is_some())
    }

    /// A task of the store as memory knows it; `None` if it has ended meanwhile.
    fn view_of(&self, task: &Arc<Task>) -> Option<TaskView> {
        match self.entries.by_id(task.id) {
            Some(slot) if matches!(self.entries.get(slot).at, At::Ended(_)) => return None,
            Some(slot) => return Some(self.view(slot)),
            None => {}
        }
        if task.dead().is_some() {
            return Some(TaskView::new(task, State::Dead));
        }
        // One that has expired is given up once its record says so: whoever is told that must not find it alive after a crash.
        // Ready is what memory has made ready, and it stays so: what is due by now may be due later again once the clock has stepped
        // back, as long as nobody has seen it ready.
        let state = if self.has_ready_stub(task) { State::Ready } else { State::Scheduled };
        Some(TaskView::new(task, state))
    }
}
