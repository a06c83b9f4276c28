//! The server itself: its index, its clock and its drain here; its health, its jobs, its backups, its events and who asks it in the files below.

pub(crate) mod backup;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod job;
pub(crate) mod whoami;

use crate::declare::{body, duration, flag, has, instant, may, text};

/// Maximum length of a name or an address (bytes).
const TEXT_BYTES_MAX: usize = 255;

body! {
    /// The addresses to begin with, relative to the one that was asked for.
    ///
    /// The answer to `GET /`.
    pub struct IndexBody: answer "Index" {
        /// Always `tickwheel`.
        name: String = has(text(TEXT_BYTES_MAX, "tickwheel"));
        /// Version of the server.
        version: String = has(text(TEXT_BYTES_MAX, "0.1.0"));
        /// The description of the API, as OpenAPI 3.1.
        openapi: String = has(text(TEXT_BYTES_MAX, "openapi.json"));
        /// Whether the process is alive.
        health: String = has(text(TEXT_BYTES_MAX, "healthz"));
        /// Whether the server is ready for work.
        ready: String = has(text(TEXT_BYTES_MAX, "readyz"));
        /// The metrics for Prometheus.
        metrics: String = has(text(TEXT_BYTES_MAX, "metrics"));
        /// The pages for a browser, if there are any.
        console: Option<String> = may(text(TEXT_BYTES_MAX, "console/"));
        /// The page of the documentation with all calls: a path in the source of Tickwheel.
        docs: String = has(text(TEXT_BYTES_MAX, "docs/reference/http.md"));
    }
}

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

body! {
    /// Whether the server drains.
    ///
    /// The answer of `POST /v1/drain` and `POST /v1/resume`: `{"draining": true}`.
    #[derive(Copy)]
    pub struct DrainBody: answer "Drained" {
        /// Whether the server refuses new tasks. All other calls go on.
        draining: bool = has(flag());
    }
}
