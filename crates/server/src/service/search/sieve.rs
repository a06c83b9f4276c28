//! The conditions of a filter that the queue does not know, because they search in texts.

use tickwheel_api::{TaskFilter, failure_shape};
use tickwheel_queue::{Dead, Failure, TaskView};

use crate::base::aside::Steps;
use crate::service::search::dead_group::group_id;

/// The texts that a filter searches for.
#[derive(Copy, Clone)]
pub(crate) struct Sieve<'f> {
    key_contains: Option<&'f str>,
    failure: Option<&'f str>,
    group_id: Option<&'f str>,
}

impl<'f> Sieve<'f> {
    pub(crate) fn of(filter: &'f TaskFilter) -> Self {
        let TaskFilter { key_contains, failure, group_id, .. } = filter;
        Self {
            key_contains: key_contains.as_deref(),
            failure: failure.as_deref(),
            group_id: group_id.as_deref(),
        }
    }

    /// Whether each task passes.
    pub(crate) fn is_open(self) -> bool {
        self.key_contains.is_none() && self.failure.is_none() && self.group_id.is_none()
    }

    /// Whether the task matches. `steps` counts the work.
    pub(crate) async fn passes(self, task: &TaskView, steps: &mut Steps) -> bool {
        if self.is_open() {
            return true;
        }
        let text = last_failure(task).and_then(|failure| failure.reason.as_deref()).unwrap_or_default();
        steps.did(if self.failure.or(self.group_id).is_some() { 16 * text.len() } else { 0 }).await;
        let key = task.key.as_str();
        self.key_contains.is_none_or(|part| key.contains(part))
            && self.failure.is_none_or(|part| text.contains(part))
            && self.group_id.is_none_or(|id| group_of(task).is_some_and(|of| of == id))
    }
}

/// The last failure of a task.
pub(crate) fn last_failure(task: &TaskView) -> Option<&Failure> {
    task.extra.failures.last()
}

/// The id of the group of a task; `None`: it is not dead.
fn group_of(task: &TaskView) -> Option<String> {
    let Dead { why, .. } = task.extra.dead?;
    let failure = last_failure(task);
    let text = failure.and_then(|failure| failure.reason.as_deref()).unwrap_or_default();
    Some(group_id(why, failure.map(|failure| failure.how), &failure_shape(text)))
}
