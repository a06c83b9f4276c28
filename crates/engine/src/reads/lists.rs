//! [`Lists`]: calls for pages of tasks, live and dead. The store reads the pages.

use std::collections::{BTreeMap, VecDeque};

use super::Reads;
use crate::calls::{Answer, List, ListAllTasks, State, TaskFilter, TaskPage, Unavailable};
use crate::cursor::TaskCursor;
use crate::dispatch::Dispatch;
use crate::input::{CallId, Effect};
use crate::ledger::Ledger;
use crate::residence::Residence;
use crate::seam::{DueKey, Filter, Request, RequestId};
use crate::task::{BURIED_FROM, Death};
use crate::time::{Now, Seq, Timestamp};

/// The lists that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Lists that the store was not asked for yet. Each waits until the change with its `Seq` is durable or the store has failed. This
    /// change was the last one applied when the call came.
    waiting: VecDeque<(Seq, CallId, Listing)>,
    asked: BTreeMap<RequestId, (CallId, Listing)>,
}

/// A call for a page of tasks: of one queue, or of all queues.
#[derive(Debug)]
pub(crate) enum Listing {
    /// The tasks of one queue that a filter selects.
    Queue(List),
    /// Tasks of all queues, live and dead.
    All(ListAllTasks),
}

impl Listing {
    pub(crate) fn answer(&self, page: Result<TaskPage, Unavailable>) -> Answer {
        match self {
            Self::Queue(_) => Answer::List(page),
            Self::All(_) => Answer::AllTasks(page),
        }
    }
}

impl List {
    /// Returns the part of the due times from `from` to `to` that the filter of the list asks for. Both ends are included.
    fn span(&self, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
        let TaskFilter { due_from, due_to, .. } = self.filter;
        (due_from.map_or(from, |wanted| wanted.max(from)), due_to.map_or(to, |wanted| wanted.min(to)))
    }
}

impl Lists {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }
}

impl Reads {
    /// Lets a list wait until all changes that have been applied by now are durable, or the store has failed.
    pub(crate) fn list(&mut self, ledger: &Ledger, call: CallId, list: Listing) {
        self.lists.waiting.push_back((ledger.applied(), call, list));
    }

    /// Asks the store for the page of each waiting list whose `Seq` is durable, or of all waiting lists once the store has failed. A list
    /// whose cursor is past this shard gets an empty page instead. Does nothing until memory has all due tasks or a scan has failed:
    /// otherwise a list could show a due task as scheduled.
    pub(crate) fn scan_lists(
        &mut self,
        ledger: &mut Ledger,
        residence: &mut Residence,
        dispatch: &Dispatch,
        now: Now,
        out: &mut Vec<Effect>,
    ) {
        if !residence.knows_what_is_due(now) {
            return;
        }
        let (durable, failed) = (ledger.durable(), ledger.has_failed());
        while let Some((_, call, list)) =
            self.lists.waiting.pop_front_if(|(seq, ..)| *seq <= durable || failed)
        {
            let request = match &list {
                Listing::Queue(list) => scan_of(ledger, residence, dispatch, now, list),
                Listing::All(ListAllTasks { max, after }) => place_after(ledger, *after)
                    .map(|after| Request::ScanDue { after, until: Timestamp::MAX, max: (*max).max(1) }),
            };
            let Some(request) = request else {
                let past = TaskPage { as_of: ledger.applied(), ..TaskPage::default() };
                ledger.answer(call, list.answer(Ok(past)));
                continue;
            };
            let id = ledger.request(request, out);
            residence.begin_read(id);
            self.lists.asked.insert(id, (call, list));
        }
    }

    /// Takes out the list that `request` asked for, because the store has answered or has failed; `None`: the request did not ask for a
    /// list.
    pub(crate) fn take_list(&mut self, request: RequestId) -> Option<(CallId, Listing)> {
        self.lists.asked.remove(&request)
    }
}

/// Returns the due key behind which the page of this shard begins; `None`: the cursor `after` is past this shard.
fn place_after(ledger: &Ledger, after: Option<TaskCursor>) -> Option<DueKey> {
    after.unwrap_or(TaskCursor::START).place_in(ledger.ownership().shard.number())
}

/// Returns the request to the store for a list of one queue; `None`: the cursor of the list is past this shard.
fn scan_of(
    ledger: &Ledger,
    residence: &Residence,
    dispatch: &Dispatch,
    now: Now,
    list: &List,
) -> Option<Request> {
    // Except in the case below, a ready or leased task is due at the latest time seen or earlier. Once memory has all due tasks, a
    // scheduled task is due later than now.
    let latest = residence.latest_seen().unwrap_or(now.wall);
    let dead = list.filter.state == Some(State::Dead);
    let (due_from, due_to) = match list.filter.state {
        // A buried task has a `due_at` of at least `BURIED_FROM`, which is later than the `due_at` of all other dead tasks.
        Some(State::Dead) if list.filter.why == Some(Death::Buried) => (BURIED_FROM, Timestamp::MAX),
        // The `due_at` of a dead task is the instant at which the task is forgotten. So the store cannot filter dead tasks by their due
        // times.
        Some(State::Dead) => (Timestamp::EPOCH, Timestamp::MAX),
        None => list.span(Timestamp::EPOCH, Timestamp::MAX),
        // Once a scan has failed, a task that is due may never have been loaded. It stays scheduled.
        Some(State::Scheduled) if !residence.has_what_is_due(now) => {
            list.span(Timestamp::EPOCH, Timestamp::MAX)
        }
        Some(State::Scheduled) => list.span(now.falls_due().saturating_plus_ms(1), Timestamp::MAX),
        Some(State::Ready | State::Leased) => {
            // A leased or ready task may be due later than the latest time seen: its lease began before a restart and goes on, and the wall
            // clock has stepped back.
            let ready = dispatch.last_due(&list.queue);
            let leased = dispatch.leases().slots().map(|slot| residence.task(slot).due_at);
            let held = leased.chain(ready).max();
            list.span(Timestamp::EPOCH, latest.max(now.wall).max(held.unwrap_or_default()))
        }
    };
    let filter = Filter { queue: list.queue.clone(), due_from, due_to, dead };
    let after = place_after(ledger, list.after)?;
    Some(Request::ScanFilter { filter, after, max: list.max.max(1) })
}
