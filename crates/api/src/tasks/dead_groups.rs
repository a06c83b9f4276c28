//! Groups of dead tasks: one for each cause of death.

use crate::declare::{body, choice, count, has, instant, key, list, may, number, object, text};
use crate::tasks::filter::GROUP_ID_DIGITS;
use crate::tasks::task::{DeathReason, FailureKind};
use crate::text::portable::INTEGER_MAX;
use crate::values::limits::FAILURE_BYTES_MAX;

/// Maximum number of examples of a group.
pub const DEAD_GROUP_EXAMPLES_MAX: usize = 3;

choice! {
    /// Which of the dead tasks of a queue are in the groups.
    pub enum DeadWindow {
        /// All dead tasks of the queue.
        All = "all",
        /// The newest ones: the server removes no other dead task later.
        Newest = "newest",
        /// Some. The newest ones were not found in the time that the server takes for it.
        Part = "part",
    }
}

body! {
    /// The groups of the dead tasks of a queue. At most 10,000 tasks are in them: the newest.
    ///
    /// The newest tasks are those that the server will remove last, and those that a worker buried last. If the time for which dead tasks are kept was changed, others may have died later.
    pub struct DeadGroupsBody: answer "DeadGroups" {
        /// The groups, the largest first.
        groups: Vec<DeadGroupBody> = has(list(object(), ""));
        /// Number of dead tasks that are in the groups.
        looked_at: u64 = has(count());
        /// Which of the dead tasks these are.
        window: DeadWindow = has(choice());
    }
}

body! {
    /// Dead tasks with one cause of death.
    pub struct DeadGroupBody: answer "DeadGroup" {
        /// The id of the group, for `group_id` in filters. It is made of `reason`, `how` and `failure`, so it is the same in each queue and at each time.
        id: String = has(text(GROUP_ID_DIGITS, ""));
        /// Why the tasks were given up.
        reason: DeathReason = has(choice());
        /// How their last attempts ended. The member is missing if no attempt failed.
        how: Option<FailureKind> = may(choice());
        /// The reason of the last failure, with numbers, UUIDs and quoted parts made `#`, but for a status such as `http 422` and an `os error`. Empty if there is none.
        failure: String = has(text(FAILURE_BYTES_MAX, ""));
        /// Number of tasks in the group.
        count: u64 = has(count());
        /// When the first of them was given up.
        first_ms as "first": i64 = has(instant());
        /// When the last of them was given up.
        last_ms as "last": i64 = has(instant());
        /// The tasks that died last, at most three.
        examples: Vec<DeadExampleBody> = has(list(object(), ""));
    }
}

body! {
    /// A dead task of a group.
    pub struct DeadExampleBody: answer "DeadExample" {
        /// The key of the task.
        key: String = has(key("order:1"));
        /// The server's number for the task.
        id: u64 = has(number(1, INTEGER_MAX));
        /// The reason that the worker gave for the last failure, as it is. Empty if there is none.
        text: String = has(text(FAILURE_BYTES_MAX, ""));
    }
}
