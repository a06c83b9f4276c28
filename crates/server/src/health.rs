//! `/healthz` and `/readyz`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tickwheel_queue::ListQueues;
use tokio::time::timeout;

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
    /// Whether leases and acks are taken, and puts unless it drains.
    pub(crate) ready: bool,
    /// Why not; `null` if they are.
    pub(crate) why: Option<String>,
    /// Whether no new tasks are taken while all else goes on.
    pub(crate) draining: bool,
    /// What an acknowledged call survives: `fsync` a power loss, `os` a crash of the process, `memory` nothing.
    pub(crate) durability: &'static str,
    /// Whether time stands still until it is advanced.
    pub(crate) virtual_clock: bool,
    /// Why nothing is changed any more; `null` if all is well.
    pub(crate) read_only: Option<String>,
    /// What was noticed of the wall clock.
    pub(crate) clock: ClockReport,
    /// What an operator should know of the last recovery; `null` if all was in order.
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

/// 1 s for the queue to answer a question that costs it nothing.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// `GET /readyz`: 200 if the server takes work, 503 if not, with the same body.
///
/// It asks the queue: what is known without asking would stay true of a queue whose thread is stuck or has died. A server that drains is ready:
/// whoever were to keep its workers away would keep it from ever being empty.
pub(crate) async fn ready(app: Shared) -> Response {
    // One queue is enough of an answer.
    let question = ListQueues { max: 1, ..ListQueues::default() };
    let answered = timeout(ANSWER_TIME_MAX, app.queue.queues(question)).await;
    let silent = match answered {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("the queue did not answer within {ANSWER_TIME_MAX:?}")),
    };
    let stopping = app.stopping.is_given().then(|| "the server is stopping".to_owned());
    let draining = app.draining.load(Ordering::Relaxed);
    let body = translate::ready(app.queue.health(), draining, stopping.or(silent));
    let status = if body.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer::json(status, &body)
}
