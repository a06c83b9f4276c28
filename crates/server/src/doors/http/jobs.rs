//! `/v1/jobs` and `/v1/jobs/{id}`: work that goes on after its call was answered, and after a restart.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{JobsBody, Problem};

use crate::access::refusal::Refusal;
use crate::doors::http::answer;
use crate::doors::http::path::JobAt;
use crate::doors::http::query::NoQuery;
use crate::service::caller::Caller;
use crate::service::job::Job;

/// `GET` on all: those that work on queues which the sender may know of, the newest first.
pub(crate) async fn all(caller: Caller, _: NoQuery) -> Result<Response, Refusal> {
    let known = caller.app.jobs.kept().await?.into_iter().rev().filter(|job| caller.covers(&job.bulk.queue));
    Ok(answer::json(StatusCode::OK, &JobsBody { jobs: known.map(|job| job.body).collect() }))
}

/// `GET`: how it goes.
pub(crate) async fn get(caller: Caller, JobAt(id): JobAt, _: NoQuery) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, &find(&caller, &id).await?.body))
}

/// `DELETE`: it stops; what it has done stays, and so does what it is just doing.
pub(crate) async fn stop(caller: Caller, JobAt(id): JobAt, _: NoQuery) -> Result<Response, Refusal> {
    let job = find(&caller, &id).await?;
    caller.app.jobs.stop(job.body.id).await?;
    Ok(answer::json(StatusCode::OK, &find(&caller, &id).await?.body))
}

/// The job of this number, if it works on a queue that the sender may know of.
async fn find(caller: &Caller, id: &str) -> Result<Job, Refusal> {
    let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
    let job = match number {
        Some(number) => caller.app.jobs.get(number).await?,
        None => None,
    };
    Ok(job.filter(|job| caller.covers(&job.bulk.queue)).ok_or_else(|| Problem::no_job(id))?)
}
