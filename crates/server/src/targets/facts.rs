//! [`TargetFacts`]: what there is to say about the target of a queue when one of its tasks waits.

use tickwheel_api::{AttemptBody, TargetOrder, TargetRow, TargetState};
use tickwheel_push::AttemptRecord;
use tickwheel_queue::{QueueName, TargetRecord};

use super::made;
use super::outside::Outside;
use super::shown;
use super::stored::Stored;

/// The target of a queue, and the last attempt to send it a task.
pub(crate) struct TargetFacts {
    /// The target as lists show it.
    pub(crate) row: TargetRow,
    /// Whether the server has started the target. It starts all targets as soon as it can read them.
    pub(crate) is_started: bool,
    /// Whether the server can send to the target. If not, it lacks something, such as a key, or the settings are wrong.
    pub(crate) is_usable: bool,
    /// The largest number of messages that are under way at one time now.
    pub(crate) limit: u64,
    /// The same if the target has not failed lately.
    pub(crate) concurrency: u64,
    /// The order of the messages.
    pub(crate) order: TargetOrder,
    /// The last attempt for a task with the key of the question.
    pub(crate) last_attempt: Option<AttemptBody>,
}

impl TargetFacts {
    /// `running`: the state of the target; `None`: it is not started. `now_ms`: the time (ms since 1970).
    pub(super) fn of(
        outside: &Outside,
        queue: &QueueName,
        record: &TargetRecord,
        running: Option<&tickwheel_push::TargetView>,
        last_attempt: Option<&AttemptRecord>,
        now_ms: i64,
    ) -> Self {
        let stored = Stored::read(record).ok();
        let row = shown::row(queue, stored.as_ref().map(|stored| &stored.target), running, now_ms);
        // To make a target costs little, and is needed for a disabled one only.
        let is_usable = row.state != TargetState::Disabled
            || stored.as_ref().is_some_and(|stored| made::target(outside, queue, stored).is_ok());
        let concurrency = stored.as_ref().map_or(0, |stored| made::plan(&stored.target).concurrency as u64);
        let order = stored.and_then(|stored| stored.target.order).unwrap_or(TargetOrder::None);
        Self {
            row,
            is_started: running.is_some(),
            is_usable,
            limit: running.map_or(0, |running| running.limit as u64),
            concurrency,
            order,
            last_attempt: last_attempt.map(shown::attempt),
        }
    }
}
