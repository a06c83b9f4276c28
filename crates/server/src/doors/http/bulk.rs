//! `/v1/queues/{q}/cancel`, `/move` and `/purge`: work on many tasks at once, while the call waits or as a job.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    BadRequest, BulkCancelAnswer, BulkCancelBody, BulkMoveAnswer, BulkMoveBody, BulkRedriveAnswer, JobAction,
    MoveTo, PurgeAnswer, PurgeBody,
};
use tickwheel_queue::{Due, QueueName, Timestamp};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::caller::Caller;
use crate::service::jobs::bulk::Done;
use crate::service::jobs::work::{Move, Tally, Work};

handlers! {
    CancelTasks => cancel,
    MoveTasks => moving,
    PurgeQueue => purge,
}

/// `POST cancel`: cancels the tasks that a filter finds, or counts them.
async fn cancel(mut call: Call) -> Result<Response, Refusal> {
    refuse_version(&call)?;
    let work = Work::Cancel(call.read(BulkCancelBody::parse).await?);
    run(&call.caller, Right::Produce, call.queue(), work).await
}

/// `POST move`: gives another due time to the tasks that a filter finds, or counts them.
async fn moving(mut call: Call) -> Result<Response, Refusal> {
    refuse_version(&call)?;
    let mut body = call.read(BulkMoveBody::parse).await?;
    let caller = &call.caller;
    if let MoveTo::After(ms) = body.to {
        // All tasks get one instant, even if the job takes long.
        let to = caller.due_after(ms).map_or(i64::MAX, Timestamp::as_ms);
        body.to = MoveTo::At(to);
    }
    if let MoveTo::At(ms) = body.to {
        caller.admit_due(Due::At(Timestamp::from_ms(ms).unwrap_or_default()))?;
    }
    let latest = caller.latest();
    run(caller, Right::Produce, call.queue(), Work::Move(Move { body, latest })).await
}

/// `POST purge`: removes all tasks, live and dead, or counts them.
async fn purge(mut call: Call) -> Result<Response, Refusal> {
    refuse_version(&call)?;
    let work = Work::Purge(call.read(PurgeBody::parse).await?);
    run(&call.caller, Right::Produce, call.queue(), work).await
}

/// Refuses `If-Match`, because many tasks have many versions.
fn refuse_version(call: &Call) -> Result<(), Refusal> {
    let hint = "leave it out; each task is changed in the version in which it is found";
    match call.version()? {
        None => Ok(()),
        Some(_) => {
            Err(BadRequest::header("If-Match", "is not for a call that changes many tasks", hint).into())
        }
    }
}

/// Does the work for a caller that needs this right, or begins a job.
pub(super) async fn run(
    caller: &Caller,
    right: Right,
    queue: &QueueName,
    work: Work,
) -> Result<Response, Refusal> {
    let action = work.action();
    let done = caller.bulk(right, queue, work).await?;
    Ok(answered(action, done))
}

/// The answer to a call that did all the work, or that gave it to a job.
fn answered(action: JobAction, done: Done) -> Response {
    let (matched, Tally { done, skipped }) = match done {
        Done::All { matched, tally } => (matched, tally),
        Done::Job(job) => return answer::begun(format!("/v1/jobs/{}", job.id), &job),
    };
    match action {
        JobAction::Cancel => {
            answer::json(StatusCode::OK, &BulkCancelAnswer { matched, cancelled: done, skipped })
        }
        JobAction::Move => answer::json(StatusCode::OK, &BulkMoveAnswer { matched, moved: done, skipped }),
        JobAction::Purge => answer::json(StatusCode::OK, &PurgeAnswer { matched, purged: done, skipped }),
        JobAction::Redrive => {
            answer::json(StatusCode::OK, &BulkRedriveAnswer { matched, redriven: done, skipped })
        }
    }
}
