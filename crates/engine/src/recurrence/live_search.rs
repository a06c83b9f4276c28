//! The live tasks that have the name of a schedule in their keys. A schedule that takes turns makes no task beside them.
//!
//! The record of the schedule has their ids. Each change of a live task passes here and adds the id of the task, and each end removes it.
//! When a schedule begins to take turns, tasks of its name may be live already, in memory or in the store: tasks of a schedule that was
//! deleted, or that allowed overlap before. They are looked for with a *search*: the live tasks of the queue are read from the store, page
//! by page. A change of a task during the search passes here, too, so a task that moves to a page that was read before is not missed.

use std::collections::BTreeSet;

use super::Recurrence;
use crate::input::Effect;
use crate::ledger::Ledger;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::{Cadence, ScheduleId, ScheduleRecord, name_in_key};
use crate::seam::{DueKey, Filter, Page, Request, RequestId};
use crate::task::Task;
use crate::time::{Now, Timestamp};

/// The largest number of tasks that a search reads at a time. After each failure that counts, the next page is half as large, and after each
/// answer it is twice as large again.
const PAGE_MAX: usize = 256;
/// How long a search waits after the store could not answer (ms).
const AGAIN_MS: u64 = 1_000;
/// If the store could not answer this often in a row, the schedules go on with the live tasks that they know. A store may need longer for a page
/// than it may take, each time, and a schedule that never fires does more harm than one that does not wait. A failure counts only if a commit
/// became durable since the failure before: a store that is away takes no commits, and is waited for. After each failure, the engine makes an empty
/// commit if there is no other one.
const FAILURES_MAX: u32 = 5;

/// A search through all live tasks of a queue, for the schedules of the queue that have to know the live tasks of their names.
#[derive(Debug)]
pub(super) struct LiveSearch {
    queue: QueueName,
    /// The schedules that the search is for. A schedule that begins to take turns meanwhile needs another search.
    schedules: BTreeSet<ScheduleId>,
    /// The due key behind which the next page begins.
    after: DueKey,
    /// The page that the store is asked for.
    request: Option<RequestId>,
    /// The store is not asked before this instant (monotonic ms).
    not_before_ms: u64,
    /// The failures in a row that count.
    failures: u32,
    /// The number of commits at the last failure. `None`: the last page was answered, or none was asked for.
    failed_at: Option<u64>,
    /// The largest size of the next page (tasks).
    page_max: usize,
}

impl Recurrence {
    /// Notes that a task is live. If a schedule that takes turns has its name in the key of the task, the schedule makes no task before this
    /// one has ended or was given up. Does nothing if the schedule knows the task.
    pub(crate) fn task_lives(&mut self, ledger: &mut Ledger, task: &Task) {
        let Some((id, record)) = self.turns_of(task) else { return };
        if record.running.contains(&task.id) {
            return;
        }
        let mut record = ScheduleRecord::clone(record);
        if record.running.len() < ScheduleRecord::RUNNING_MAX {
            record.running.push(task.id);
        } else {
            // The search under way cannot tell the schedule all live tasks. Another one begins once those of the record have ended.
            if let Some(search) = &mut self.live_search {
                search.schedules.remove(&id);
            }
            if record.may_have_more {
                return;
            }
            record.may_have_more = true;
        }
        let is_delay = matches!(record.schedule.cadence, Cadence::FixedDelay { .. });
        if is_delay {
            // The next instant is known only once the running tasks have ended.
            record.next = None;
        }
        if is_delay {
            self.set(ledger, &id, record);
        } else {
            self.set_in_phase(ledger, &id, record);
        }
    }

    /// Notes that a task has ended or was given up. If no other task of its name is live, the schedule may make its next task.
    pub(crate) fn task_ended(&mut self, ledger: &mut Ledger, now: Now, task: &Task) {
        let Some((id, record)) = self.turns_of(task) else { return };
        if !record.running.contains(&task.id) {
            return;
        }
        let mut record = ScheduleRecord::clone(record);
        record.running.retain(|running| *running != task.id);
        if record.running.is_empty() {
            record.next = record.after_a_delay(now).map_or(record.next, |next| record.in_time(Some(next)));
        }
        self.set_in_phase(ledger, &id, record);
    }

    /// Sets a record as [`set`](Self::set) does, and lets the schedule wait for what it waited for. So a task that is being made and a
    /// question to the driver stay valid.
    fn set_in_phase(&mut self, ledger: &mut Ledger, id: &ScheduleId, record: ScheduleRecord) {
        let phase = self.phase(id).expect("it has a record");
        self.set(ledger, id, record);
        self.set_phase(id, phase);
    }

    /// Returns the schedule that has its name in the key of this task, if the schedule takes turns.
    fn turns_of(&self, task: &Task) -> Option<(ScheduleId, &ScheduleRecord)> {
        if self.by_name.is_empty() {
            return None;
        }
        let id = (task.queue.clone(), ScheduleName::new(name_in_key(&task.key)?).ok()?);
        let record = &**self.get(&id)?;
        record.schedule.takes_turns().then_some((id, record))
    }

    /// Notes that a schedule begins to take turns: the search under way does not tell it all live tasks.
    pub(crate) fn search_anew(&mut self, id: &ScheduleId) {
        if let Some(search) = &mut self.live_search {
            search.schedules.remove(id);
        }
    }

    /// Takes out a queue of which a schedule has begun to wait for a search; `None`: there is none, or no change is taken.
    pub(crate) fn next_uncounted_queue(&mut self, ledger: &Ledger) -> Option<QueueName> {
        let acts = ledger.takes_changes() && !ledger.is_stopping();
        if acts { self.uncounted_queues.pop_first() } else { None }
    }

    /// Takes in that the queue has no live task: the schedules of the queue need no search.
    pub(crate) fn queue_is_empty(&mut self, ledger: &mut Ledger, queue: &QueueName) {
        for id in self.uncounted_of(queue) {
            self.counted(ledger, &id);
        }
    }

    fn uncounted_of(&self, queue: &QueueName) -> Vec<ScheduleId> {
        let from = (queue.clone(), ScheduleName::first());
        self.uncounted.range(from..).take_while(|id| id.0 == *queue).cloned().collect()
    }

    fn counted(&mut self, ledger: &mut Ledger, id: &ScheduleId) {
        let mut record = ScheduleRecord::clone(self.get(id).expect("it waits for this"));
        record.may_have_more = false;
        self.set_in_phase(ledger, id, record);
    }

    /// Asks the store for the next page of a search, if one is needed and the store is not asked already. Returns the request. A search begins
    /// once the put of its schedules is durable, so that the store shows all tasks that were live before.
    pub(crate) fn search_live(
        &mut self,
        ledger: &mut Ledger,
        now: Now,
        out: &mut Vec<Effect>,
    ) -> Option<RequestId> {
        if !ledger.takes_changes() || ledger.is_stopping() {
            return None;
        }
        if self.live_search.is_none() {
            let is_durable = |id: &&ScheduleId| self.seq_of(id) <= ledger.durable();
            // The queues take turns, so that a large one does not hold up the others for ever.
            let (before, behind): (Vec<_>, Vec<_>) = self
                .uncounted
                .iter()
                .filter(is_durable)
                .partition(|id| Some(&id.0) <= self.searched.as_ref());
            let queue = behind.first().or(before.first())?.0.clone();
            let mut of_queue = self.uncounted_of(&queue);
            of_queue.retain(|id| is_durable(&id));
            let schedules = of_queue.into_iter().collect();
            self.searched = Some(queue.clone());
            let after = DueKey::START;
            self.live_search = Some(LiveSearch {
                queue,
                schedules,
                after,
                request: None,
                not_before_ms: 0,
                failures: 0,
                failed_at: None,
                page_max: PAGE_MAX,
            });
        }
        let search = self.live_search.as_mut()?;
        if search.request.is_some() || now.mono_tick() < search.not_before_ms {
            return None;
        }
        let queue = search.queue.clone();
        let filter = Filter { queue, due_from: Timestamp::EPOCH, due_to: Timestamp::MAX, dead: false };
        let request = Request::ScanFilter { filter, after: search.after, max: search.page_max };
        search.request = Some(ledger.request(request, out));
        search.request
    }

    /// Whether `request` asked the store for a page of the search.
    pub(crate) fn searches_by(&self, request: RequestId) -> bool {
        self.live_search.as_ref().is_some_and(|search| search.request == Some(request))
    }

    pub(super) fn is_asking_store(&self) -> bool {
        self.live_search.as_ref().is_some_and(|search| search.request.is_some())
    }

    /// Takes in a page of the search. `is_live`: whether the task with an id is live, as far as memory knows. After the last page, the
    /// schedules know all live tasks of their names.
    pub(crate) fn live_found(&mut self, ledger: &mut Ledger, page: &Page, is_live: impl Fn(u64) -> bool) {
        if ledger.takes_changes() {
            for task in page.tasks.iter().filter(|task| is_live(task.id)) {
                self.task_lives(ledger, task);
            }
        }
        let Some(mut search) = self.live_search.take() else { return };
        match page.next {
            Some(next) if !search.schedules.is_empty() && ledger.takes_changes() => {
                (search.after, search.request, search.failures, search.failed_at) = (next, None, 0, None);
                search.page_max = (search.page_max * 2).min(PAGE_MAX);
                self.live_search = Some(search);
            }
            None if ledger.takes_changes() => self.all_counted(ledger, search.schedules),
            _ => {}
        }
    }

    fn all_counted(&mut self, ledger: &mut Ledger, schedules: BTreeSet<ScheduleId>) {
        for id in schedules {
            if self.get(&id).is_some_and(|record| record.may_have_more) {
                self.counted(ledger, &id);
            }
        }
    }

    /// Takes in that the store could not answer. The same page is asked for again later, unless that has failed too often.
    pub(crate) fn search_failed(&mut self, ledger: &mut Ledger, now: Now) {
        let Some(mut search) = self.live_search.take() else { return };
        if search.failed_at.is_none_or(|at| at < ledger.commits()) {
            search.failures += 1;
            search.page_max = (search.page_max / 2).max(1);
        }
        search.failed_at = Some(ledger.commits());
        ledger.ask_for_room();
        if search.failures >= FAILURES_MAX && ledger.takes_changes() {
            return self.all_counted(ledger, search.schedules);
        }
        (search.request, search.not_before_ms) = (None, now.mono_tick() + AGAIN_MS);
        self.live_search = Some(search);
    }
}
