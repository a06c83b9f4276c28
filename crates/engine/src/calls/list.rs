//! Calls that list tasks, page by page.

use super::task_view::{State, TaskView};
use crate::cursor::TaskCursor;
use crate::name::{Group, QueueName, Tag};
use crate::task::Death;
use crate::time::{Seq, Timestamp};

/// A filter that selects the tasks that meet all of its conditions. A field that is `None` is no condition, except for `state`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskFilter {
    /// Only tasks in this state; `None`: tasks in all states but dead.
    pub state: Option<State>,
    /// Only tasks that are due at this instant or later.
    pub due_from: Option<Timestamp>,
    /// Only tasks that are due at this instant or earlier.
    pub due_to: Option<Timestamp>,
    /// Only tasks that have this tag.
    pub tag: Option<Tag>,
    /// Only tasks of this group.
    pub group: Option<Group>,
    /// Only tasks that are dead for this reason.
    pub why: Option<Death>,
    /// Only tasks whose last put was this change or an earlier one.
    pub put_until: Option<Seq>,
    /// Only tasks whose version is at most this seq.
    pub changed_until: Option<Seq>,
}

impl TaskFilter {
    /// Makes a filter that selects the tasks in this state.
    #[must_use]
    pub fn in_state(state: State) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Whether the filter selects the task of this view.
    #[must_use]
    pub fn matches(&self, task: &TaskView) -> bool {
        let Self { state, due_from, due_to, tag, group, why, put_until, changed_until } = self;
        let in_state = state.map_or(task.state != State::Dead, |state| state == task.state);
        in_state
            && due_from.is_none_or(|from| from <= task.due_at)
            && due_to.is_none_or(|to| task.due_at <= to)
            && tag.as_ref().is_none_or(|tag| task.body.tags.contains(tag))
            && group.as_ref().is_none_or(|group| task.extra.group.as_ref() == Some(group))
            && why.is_none_or(|why| task.extra.dead.is_some_and(|dead| dead.why == why))
            && put_until.is_none_or(|until| task.put_seq <= until)
            && changed_until.is_none_or(|until| task.version <= until)
    }
}

/// Pages through the tasks of a queue. Live tasks come in the order of `due_at`. Dead tasks come in the order in which they are forgotten;
/// tasks that are never forgotten come last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// The queue.
    pub queue: QueueName,
    /// The filter that selects the tasks of the page.
    pub filter: TaskFilter,
    /// The largest number of tasks that the page looks at. A page may hold fewer, even none, though more pages follow.
    pub max: usize,
    /// The cursor at which the page before ended; `None`: the first page.
    pub after: Option<crate::cursor::TaskCursor>,
}

/// Pages through the tasks of all queues, live and dead, in the order of time: live tasks by their `due_at`, dead tasks by the instant at
/// which they are forgotten. Tasks that are never forgotten come last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllTasks {
    /// The largest number of tasks of the page, at least 1. A page may hold fewer, even none, though more pages follow.
    pub max: usize,
    /// The cursor at which the page before ended; `None`: the first page.
    pub after: Option<crate::cursor::TaskCursor>,
}

impl List {
    /// Makes a list that begins with the first page: all states but dead, at most 100 tasks looked at.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self { queue: queue.clone(), filter: TaskFilter::default(), max: 100, after: None }
    }
}

/// A page of a list of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskPage {
    /// The tasks. Live tasks are in the order of `due_at`, dead tasks in the order in which they are forgotten.
    pub tasks: Vec<TaskView>,
    /// For each task, the cursor behind it. A list that goes on at this cursor begins with the next task.
    pub cursors: Vec<TaskCursor>,
    /// The number of tasks that the page looked at. Tasks that the filter leaves out count, too, except those that `put_until` or
    /// `changed_until` leaves out.
    pub looked_at: usize,
    /// The cursor for the next page; `None`: this is the last page.
    pub next: Option<TaskCursor>,
    /// The seq of the last change before the page was made.
    pub as_of: Seq,
}
