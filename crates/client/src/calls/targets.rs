//! Targets: the places to which the server sends the tasks of a queue.

use hyper::Method;
use tickwheel_api::path::queue_path;
use tickwheel_api::{
    AttemptBody, AttemptsBody, AttemptsQuery, DeleteTargetAnswer, RotateBody, RotatedBody, TargetBody,
    TargetTestBody, TargetView, TargetsBody,
};

use crate::call::{LONG_TIMEOUT, Request, calls};

calls! {
    /// Gives a queue a target, or replaces it.
    ///
    /// # Errors
    ///
    /// As a problem: 400 for a URL, a template, a connection or a secret that cannot be used, 412 if the target has another version
    /// than `if_match`; see [`ClientError`](crate::ClientError).
    fn put_target(queue: &str, target: &TargetBody, if_match: Option<u64>) -> TargetView {
        let request = Request::new(Method::PUT, queue_path(queue, "target")).if_match(if_match);
        request.json(target.to_json()).safe_to_repeat().answer()
    }

    /// Returns the target of a queue and its state.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if the queue has no target; see [`ClientError`](crate::ClientError).
    fn target(queue: &str) -> TargetView { Request::get(queue_path(queue, "target")).answer() }

    /// Takes the target of a queue away. Messages under way are settled first.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if the queue has no target; see [`ClientError`](crate::ClientError).
    fn delete_target(queue: &str, if_match: Option<u64>) -> DeleteTargetAnswer {
        Request::new(Method::DELETE, queue_path(queue, "target")).if_match(if_match).answer()
    }

    /// Pauses a target: nothing more is sent to it.
    ///
    /// # Errors
    ///
    /// As for [`target`](Self::target).
    fn pause_target(queue: &str) -> TargetView {
        Request::post(queue_path(queue, "target/pause")).safe_to_repeat().answer()
    }

    /// Ends the pause of a target, and enables one that was disabled.
    ///
    /// # Errors
    ///
    /// As for [`target`](Self::target).
    fn resume_target(queue: &str) -> TargetView {
        Request::post(queue_path(queue, "target/resume")).safe_to_repeat().answer()
    }

    /// Makes a new secret that signs. The secrets of before sign, too, for the time of the body.
    ///
    /// # Errors
    ///
    /// As for [`target`](Self::target), and 409 if the server has no key for secrets.
    fn rotate_target(queue: &str, body: &RotateBody) -> RotatedBody {
        Request::post(queue_path(queue, "target/rotate")).json(body.to_json()).answer()
    }

    /// Sends one message that is not a task, and returns the result.
    ///
    /// # Errors
    ///
    /// As for [`target`](Self::target). A message that is not delivered is no error: the answer says so.
    fn test_target(queue: &str) -> TargetTestBody {
        Request::post(queue_path(queue, "target/test")).timeout(LONG_TIMEOUT).answer()
    }

    /// Returns the last attempts to send messages, the newest first.
    ///
    /// # Errors
    ///
    /// As for [`target`](Self::target).
    fn attempts(queue: &str, query: &AttemptsQuery) -> Vec<AttemptBody> {
        let request = Request::get(queue_path(queue, "target/attempts")).query(&query.to_query());
        request.read(|answer| Ok(answer.body::<AttemptsBody>()?.attempts))
    }

    /// Returns the targets in the scope of the token, and the connections to brokers.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn targets() -> TargetsBody { Request::get("/v1/targets").answer() }
}
