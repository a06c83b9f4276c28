//! Calls that change many tasks, and the jobs that such a call may become.

use crate::client::ADVANCE_TIMEOUT;
use crate::exchange::Call;
use crate::url::queue_path;
use crate::{Client, ClientError};
use serde::de::DeserializeOwned;
use tickwheel_api::{
    BulkCancelAnswer, BulkCancelBody, BulkMoveAnswer, BulkMoveBody, JobBody, JobsBody, PurgeAnswer, PurgeBody,
};

impl Client {
    /// Cancels all tasks that a filter finds. `Err` in the answer: there are too many to wait for, and a job does it, see [`job`](Self::job).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn cancel_many(
        &self,
        queue: &str,
        body: &BulkCancelBody,
    ) -> Result<Result<BulkCancelAnswer, JobBody>, ClientError> {
        self.many(queue, "cancel", body.to_json())
    }

    /// Gives all tasks that a filter finds another time. `Err` in the answer: there are too many to wait for, and a job does it, see
    /// [`job`](Self::job).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn move_many(
        &self,
        queue: &str,
        body: &BulkMoveBody,
    ) -> Result<Result<BulkMoveAnswer, JobBody>, ClientError> {
        self.many(queue, "move", body.to_json())
    }

    /// Removes all tasks of a queue, live and dead; its settings and schedules stay. `Err` in the answer: there are too many to wait for,
    /// and a job does it, see [`job`](Self::job).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn purge(&self, queue: &str, body: PurgeBody) -> Result<Result<PurgeAnswer, JobBody>, ClientError> {
        self.many(queue, "purge", body.to_json())
    }

    fn many<A: DeserializeOwned>(
        &self,
        queue: &str,
        verb: &str,
        body: Vec<u8>,
    ) -> Result<Result<A, JobBody>, ClientError> {
        let call = Call::new("POST", queue_path(queue, verb)).json(body).timeout(ADVANCE_TIMEOUT);
        let answer = self.exchange.send(call)?;
        if answer.status == 202 { Ok(Err(answer.body()?)) } else { Ok(Ok(answer.body()?)) }
    }

    /// The jobs under way and the last that are over, the newest first.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn jobs(&self) -> Result<Vec<JobBody>, ClientError> {
        Ok(self.exchange.send(Call::new("GET", "/v1/jobs".to_owned()))?.body::<JobsBody>()?.jobs)
    }

    /// How a job goes.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is none with this number; see [`ClientError`].
    pub fn job(&self, id: u64) -> Result<JobBody, ClientError> {
        self.exchange.send(Call::new("GET", format!("/v1/jobs/{id}")))?.body()
    }

    /// Stops a job; what it has done stays.
    ///
    /// # Errors
    ///
    /// As for [`job`](Self::job).
    pub fn stop_job(&self, id: u64) -> Result<JobBody, ClientError> {
        self.exchange.send(Call::new("DELETE", format!("/v1/jobs/{id}")))?.body()
    }
}
