//! Queues: their counts, their settings, and what holds them.

use hyper::Method;
use tickwheel_api::{
    DeleteQueueAnswer, PauseBody, QueueBody, QueueCounts, QueuesBody, QueuesQuery, SettingsBody,
};

use crate::call::{Request, calls};
use crate::endpoint::{queue_path, queue_root};

calls! {
    /// All queues and how many tasks each has.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn queues() -> Vec<QueueCounts> {
        Request::get("/v1/queues").read(|answer| Ok(answer.body::<QueuesBody>()?.queues))
    }

    /// The queues that are asked for, all of them or one page, and how many tasks each has.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn list_queues(query: &QueuesQuery) -> QueuesBody {
        Request::get("/v1/queues").query(&query.to_query()).answer()
    }

    /// One queue: its tasks by state and its settings. One that was never used has no tasks and is no error.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn queue(queue: &str) -> QueueBody { Request::get(queue_root(queue)).answer() }

    /// Configures a queue: all of its settings, in place of those before.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn configure(queue: &str, settings: &SettingsBody) -> QueueBody {
        Request::new(Method::PUT, queue_root(queue)).json(settings.to_json()).safe_to_repeat().answer()
    }

    /// Changes some settings of a queue: `patch` is a JSON object as [`SettingsBody::patched`] reads it.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn reconfigure(queue: &str, patch: Vec<u8>) -> QueueBody {
        Request::new(Method::PATCH, queue_root(queue)).json(patch).safe_to_repeat().answer()
    }

    /// Nothing is leased from the queue from now on, until it is resumed or for as long as the body says.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn pause(queue: &str, body: &PauseBody) -> QueueBody {
        Request::post(queue_path(queue, "pause")).json(body.to_json()).answer()
    }

    /// The queue takes no new task from now on; those that are there are worked off.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn drain(queue: &str) -> QueueBody { Request::post(queue_path(queue, "drain")).safe_to_repeat().answer() }

    /// Ends a pause and a drain.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn resume(queue: &str) -> QueueBody { Request::post(queue_path(queue, "resume")).safe_to_repeat().answer() }

    /// Forgets a queue that has no tasks and no schedules, with its settings.
    ///
    /// # Errors
    ///
    /// As a problem: 409 with the counts while it has some; see [`ClientError`](crate::ClientError).
    fn delete_queue(queue: &str) -> DeleteQueueAnswer {
        Request::new(Method::DELETE, queue_root(queue)).safe_to_repeat().answer()
    }
}
