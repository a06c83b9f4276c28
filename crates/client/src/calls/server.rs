//! The server as a whole: its clock, its forecast, its drain, its figures.

use tickwheel_api::{AdvanceBody, DrainBody, ForecastBody, ForecastQuery, NowBody};

use crate::call::{LONG_TIMEOUT, Request, calls};

calls! {
    /// Moves the virtual clock (ms) and returns its new time, in ms since 1970. Answers once all that fell due is ready, which may take 10
    /// minutes.
    ///
    /// # Errors
    ///
    /// As a problem: 404 on a server that runs on real time; see [`ClientError`](crate::ClientError).
    fn advance(by_ms: u64) -> i64 {
        let request = Request::post("/v1/clock/advance").json(AdvanceBody { by_ms }.to_json());
        request.timeout(LONG_TIMEOUT).read(|answer| Ok(answer.body::<NowBody>()?.now_ms))
    }

    /// How many tasks fall due when, of a queue or of all.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn forecast(query: &ForecastQuery) -> ForecastBody {
        Request::get("/v1/forecast").query(&query.to_query()).answer()
    }

    /// The server takes no new tasks from now on, in whatever queue; those that are there are worked off. A new start ends it, too.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`](crate::ClientError).
    fn drain_server() -> DrainBody { Request::post("/v1/drain").safe_to_repeat().answer() }

    /// Ends the drain of the server. Queues that were drained by themselves stay so.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`](crate::ClientError).
    fn resume_server() -> DrainBody { Request::post("/v1/resume").safe_to_repeat().answer() }

    /// The server's figures, as the page of OpenMetrics that Prometheus reads.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`](crate::ClientError).
    fn metrics() -> String { Request::get("/metrics").read(|answer| answer.text()) }

    /// Asks whether the server takes calls.
    ///
    /// # Errors
    ///
    /// Any error says that it does not, or not yet; see [`ClientError`](crate::ClientError).
    fn ready() -> () { Request::get("/readyz").read(|_| Ok(())) }
}
