//! The calls of a worker: lease tasks, and ack, nack or extend the leases.

use std::time::Duration;

use tickwheel_api::{
    AckBody, ExtendBody, LeaseBody, LeasedTask, LeasedTasks, NackBody, TokenResult, TokenResults,
};

use crate::call::{CALL_TIMEOUT, Call, Request, calls};
use crate::endpoint::queue_path;

calls! {
    /// Takes ready tasks to work on, empty if none was ready in time. Waits for as long as the body says (ms), and 30 s more for the answer.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError). After [`NoAnswer`](crate::ClientError::NoAnswer) tasks may be leased to no worker; they
    /// come back when their lease ends.
    fn lease(queue: &str, body: &LeaseBody) -> Vec<LeasedTask> {
        let timeout = CALL_TIMEOUT.saturating_add(Duration::from_millis(body.wait_ms));
        let request = Request::post(queue_path(queue, "lease")).json(body.to_json()).timeout(timeout);
        request.safe_to_repeat().read(|answer| Ok(answer.body::<LeasedTasks>()?.tasks))
    }

    /// Says that the work of these leases is done. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn ack(queue: &str, tokens: Vec<String>) -> Vec<TokenResult> {
        results(Request::post(queue_path(queue, "ack")).json(AckBody { tokens }.to_json()).safe_to_repeat())
    }

    /// Gives leases back. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn nack(queue: &str, body: &NackBody) -> Vec<TokenResult> {
        results(Request::post(queue_path(queue, "nack")).json(body.to_json()))
    }

    /// Keeps leases for longer. One result for each token, in order.
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
