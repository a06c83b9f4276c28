//! What a queue's owner configured, as a line of an export.

use super::parts::quiet;
use crate::bad_request::BadRequest;
use crate::body::body;
use crate::kind::{flag, instant, object, text};
use crate::part::{has, or};
use crate::settings::SettingsBody;

body! {
    /// What a queue's owner configured.
    pub struct ExportQueue: export "ExportQueue" {
        /// Its name.
        queue: String = has(text(200, "close"));
        /// Its settings.
        settings: SettingsBody = or(SettingsBody::default(), object());
        /// Whether nothing is leased.
        paused: bool = or(false, flag());
        /// When the pause ends; not there: until it is resumed.
        paused_until_ms as "paused_until": Option<i64> = quiet(instant());
        /// Whether no task is added.
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
