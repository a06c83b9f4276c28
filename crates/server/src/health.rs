//! `/healthz` and `/readyz`.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use crate::answer;
use crate::app::Shared;
use crate::translate;

/// `GET /healthz`: 200 as long as the process answers at all. Whether it can do its work is `/readyz`'s to say: a
/// supervisor that restarted a read-only server would only lose the reads.
pub(crate) async fn alive() -> Response {
    #[derive(Serialize)]
    struct Alive {
        status: &'static str,
    }
    answer::json(StatusCode::OK, &Alive { status: "ok" })
}

/// The body of `/readyz`.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    /// Whether puts, leases and acks are taken.
    pub(crate) ready: bool,
    /// What an acknowledged call survives: `fsync` a power loss, `memory` nothing.
    pub(crate) durability: &'static str,
    /// Whether time stands still until it is advanced.
    pub(crate) virtual_clock: bool,
    /// Why nothing is changed any more; `null` if all is well.
    pub(crate) read_only: Option<String>,
    /// Whether the server was told to stop.
    pub(crate) stopping: bool,
    /// What was noticed of the wall clock.
    pub(crate) clock: ClockReport,
    /// What the start found in the data directory; `null` for a new or a memory store.
    pub(crate) recovery: Option<String>,
}

/// The wall clock, beside the one that cannot step.
#[derive(Debug, Serialize)]
pub(crate) struct ClockReport {
    /// Steps noticed since the start.
    pub(crate) steps: u64,
    /// How far the system's wall clock is from the one that the server believes, milliseconds.
    pub(crate) offset_ms: i64,
}

/// `GET /readyz`: 200 if the server takes work, 503 if not, with the same body.
pub(crate) async fn ready(app: Shared) -> Response {
    let body = translate::ready(app.queue.health(), app.stopping.is_given());
    let status = if body.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer::json(status, &body)
}
