//! Moving the virtual clock.

use crate::body::body;
use crate::kind::{duration, instant};
use crate::part::has;

/// 36,525 days: the farthest a task can be due, so one call can reach any task.
const ADVANCE_MS_MAX: u64 = 36_525 * 86_400_000;

body! {
    /// How far the clock moves.
    ///
    /// The body of `POST /v1/clock/advance`: `{"by": "15d"}`.
    #[derive(Copy)]
    pub struct AdvanceBody: request "Advance" {
        /// `0s` to 100 years.
        by_ms as "by": u64 = has(duration().within(0, ADVANCE_MS_MAX));
    }
    later: &["to"];
    elsewhere: &[("delay", "write `by`"), ("at", "say how far, not until when: `by`")];
}

body! {
    /// The virtual clock.
    ///
    /// The answer of the virtual clock: `{"now": "2017-10-17T10:56:33.000Z"}`.
    #[derive(Copy)]
    pub struct NowBody: answer "Now" {
        /// The server's time.
        now_ms as "now": i64 = has(instant());
    }
}
