//! The filter that selects tasks of a queue.

use clap::{Args, ValueEnum};
use tickwheel_api::{TaskFilter, TaskState};

use crate::values;

/// The conditions for tasks.
#[derive(Args, Debug)]
pub(crate) struct Filter {
    /// Only tasks in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only tasks due at this time or later, RFC 3339 or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    due_from: Option<i64>,
    /// Only tasks due at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    due_to: Option<i64>,
    /// Only tasks with this tag
    #[arg(long, value_name = "TAG", value_parser = values::tag)]
    tag: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum State {
    Scheduled,
    Ready,
    Leased,
    Dead,
}

impl Filter {
    /// Whether the filter has no condition.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.is_none() && self.due_from.is_none() && self.due_to.is_none() && self.tag.is_none()
    }

    /// The filter in the form that the server takes.
    pub(crate) fn wanted(self) -> TaskFilter {
        let state = self.state.map(|state| match state {
            State::Scheduled => TaskState::Scheduled,
            State::Ready => TaskState::Ready,
            State::Leased => TaskState::Leased,
            State::Dead => TaskState::Dead,
        });
        let (due_from_ms, due_to_ms) = (self.due_from, self.due_to);
        TaskFilter { state, due_from_ms, due_to_ms, tag: self.tag }
    }
}
