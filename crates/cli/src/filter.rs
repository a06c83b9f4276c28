//! The filter that selects tasks of a queue.

use clap::{Args, ValueEnum};
use tickwheel_api::{DeathReason, TaskFilter, TaskState};

use crate::values;

/// The conditions for tasks in any state.
#[derive(Args, Debug)]
pub(crate) struct Filter {
    /// Only tasks in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    #[command(flatten)]
    conditions: Conditions,
}

/// The conditions that a task meets in any state.
#[derive(Args, Debug)]
pub(crate) struct Conditions {
    /// Only tasks due at this time or later, RFC 3339 or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    due_from: Option<i64>,
    /// Only tasks due at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    due_to: Option<i64>,
    /// Only tasks with this tag
    #[arg(long, value_name = "TAG", value_parser = values::tag)]
    tag: Option<String>,
    /// Only tasks of this group
    #[arg(long, value_name = "GROUP", value_parser = values::group)]
    group: Option<String>,
    /// Only tasks whose keys contain this text
    #[arg(long, value_name = "TEXT", value_parser = values::key)]
    key_contains: Option<String>,
}

/// The conditions for dead tasks alone.
#[derive(Args, Debug)]
pub(crate) struct OfDead {
    /// Only dead tasks that were given up for this reason
    #[arg(long, value_enum)]
    reason: Option<Reason>,
    /// Only dead tasks whose last failure has a reason with this text in it
    #[arg(long, value_name = "TEXT")]
    failure: Option<String>,
    /// Only dead tasks of this group of `tickwheel dead QUEUE --groups`
    #[arg(long, value_name = "ID")]
    group_id: Option<String>,
}

/// The names of the options of [`Filter`].
pub(crate) const FILTER: [&str; 6] = ["state", "due_from", "due_to", "tag", "group", "key_contains"];
/// The names of the options of [`Conditions`] and [`OfDead`].
pub(crate) const DEAD_FILTER: [&str; 8] =
    ["due_from", "due_to", "tag", "group", "key_contains", "reason", "failure", "group_id"];

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Scheduled,
    Ready,
    Leased,
    Dead,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
#[value(rename_all = "snake_case")]
enum Reason {
    MaxAttempts,
    Expired,
    Buried,
    Refused,
    Template,
    TooLarge,
}

impl Filter {
    /// Whether the filter has no condition.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.is_none() && self.conditions.is_empty()
    }

    /// Whether the filter selects dead tasks.
    pub(crate) fn is_of_dead(&self) -> bool {
        self.state == Some(State::Dead)
    }

    /// The filter in the form that the server takes.
    pub(crate) fn wanted(self) -> TaskFilter {
        let state = self.state.map(|state| match state {
            State::Scheduled => TaskState::Scheduled,
            State::Ready => TaskState::Ready,
            State::Leased => TaskState::Leased,
            State::Dead => TaskState::Dead,
        });
        TaskFilter { state, ..self.conditions.wanted() }
    }
}

impl Conditions {
    /// Whether there is no condition.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { due_from, due_to, tag, group, key_contains } = self;
        let has_text = tag.is_some() || group.is_some() || key_contains.is_some();
        !has_text && due_from.is_none() && due_to.is_none()
    }

    /// The conditions in the form that the server takes.
    pub(crate) fn wanted(self) -> TaskFilter {
        let Self { due_from: due_from_ms, due_to: due_to_ms, tag, group, key_contains } = self;
        TaskFilter { due_from_ms, due_to_ms, tag, group, key_contains, ..TaskFilter::default() }
    }
}

impl OfDead {
    /// Whether there is no condition.
    pub(crate) fn is_empty(&self) -> bool {
        self.reason.is_none() && self.failure.is_none() && self.group_id.is_none()
    }

    /// Adds the conditions to a filter.
    pub(crate) fn added_to(self, filter: TaskFilter) -> TaskFilter {
        let reason = self.reason.map(|reason| match reason {
            Reason::MaxAttempts => DeathReason::MaxAttempts,
            Reason::Expired => DeathReason::Expired,
            Reason::Buried => DeathReason::Buried,
            Reason::Refused => DeathReason::Refused,
            Reason::Template => DeathReason::Template,
            Reason::TooLarge => DeathReason::TooLarge,
        });
        TaskFilter { reason, failure: self.failure, group_id: self.group_id, ..filter }
    }
}
