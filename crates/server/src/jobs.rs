//! `/v1/jobs/{id}`: work that goes on after its call was answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{JobBody, JobState, Problem, no_query};
use tickwheel_queue::Timestamp;

use crate::answer;
use crate::app::{App, Shared};
use crate::bulk::Bulk;
use crate::path::JobAt;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::tokens::Grant;

/// Jobs under way at one time.
const RUNNING_MAX: usize = 4;
/// Jobs that are over and can still be looked at.
const KEPT_MAX: usize = 100;

/// One job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) bulk: Bulk,
    of: u64,
    looked_at: AtomicU64,
    matched: AtomicU64,
    cancelled: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    state: JobState,
    /// Somebody wants it to stop.
    stops: bool,
    error: Option<String>,
}

impl Job {
    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As it is shown.
    pub(crate) fn body(&self) -> JobBody {
        let (state, error) = self.with_state(|state| (state.state, state.error.clone()));
        let looked_at = self.looked_at.load(Ordering::Relaxed).min(self.of);
        JobBody {
            id: self.id,
            queue: self.bulk.queue.as_str().to_owned(),
            state,
            dry_run: self.bulk.body.dry_run,
            of: self.of,
            looked_at: if state == JobState::Done { self.of } else { looked_at },
            matched: self.matched.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
            error,
        }
    }

    pub(crate) fn went_on(&self, looked_at: u64, matched: u64, cancelled: u64) {
        self.looked_at.fetch_add(looked_at, Ordering::Relaxed);
        self.matched.fetch_add(matched, Ordering::Relaxed);
        self.cancelled.fetch_add(cancelled, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.with_state(|state| state.stops)
    }

    pub(crate) fn done(&self) {
        self.with_state(|state| state.state = JobState::Done);
    }

    pub(crate) fn stop(&self) {
        self.with_state(|state| state.state = JobState::Stopped);
    }

    pub(crate) fn fail(&self, problem: &Problem) {
        let error = problem.detail.clone();
        self.with_state(|state| (state.state, state.error) = (JobState::Failed, Some(error)));
    }

    fn is_running(&self) -> bool {
        self.with_state(|state| state.state == JobState::Running)
    }
}

/// The jobs of this server, those that are over among them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
}

impl Jobs {
    /// A new job, which somebody has to run; `None`: too many are under way.
    pub(crate) fn start(&self, bulk: Bulk, of: u64, now: Timestamp) -> Option<Arc<Job>> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.values().filter(|job| job.is_running()).count() >= RUNNING_MAX {
            return None;
        }
        while jobs.len() >= KEPT_MAX {
            let over = jobs.iter().find(|(_, job)| !job.is_running()).map(|(id, _)| *id);
            jobs.remove(&over?);
        }
        // By the clock, so that the number of a job of an earlier life is not another's now.
        let id = jobs.last_key_value().map_or(0, |(last, _)| last + 1).max(now.as_tick());
        let state = Mutex::new(State { state: JobState::Running, stops: false, error: None });
        let [looked_at, matched, cancelled] = [const { AtomicU64::new(0) }; 3];
        let job = Arc::new(Job { id, bulk, of, looked_at, matched, cancelled, state });
        jobs.insert(id, Arc::clone(&job));
        Some(job)
    }

    fn get(&self, id: u64) -> Option<Arc<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

/// `GET`: how it goes.
pub(crate) async fn get(
    app: Shared,
    Extension(grant): Extension<Grant>,
    JobAt(id): JobAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    Ok(answer::json(StatusCode::OK, &find(&app, &grant, &id)?.body()))
}

/// `DELETE`: it stops soon; what it has done stays.
pub(crate) async fn stop(
    app: Shared,
    Extension(grant): Extension<Grant>,
    JobAt(id): JobAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let job = find(&app, &grant, &id)?;
    job.with_state(|state| state.stops = true);
    Ok(answer::json(StatusCode::OK, &job.body()))
}

/// The job of this number, if it works on a queue that the sender may know of.
fn find(app: &App, grant: &Grant, id: &str) -> Result<Arc<Job>, Refusal> {
    let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
    let job = number.and_then(|number| app.jobs.get(number)).filter(|job| grant.covers(&job.bulk.queue));
    Ok(job.ok_or_else(|| Problem::no_job(id))?)
}
