//! The settings of a queue as a line of an export.

use crate::declare::{body, flag, has, instant, object, or, quiet, text};
use crate::queues::settings::SettingsBody;
use crate::text::bad_request::BadRequest;

body! {
    /// The settings of a queue, and whether it is paused or draining.
    pub struct ExportQueue: export "ExportQueue" {
        /// The name of the queue.
        queue: String = has(text(200, "close"));
        /// The settings of the queue.
        settings: SettingsBody = or(SettingsBody::default(), object());
        /// Whether the queue is paused, so that nothing is leased.
        paused: bool = or(false, flag());
        /// When the pause ends. Absent if it lasts until the queue is resumed.
        paused_until_ms as "paused_until": Option<i64> = quiet(instant());
        /// Whether the queue is draining, so that no task is added.
        draining: bool = or(false, flag());
    }
    check: |queue: &Self, _| queue.check_pause();
}

impl ExportQueue {
    fn check_pause(&self) -> Result<(), BadRequest> {
        if self.paused || self.paused_until_ms.is_none() {
            return Ok(());
        }
        let what = "means nothing without `\"paused\": true`";
        Err(BadRequest::member("paused_until", what, "leave it out, or add `\"paused\": true`"))
    }
}
