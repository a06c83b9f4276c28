//! `/v1/jobs` and `/v1/jobs/{id}`: jobs go on after their call was answered, and after a restart.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{JobsBody, Problem};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::caller::Caller;
use crate::service::jobs::job::Job;

handlers! {
    ListJobs => all,
    GetJob => get,
    StopJob => stop,
}

/// `GET` on the collection: the jobs on queues in the caller's scope, the newest first.
async fn all(call: Call) -> Result<Response, Refusal> {
    let caller = &call.caller;
    let known = caller
        .jobs(Right::Read)?
        .kept()
        .await?
        .into_iter()
        .rev()
        .filter(|job| caller.covers(&job.bulk.queue));
    Ok(answer::json(StatusCode::OK, &JobsBody { jobs: known.map(|job| job.body).collect() }))
}

/// `GET`: the state of a job.
async fn get(call: Call) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, &find(&call.caller, Right::Read, &call.number()?).await?.body))
}

/// `DELETE`: stops a job. Changes that it has made stay, and a page under way is finished.
async fn stop(call: Call) -> Result<Response, Refusal> {
    let (caller, id) = (&call.caller, call.number()?);
    let job = find(caller, Right::Produce, &id).await?;
    caller.jobs(Right::Produce)?.stop(job.body.id).await?;
    Ok(answer::json(StatusCode::OK, &find(caller, Right::Produce, &id).await?.body))
}

/// The job with this number, if its queue is in the caller's scope.
async fn find(caller: &Caller, right: Right, id: &str) -> Result<Job, Refusal> {
    let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
    let job = match number {
        Some(number) => caller.jobs(right)?.get(number).await?,
        None => None,
    };
    Ok(job.filter(|job| caller.covers(&job.bulk.queue)).ok_or_else(|| Problem::no_job(id))?)
}
