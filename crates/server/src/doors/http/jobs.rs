//! `/v1/jobs` and `/v1/jobs/{id}`: work that goes on after its call was answered, and after a restart.

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{JobsBody, Problem};

use crate::access::refusal::Refusal;
use crate::access::tokens::Grant;
use crate::doors::http::Shared;
use crate::doors::http::answer;
use crate::doors::http::path::JobAt;
use crate::doors::http::query::NoQuery;
use crate::service::app::App;
use crate::service::job::Job;

/// `GET` on all: those that work on queues which the sender may know of, the newest first.
pub(crate) async fn all(
    app: Shared,
    Extension(grant): Extension<Grant>,
    _: NoQuery,
) -> Result<Response, Refusal> {
    let known = app.jobs.kept().await?.into_iter().rev().filter(|job| grant.covers(&job.bulk.queue));
    Ok(answer::json(StatusCode::OK, &JobsBody { jobs: known.map(|job| job.body).collect() }))
}

/// `GET`: how it goes.
pub(crate) async fn get(
    app: Shared,
    Extension(grant): Extension<Grant>,
    JobAt(id): JobAt,
    _: NoQuery,
) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, &find(&app, &grant, &id).await?.body))
}

/// `DELETE`: it stops; what it has done stays, and so does what it is just doing.
pub(crate) async fn stop(
    app: Shared,
    Extension(grant): Extension<Grant>,
    JobAt(id): JobAt,
    _: NoQuery,
) -> Result<Response, Refusal> {
    let job = find(&app, &grant, &id).await?;
    app.jobs.stop(job.body.id).await?;
    Ok(answer::json(StatusCode::OK, &find(&app, &grant, &id).await?.body))
}

/// The job of this number, if it works on a queue that the sender may know of.
async fn find(app: &App, grant: &Grant, id: &str) -> Result<Job, Refusal> {
    let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
    let job = match number {
        Some(number) => app.jobs.get(number).await?,
        None => None,
    };
    Ok(job.filter(|job| grant.covers(&job.bulk.queue)).ok_or_else(|| Problem::no_job(id))?)
}
