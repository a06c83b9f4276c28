//! Lists: pages of tasks that the store found, shown in the state that they have in memory.

use std::sync::Arc;

use crate::calls::{List, State, TaskPage, TaskView, Unavailable};
use crate::cursor::TaskCursor;
use crate::reads::Listing;
use crate::residence::At;
use crate::seam::{DueKey, Page};
use crate::task::Task;
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Makes a page of a list from the tasks that the store has found.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and the engine does not know whether a change of a task that the store found
    /// is durable.
    pub(crate) fn page_of(&self, list: &Listing, page: &Page) -> Result<TaskPage, Unavailable> {
        // The engine does not know whether the state in memory was written down. The store's record cannot be shown instead, because the
        // record does not say which worker has the task.
        self.ledger.doubt_if(|| page.tasks.iter().any(|task| self.is_unsure(task)))?;
        let shard = self.ledger.ownership().shard.number();
        let cursor = |place| TaskCursor::behind(shard, place);
        let views =
            page.tasks.iter().filter_map(|task| Some((self.view_of(task)?, cursor(DueKey::of(task)))));
        let ((tasks, cursors), looked_at) = match list {
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
        Ok(TaskPage { tasks, cursors, looked_at, next, as_of: self.ledger.applied() })
    }

    /// Whether memory has a change of this task that may not be durable.
    fn is_unsure(&self, task: &Task) -> bool {
        self.residence.by_id(task.id).is_some_and(|slot| self.residence.get(slot).dirty.is_some())
    }

    /// Returns the view of a task that the store found, in the state that the task has in memory; `None` if the task has ended meanwhile.
    fn view_of(&self, task: &Arc<Task>) -> Option<TaskView> {
        match self.residence.by_id(task.id) {
            Some(slot) if matches!(self.residence.get(slot).at, At::Ended(_)) => return None,
            Some(slot) => return Some(self.view(slot)),
            None => {}
        }
        if task.dead().is_some() {
            return Some(TaskView::new(task, State::Dead));
        }
        // An expired task is shown as dead only once its record says so. Otherwise a caller might see the task dead, and find it live after
        // a crash. Only tasks that were made ready in memory are shown as ready, because they stay ready. A task that is due but was not
        // made ready may be due later again if the clock steps back.
        let state = if self.dispatch.has_stub(task) { State::Ready } else { State::Scheduled };
        Some(TaskView::new(task, state))
    }
}
