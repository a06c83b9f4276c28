//! Calls that change many tasks, and the jobs that such a call may become.

use hyper::Method;
use serde::de::DeserializeOwned;
use tickwheel_api::path::queue_path;
use tickwheel_api::{
    BulkCancelAnswer, BulkCancelBody, BulkMoveAnswer, BulkMoveBody, BulkRedriveAnswer, JobBody, JobsBody,
    PurgeAnswer, PurgeBody, RedriveBody, TaskFilter,
};

use crate::call::{Call, LONG_TIMEOUT, Request, calls};

calls! {
    /// Cancels all tasks that a filter finds. `Err` in the answer: the tasks are too many to wait for, so a job does the work, see
    /// [`job`](Self::job). An answer may take 10 minutes.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn cancel_many(queue: &str, body: &BulkCancelBody) -> Result<BulkCancelAnswer, JobBody> {
        many(queue, "cancel", body.to_json())
    }

    /// Gives another due time to all tasks that a filter finds. `Err` in the answer: the tasks are too many to wait for, so a job does the
    /// work, see [`job`](Self::job). An answer may take 10 minutes.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn move_many(queue: &str, body: &BulkMoveBody) -> Result<BulkMoveAnswer, JobBody> {
        many(queue, "move", body.to_json())
    }

    /// Removes all tasks of a queue, live and dead. Its settings and schedules stay. `Err` in the answer: the tasks are too many to wait
    /// for, so a job does the work, see [`job`](Self::job). An answer may take 10 minutes.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn purge(queue: &str, body: PurgeBody) -> Result<PurgeAnswer, JobBody> {
        many(queue, "purge", body.to_json())
    }

    /// Makes all dead tasks ready again that a filter finds; its state is not looked at. `Err` in the answer: the tasks are too many to wait
    /// for, so a job does the work, see [`job`](Self::job). An answer may take 10 minutes.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn redrive_many(queue: &str, filter: &TaskFilter, dry_run: bool) -> Result<BulkRedriveAnswer, JobBody> {
        many(queue, "dead/redrive", RedriveBody::Filter { filter: filter.clone(), dry_run }.to_json())
    }

    /// The running jobs and the last ended ones. The newest comes first.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn jobs() -> Vec<JobBody> { Request::get("/v1/jobs").read(|answer| Ok(answer.body::<JobsBody>()?.jobs)) }

    /// Returns the state of a job.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is no job with this number; see [`ClientError`](crate::ClientError).
    fn job(id: u64) -> JobBody { Request::get(format!("/v1/jobs/{id}")).answer() }

    /// Stops a job. The changes that it has made stay.
    ///
    /// # Errors
    ///
    /// As for [`job`](Self::job).
    fn stop_job(id: u64) -> JobBody { Request::new(Method::DELETE, format!("/v1/jobs/{id}")).answer() }
}

fn many<A: DeserializeOwned + 'static>(queue: &str, verb: &str, body: Vec<u8>) -> Call<Result<A, JobBody>> {
    Request::post(queue_path(queue, verb))
        .json(body)
        .timeout(LONG_TIMEOUT)
        .read(|answer| if answer.status == 202 { Ok(Err(answer.body()?)) } else { Ok(Ok(answer.body()?)) })
}
