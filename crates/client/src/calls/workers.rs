//! The calls of a worker: lease tasks, and ack, nack or extend the leases.

use std::time::Duration;

use tickwheel_api::path::queue_path;
use tickwheel_api::{
    AckBody, ExtendBody, LeaseBody, LeasedTask, LeasedTasks, LeasesPage, LeasesQuery, NackBody, TokenResult,
    TokenResults,
};

use crate::call::{CALL_TIMEOUT, Call, Request, calls};

calls! {
    /// Leases ready tasks. The result is empty if no task was ready in time. The call waits for the time of the body (ms), and 30 s more
    /// for the answer.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError). After [`NoAnswer`](crate::ClientError::NoAnswer) tasks may be leased although no worker got
    /// them. They are ready again when their lease ends.
    fn lease(queue: &str, body: &LeaseBody) -> Vec<LeasedTask> {
        let timeout = CALL_TIMEOUT.saturating_add(Duration::from_millis(body.wait_ms));
        let request = Request::post(queue_path(queue, "lease")).json(body.to_json()).timeout(timeout);
        request.safe_to_repeat().read(|answer| Ok(answer.body::<LeasedTasks>()?.tasks))
    }

    /// One page of the leases that run: which worker has which task.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn leases(query: &LeasesQuery) -> LeasesPage {
        Request::get("/v1/leases").query(&query.to_query()).answer()
    }

    /// Acks tasks: the work of these leases is done. Returns one result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn ack(queue: &str, tokens: Vec<String>) -> Vec<TokenResult> {
        results(Request::post(queue_path(queue, "ack")).json(AckBody { tokens }.to_json()).safe_to_repeat())
    }

    /// Gives leases back. Returns one result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn nack(queue: &str, body: &NackBody) -> Vec<TokenResult> {
        results(Request::post(queue_path(queue, "nack")).json(body.to_json()))
    }

    /// Extends leases. Returns one result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn extend(queue: &str, body: &ExtendBody) -> Vec<TokenResult> {
        results(Request::post(queue_path(queue, "extend")).json(body.to_json()).safe_to_repeat())
    }
}

fn results(request: Request) -> Call<Vec<TokenResult>> {
    request.read(|answer| Ok(answer.body::<TokenResults>()?.results))
}
