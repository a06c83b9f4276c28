//! Pages of tasks.

use super::task_view::{State, TaskView};
use crate::cursor::TaskCursor;
use crate::name::{Group, QueueName, Tag};
use crate::task::Death;
use crate::time::{Seq, Timestamp};

/// A filter: tasks that meet all of these conditions. A field that is `None` is no condition. All `None`: every task that is not dead.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskFilter {
    /// In this state.
    pub state: Option<State>,
    /// Due at this instant or later.
    pub due_from: Option<Timestamp>,
    /// Due at this instant or earlier.
    pub due_to: Option<Timestamp>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// In this group.
    pub group: Option<Group>,
    /// Dead for this reason.
    pub why: Option<Death>,
    /// Put by this change or an earlier one.
    pub put_until: Option<Seq>,
    /// Not changed by its owner after this change: its version is at most this.
    pub changed_until: Option<Seq>,
}

impl TaskFilter {
    /// Selects the tasks in this state.
    #[must_use]
    pub fn in_state(state: State) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Whether the filter selects this task, as it is shown.
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

/// Pages through the live tasks of a queue in the order of `due_at`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// The queue.
    pub queue: QueueName,
    /// Only these tasks.
    pub filter: TaskFilter,
    /// The largest number of tasks that the page looks at. A page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::cursor::TaskCursor>,
}

/// Pages through the tasks of all queues, live and dead, in the order of time: live tasks by their `due_at`, dead tasks by the instant at
/// which they are forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllTasks {
    /// The largest number of tasks of the page, at least 1. A page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::cursor::TaskCursor>,
}

impl List {
    /// The first page: all states, at most 100 tasks looked at.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self { queue: queue.clone(), filter: TaskFilter::default(), max: 100, after: None }
    }
}

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskPage {
    /// The tasks, in the order of `due_at`.
    pub tasks: Vec<TaskView>,
    /// A cursor behind each task. A list that goes on at a cursor has the tasks that follow.
    pub cursors: Vec<TaskCursor>,
    /// How many tasks of the queue were looked at. Tasks that the filter leaves out count, too.
    pub looked_at: usize,
    /// Where the next page starts; `None` at the end.
    pub next: Option<TaskCursor>,
    /// The last change before the page was made.
    pub as_of: Seq,
}
