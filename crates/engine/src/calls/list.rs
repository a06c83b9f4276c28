//! Pages of tasks.

use super::task_view::{State, TaskView};
use crate::cursor::TaskCursor;
use crate::name::{Group, QueueName, Tag};
use crate::task::Death;
use crate::time::{Seq, Timestamp};

/// Tasks that have all of these; what is `None` does not matter. All `None`: every task that is not dead.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskFilter {
    /// In this state.
    pub state: Option<State>,
    /// Due then or later.
    pub due_from: Option<Timestamp>,
    /// Due then or earlier.
    pub due_to: Option<Timestamp>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// In this group.
    pub group: Option<Group>,
    /// Dead, and given up for this.
    pub why: Option<Death>,
    /// Put with this change or before.
    pub put_until: Option<Seq>,
    /// Not changed by its owner after this change: its version is at most this.
    pub changed_until: Option<Seq>,
}

impl TaskFilter {
    /// Tasks in this state.
    #[must_use]
    pub fn in_state(state: State) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Whether a task as it is shown is one of them.
    #[must_use]
    pub fn matches(&self, task: &TaskView) -> bool {
        let Self { state, due_from, due_to, tag, group, why, put_until, changed_until } = self;
        let in_state = state.map_or(task.state != State::Dead, |state| state == task.state);
        in_state
            && due_from.is_none_or(|from| from <= task.due_at)
            && due_to.is_none_or(|to| task.due_at <= to)
            && tag.as_ref().is_none_or(|tag| task.body.tags.contains(tag))
            && group.as_ref().is_none_or(|group| task.group.as_ref() == Some(group))
            && why.is_none_or(|why| task.dead.is_some_and(|dead| dead.why == why))
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
    /// Looks at no more than so many tasks; a page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::cursor::TaskCursor>,
}

/// Pages through the tasks of all queues, live and dead, in the order in which time has to do with them: live ones by their `due_at`, dead ones by when they
/// are forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllTasks {
    /// How many the page has at most, at least 1. A page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::cursor::TaskCursor>,
}

impl List {
    /// The first page, all states, 100 tasks looked at.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self { queue: queue.clone(), filter: TaskFilter::default(), max: 100, after: None }
    }
}

/// One page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskPage {
    /// The tasks, in the order of `due_at`.
    pub tasks: Vec<TaskView>,
    /// A cursor behind each of them: a list that goes on there has those that follow.
    pub cursors: Vec<TaskCursor>,
    /// Tasks of the queue that were looked at, those that the filter leaves out among them.
    pub looked_at: usize,
    /// Where the next page starts; `None` at the end.
    pub next: Option<TaskCursor>,
    /// The last change when the page was made.
    pub as_of: Seq,
}
