//! A schedule and its progress as a line of an export.

use crate::declare::{ValueCodec, body, count, has, instant, list, may, object, quiet, text, unless};
use crate::queues::schedule::ScheduleSpec;
use crate::text::bad_request::BadRequest;

body! {
    /// A schedule and its progress.
    ///
    /// Another server can go on with the schedule without putting a task for an instant twice.
    pub struct ExportSchedule: export "ExportSchedule" {
        /// The queue of its tasks.
        queue: String = has(text(200, "close"));
        /// The name of the schedule.
        name: String = has(text(200, "nightly"));
        /// The schedule as its owner put it.
        spec: ScheduleSpec = has(object());
        /// The first instant, from which the others are counted.
        anchor_ms as "anchor": i64 = has(instant());
        /// The last instant for which the server decided whether to put a task.
        decided_ms as "decided": i64 = has(instant());
        /// When the schedule puts its next task.
        next_at_ms as "next_at": Option<i64> = quiet(instant());
        /// The last instant for which a task was put.
        last_at_ms as "last_at": Option<i64> = quiet(instant());
        /// Number of tasks put so far.
        made: u64 = unless(0, count());
        /// Number of instants left out so far.
        skipped: u64 = unless(0, count());
        /// The key of the task that must end before the next one is put.
        running: Option<String> = may(text(256, "text"));
        /// Instants that wait until the task in `running` has ended, in ascending order.
        waiting_ms as "waiting": Vec<i64> = unless(Vec::new(), list(instant(), "write a list of instants").checked(rises));
    }
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn rises(path: &str, instants: &Vec<i64>) -> Result<(), BadRequest> {
    let Some(before) = instants.windows(2).position(|pair| pair[1] <= pair[0]) else { return Ok(()) };
    let path = format!("{path}[{}]", before + 1);
    Err(BadRequest::member(path, "is not after the instant before it", "write them in the order of time"))
}
