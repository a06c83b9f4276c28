//! Queues: their counts, their settings, and their pauses and drains.

use hyper::Method;
use tickwheel_api::path::{queue_path, queue_root};
use tickwheel_api::{
    DeleteQueueAnswer, PauseBody, QueueBody, QueueCounts, QueuesBody, QueuesQuery, SettingsBody,
};

use crate::call::{Request, calls};

calls! {
    /// All queues, with their numbers of tasks.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn queues() -> Vec<QueueCounts> {
        Request::get("/v1/queues").read(|answer| Ok(answer.body::<QueuesBody>()?.queues))
    }

    /// The requested queues (all of them, or one page), with their numbers of tasks.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn list_queues(query: &QueuesQuery) -> QueuesBody {
        Request::get("/v1/queues").query(&query.to_query()).answer()
    }

    /// One queue: its tasks by state, and its settings. A queue that was never used has no tasks and is not
    /// an error: its `exists` is `false`.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn queue(queue: &str) -> QueueBody { Request::get(queue_root(queue)).answer() }

    /// Configures a queue: replaces all of its settings.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn configure(queue: &str, settings: &SettingsBody) -> QueueBody {
        Request::new(Method::PUT, queue_root(queue)).json(settings.to_json()).safe_to_repeat().answer()
    }

    /// Changes some settings of a queue. `patch` is a JSON object as [`SettingsBody::patched`] reads it.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn reconfigure(queue: &str, patch: Vec<u8>) -> QueueBody {
        Request::new(Method::PATCH, queue_root(queue)).json(patch).safe_to_repeat().answer()
    }

    /// Pauses the queue: no task is leased from it until it is resumed, or until the time of the body is
    /// over.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn pause(queue: &str, body: &PauseBody) -> QueueBody {
        Request::post(queue_path(queue, "pause")).json(body.to_json()).answer()
    }

    /// Drains the queue: it takes no new task, and its existing tasks are still delivered.
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

    /// Deletes a queue that has no tasks and no schedules, with its settings.
    ///
    /// # Errors
    ///
    /// As a problem: 409 with the counts if it has tasks or schedules; see
    /// [`ClientError`](crate::ClientError).
    fn delete_queue(queue: &str) -> DeleteQueueAnswer {
        Request::new(Method::DELETE, queue_root(queue)).safe_to_repeat().answer()
    }
}
