//! A schedule, and how far it has come, as a line of an export.

use super::parts::quiet;
use crate::bad_request::BadRequest;
use crate::body::body;
use crate::kind::{Kind, count, instant, list, object, text};
use crate::part::{has, may, unless};
use crate::schedule::ScheduleSpec;

body! {
    /// A schedule, and how far it has come.
    ///
    /// It is enough to go on elsewhere without making a task of an instant twice.
    pub struct ExportSchedule: export "ExportSchedule" {
        /// The queue that its tasks are put into.
        queue: String = has(text(200, "close"));
        /// Its name.
        name: String = has(text(200, "nightly"));
        /// What its owner put.
        spec: ScheduleSpec = has(object());
        /// The first instant of all, from which the others are counted.
        anchor_ms as "anchor": i64 = has(instant());
        /// All instants up to this one are decided.
        decided_ms as "decided": i64 = has(instant());
        /// When it makes its next task.
        next_at_ms as "next_at": Option<i64> = quiet(instant());
        /// The last instant that a task was made of.
        last_at_ms as "last_at": Option<i64> = quiet(instant());
        /// Tasks made so far.
        made: u64 = unless(0, count());
        /// Instants left out so far.
        skipped: u64 = unless(0, count());
        /// The key of the task that has to end before another is made.
        running: Option<String> = may(text(256, "text"));
        /// Instants whose turn comes when it has, rising.
        waiting_ms as "waiting": Vec<i64> = unless(Vec::new(), list(instant(), "write a list of instants").checked(rises));
    }
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn rises(path: &str, instants: &Vec<i64>) -> Result<(), BadRequest> {
    let Some(before) = instants.windows(2).position(|pair| pair[1] <= pair[0]) else { return Ok(()) };
    let path = format!("{path}[{}]", before + 1);
    Err(BadRequest::member(path, "is not after the instant before it", "write them in the order of time"))
}
