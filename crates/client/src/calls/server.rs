//! The server as a whole: its clock, its forecast, its drain, its metrics.

use tickwheel_api::{
    AdvanceBody, DrainBody, ForecastBody, ForecastQuery, IndexBody, NowBody, ReadyBody, WhoamiBody,
};

use crate::call::{LONG_TIMEOUT, Request, calls};
use crate::error::refusal;

calls! {
    /// Moves the virtual clock by this time (ms) and returns its new time (ms since 1970). The server answers when all tasks that became
    /// due are ready, which may take 10 minutes.
    ///
    /// # Errors
    ///
    /// As a problem: 404 on a server with a real clock; see [`ClientError`](crate::ClientError).
    fn advance(by_ms: u64) -> i64 {
        let request = Request::post("/v1/clock/advance").json(AdvanceBody { by_ms }.to_json());
        request.timeout(LONG_TIMEOUT).read(|answer| Ok(answer.body::<NowBody>()?.now_ms))
    }

    /// The number of tasks of one queue, or of all, that fall due in each bucket of time.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn forecast(query: &ForecastQuery) -> ForecastBody {
        Request::get("/v1/forecast").query(&query.to_query()).answer()
    }

    /// Drains the server: no queue takes new tasks, and existing tasks are still delivered. A restart also ends the drain.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`](crate::ClientError).
    fn drain_server() -> DrainBody { Request::post("/v1/drain").safe_to_repeat().answer() }

    /// Ends the drain of the server. Queues that were drained separately stay drained.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`](crate::ClientError).
    fn resume_server() -> DrainBody { Request::post("/v1/resume").safe_to_repeat().answer() }

    /// The server's metrics, as the page of OpenMetrics that Prometheus reads.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`](crate::ClientError).
    fn metrics() -> String { Request::get("/metrics").read(|answer| answer.text()) }

    /// The rights of the caller, and the queues of its token.
    ///
    /// # Errors
    ///
    /// As a problem: 401 without a token that the server knows; see [`ClientError`](crate::ClientError).
    fn whoami() -> WhoamiBody { Request::get("/v1/whoami").answer() }

    /// The addresses to begin with, and the version of the server.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn index() -> IndexBody { Request::get("/").answer() }

    /// Whether the server is ready for work, and if not, why. A server that is read-only or that stops says so in the answer.
    ///
    /// # Errors
    ///
    /// A server that starts is a problem; see [`ClientError`](crate::ClientError).
    fn health() -> ReadyBody {
        Request::get("/readyz")
            .also_answered(503)
            .read(|answer| answer.body().map_err(|_| refusal(answer.status, &answer.bytes)))
    }
}
