//! Requests and answers about the virtual clock.

use crate::declare::body::body;
use crate::declare::kind::{duration, instant};
use crate::declare::part::has;

/// Maximum step of the clock in one call (36,525 days). No task can be due later, so one call can reach any task.
const ADVANCE_MS_MAX: u64 = 36_525 * 86_400_000;

body! {
    /// How far the virtual clock moves.
    ///
    /// The body of `POST /v1/clock/advance`: `{"by": "15d"}`.
    #[derive(Copy)]
    pub struct AdvanceBody: request "Advance" {
        /// The step of the clock, `0s` to 100 years.
        by_ms as "by": u64 = has(duration().within(0, ADVANCE_MS_MAX));
    }
    later: &["to"];
    elsewhere: &[("delay", "write `by`"), ("at", "write how far the clock moves, as `by`")];
}

body! {
    /// The time of the virtual clock.
    ///
    /// The answer to `POST /v1/clock/advance`: `{"now": "2017-10-17T10:56:33.000Z"}`.
    #[derive(Copy)]
    pub struct NowBody: answer "Now" {
        /// The server's time.
        now_ms as "now": i64 = has(instant());
    }
}
