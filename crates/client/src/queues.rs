//! Queues: their counts, their settings, and what holds them.

use crate::exchange::Call;
use crate::url::{queue_path, queue_root};
use crate::{Client, ClientError};
use tickwheel_api::{
    DeleteQueueAnswer, PauseBody, QueueBody, QueueCounts, QueuesBody, QueuesQuery, SettingsBody,
};

impl Client {
    /// All queues and how many tasks each has.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn queues(&self) -> Result<Vec<QueueCounts>, ClientError> {
        Ok(self.list_queues(&QueuesQuery::default())?.queues)
    }

    /// The queues that are asked for, all of them or one page, and how many tasks each has.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn list_queues(&self, query: &QueuesQuery) -> Result<QueuesBody, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/queues".to_owned()).query(&query.to_query()))?.body()
    }

    /// One queue: its tasks by state and its settings. One that was never used has no tasks and is no error.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn queue(&self, queue: &str) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("GET", queue_root(queue)))?.body()
    }

    /// Lays down how a queue hands its tasks out: all of its settings, in place of those before.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn configure(&self, queue: &str, settings: &SettingsBody) -> Result<QueueBody, ClientError> {
        let call = Call::new("PUT", queue_root(queue)).json(settings.to_json());
        self.exchange.send(call.twice_is_once())?.body()
    }

    /// Changes some settings of a queue: `patch` is a JSON object as [`SettingsBody::patched`] reads it.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn reconfigure(&self, queue: &str, patch: Vec<u8>) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("PATCH", queue_root(queue)).json(patch).twice_is_once())?.body()
    }

    /// Nothing is leased from the queue from now on, until it is resumed or for as long as the body says.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn pause(&self, queue: &str, body: &PauseBody) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("POST", queue_path(queue, "pause")).json(body.to_json()))?.body()
    }

    /// The queue takes no new task from now on; those that are there are worked off.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn drain(&self, queue: &str) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("POST", queue_path(queue, "drain")).twice_is_once())?.body()
    }

    /// Ends a pause and a drain.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn resume(&self, queue: &str) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("POST", queue_path(queue, "resume")).twice_is_once())?.body()
    }

    /// Forgets a queue that has no tasks and no schedules, with its settings.
    ///
    /// # Errors
    ///
    /// As a problem: 409 with the counts while it has some; see [`ClientError`].
    pub fn delete_queue(&self, queue: &str) -> Result<DeleteQueueAnswer, ClientError> {
        self.exchange.send(Call::new("DELETE", queue_root(queue)).twice_is_once())?.body()
    }
}
