//! `/v1/jobs` and `/v1/jobs/{id}`: work that goes on after its call was answered, and after a restart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{JobBody, JobState, JobsBody, Problem, TaskFilter, no_query};
use tickwheel_queue::{Cancel, Get, GetError, Put, PutError, PutMode, Queue, Unavailable};

use crate::answer;
use crate::app::{App, Shared};
use crate::bulk::{Bulk, PAGE};
use crate::job::{self, Job};
use crate::path::JobAt;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::stopping::Stopping;
use crate::tokens::Grant;
use crate::translate;

/// Jobs under way at one time.
const RUNNING_MAX: usize = 4;
/// Jobs that are over and can still be looked at.
const OVER_MAX: usize = 100;

/// So often it is tried again to keep the end of a job on a full disk.
const ROOM_ASKED: Duration = Duration::from_secs(1);

/// Whoever changes a job holds it until the change is kept.
type Held = Arc<tokio::sync::Mutex<Job>>;

/// Starts jobs and knows those that are under way; those that are over stand in the queue `$jobs` alone.
#[derive(Clone)]
pub(crate) struct Jobs {
    queue: Queue,
    stopping: Stopping,
    running: Arc<Mutex<BTreeMap<u64, Held>>>,
}

/// The place of a job under way; free again when it is dropped.
struct Place {
    jobs: Jobs,
    id: u64,
    held: Held,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.running().remove(&self.id);
    }
}

impl Jobs {
    pub(crate) fn new(queue: Queue, stopping: Stopping) -> Self {
        Self { queue, stopping, running: Arc::default() }
    }

    /// Goes on with the jobs that the last end of the server left. Those that it cannot read are told of and left alone.
    ///
    /// # Errors
    /// 503 if the queue cannot be looked at.
    pub(crate) async fn resume(&self) -> Result<(), Problem> {
        for job in self.kept().await? {
            if job.is_running() {
                let JobBody { id, queue, looked_at, of, .. } = &job.body;
                tracing::info!(id, queue, looked_at, of, "a job goes on");
                self.go(self.place(&mut self.running(), job));
            }
        }
        Ok(())
    }

    /// A new job, kept before this returns; it is started even if nobody waits for that any more. A full disk does not hinder it, for it makes
    /// room: then it is kept as soon as it can be.
    ///
    /// # Errors
    /// 429: too many are under way. 503: it cannot be kept.
    pub(crate) async fn start(&self, bulk: Bulk, of: u64) -> Result<JobBody, Problem> {
        let jobs = self.clone();
        let begun = tokio::spawn(async move { jobs.begin(bulk, of).await }).await;
        match begun {
            Ok(begun) => begun,
            Err(_) => Err(Problem::internal("a part of the server failed")),
        }
    }

    async fn begin(&self, bulk: Bulk, of: u64) -> Result<JobBody, Problem> {
        let last = self.forget_oldest().await?;
        // By the clock, so that the number of a job of an emptied server is not another's now.
        let id = self.queue.now().as_tick().max(last.map_or(0, |last| last + 1));
        let mut job = Job::new(id, bulk, of);
        loop {
            let Some(place) = self.enter(&mut job) else {
                return Err(Problem::busy(
                    format!("the server has the {RUNNING_MAX} jobs under way that it may have"),
                    5,
                ));
            };
            let put = Put { mode: PutMode::Create, ..job.put() };
            match self.queue.put(put).await {
                Ok(_) => {}
                Err(PutError::Unavailable(Unavailable::Full { .. })) => {
                    tracing::warn!(
                        job.body.id,
                        "the disk is full: a job is begun, and ends with the server until it can be kept"
                    );
                }
                Err(PutError::Live { .. }) => {
                    drop(place);
                    job.body.id += 1;
                    continue;
                }
                Err(error) => return Err(not_kept(&error)),
            }
            self.go(place);
            return Ok(job.body);
        }
    }

    /// Takes one of the places, under a number that no job under way has; `None`: there is none.
    fn enter(&self, job: &mut Job) -> Option<Place> {
        let mut running = self.running();
        if running.len() >= RUNNING_MAX {
            return None;
        }
        while running.contains_key(&job.body.id) {
            job.body.id += 1;
        }
        Some(self.place(&mut running, job.clone()))
    }

    fn place(&self, running: &mut BTreeMap<u64, Held>, job: Job) -> Place {
        let (id, held) = (job.body.id, Arc::new(tokio::sync::Mutex::new(job)));
        running.insert(id, Arc::clone(&held));
        Place { jobs: self.clone(), id, held }
    }

    fn go(&self, place: Place) {
        let jobs = self.clone();
        tokio::spawn(async move { jobs.run(&place.held).await });
    }

    /// Page by page to the end, or until it is stopped. Where the server ends meanwhile, the next start goes on behind the last page that was
    /// kept: what was done after it is not counted, and not done again.
    async fn run(&self, held: &Held) {
        loop {
            let (mut bulk, at) = {
                let job = held.lock().await;
                (job.bulk.clone(), job.at)
            };
            let page = async {
                let step = bulk.look(&self.queue, at).await?;
                let tally = bulk.act(&self.queue, &step.found).await?;
                Ok::<_, Problem>((step, tally))
            };
            let page = page.await;
            let mut job = held.lock().await;
            match page {
                Ok((step, tally)) => {
                    job.body.looked_at = (job.body.looked_at + step.looked_at as u64).min(job.body.of);
                    job.body.matched += step.found.len() as u64;
                    job.body.done += tally.done;
                    job.body.skipped.add(tally.skipped);
                    job.at = step.next.unwrap_or_default();
                    if job.is_running() && step.next.is_none() {
                        (job.body.state, job.body.looked_at) = (JobState::Done, job.body.of);
                    }
                }
                // The queue closed, which is no failure of the job.
                Err(_) if self.stopping.is_given() => return,
                Err(problem) => (job.body.state, job.body.error) = (JobState::Failed, Some(problem.detail)),
            }
            loop {
                match self.keep(&job).await {
                    Ok(true) => break,
                    // A later page is kept, and it makes room.
                    Ok(false) if job.is_running() => break,
                    // Nobody who looks at it has to wait for that.
                    Ok(false) if !self.stopping.is_given() => {
                        drop(job);
                        tokio::time::sleep(ROOM_ASKED).await;
                        job = held.lock().await;
                    }
                    Err(error) if !self.stopping.is_given() => {
                        // What was kept last says that it is under way, so the next start goes on with it.
                        let (id, queue) = (job.body.id, &job.body.queue);
                        tracing::warn!(id, queue, %error, "a job ends, for how far it is cannot be kept");
                        return;
                    }
                    Ok(false) | Err(_) => return,
                }
            }
            if !job.is_running() {
                let JobBody { id, queue, action, state, matched, done, .. } = &job.body;
                tracing::info!(id, queue, ?action, ?state, matched, done, "a job is over");
                return;
            }
            if self.stopping.is_given() {
                return;
            }
        }
    }

    /// Writes down how far a job is; false: the disk is full.
    async fn keep(&self, job: &Job) -> Result<bool, PutError> {
        match self.queue.put(job.put()).await {
            Ok(_) => Ok(true),
            Err(PutError::Unavailable(Unavailable::Full { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The job of this number.
    async fn get(&self, id: u64) -> Result<Option<Job>, Problem> {
        let held = self.running().get(&id).cloned();
        if let Some(held) = held {
            return Ok(Some(held.lock().await.clone()));
        }
        match self.queue.get(Get::new(&job::queue(), job::key(id))).await {
            Ok(task) => Ok(Job::read(&task.body.payload)),
            Err(GetError::Unavailable(error)) => Err(translate::unavailable(&error)),
            Err(_) => Ok(None),
        }
    }

    /// Stops it, if it is under way; what has begun of it is ended.
    async fn stop(&self, id: u64) -> Result<(), Problem> {
        let held = self.running().get(&id).cloned();
        let stopped = |job: &Job| {
            let mut stopped = job.clone();
            stopped.body.state = JobState::Stopped;
            stopped
        };
        if let Some(held) = held {
            let mut job = held.lock().await;
            if job.is_running() {
                let stopped = stopped(&job);
                // Where there is no room it is kept as soon as there is.
                self.keep(&stopped).await.map_err(|error| not_kept(&error))?;
                *job = stopped;
            }
        } else if let Some(job) = self.get(id).await?.filter(Job::is_running) {
            // It could go no further, and the next start would go on with it.
            self.queue.put(stopped(&job).put()).await.map_err(|error| not_kept(&error))?;
        }
        Ok(())
    }

    /// All jobs that are kept, the oldest first.
    async fn kept(&self) -> Result<Vec<Job>, Problem> {
        let (mut jobs, mut after) = (Vec::new(), None);
        let at = Some(job::DUE_AT_MS);
        let filter = TaskFilter { due_from_ms: at, due_to_ms: at, ..TaskFilter::default() };
        loop {
            let list = translate::list(&job::queue(), &filter, PAGE, after);
            let page = self.queue.list(list).await.map_err(|error| translate::unavailable(&error))?;
            for task in page.tasks {
                match Job::read(&task.body.payload) {
                    Some(job) => jobs.push(job),
                    None => tracing::warn!(
                        key = task.key.as_str(),
                        "no job, though it stands in the queue of jobs"
                    ),
                }
            }
            after = page.next;
            if after.is_none() {
                jobs.sort_unstable_by_key(|job| job.body.id);
                return Ok(jobs);
            }
        }
    }

    /// Leaves room among the jobs that are over for one more; the last number that is taken.
    async fn forget_oldest(&self) -> Result<Option<u64>, Problem> {
        let kept = self.kept().await?;
        let over: Vec<_> = kept.iter().filter(|job| !job.is_running()).collect();
        for job in over.iter().take((over.len() + 1).saturating_sub(OVER_MAX)) {
            // One that has gone meanwhile is what is wanted.
            let _gone = self.queue.cancel(Cancel::new(&job::queue(), job::key(job.body.id))).await;
        }
        Ok(kept.last().map(|job| job.body.id))
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Held>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_kept(error: &PutError) -> Problem {
    match error {
        PutError::Unavailable(error) => translate::unavailable(error),
        error => Problem::internal(format!("the job cannot be kept: {error}")),
    }
}

/// `GET` on all: those that work on queues which the sender may know of, the newest first.
pub(crate) async fn all(
    app: Shared,
    Extension(grant): Extension<Grant>,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let known = app.jobs.kept().await?.into_iter().rev().filter(|job| grant.covers(&job.bulk.queue));
    Ok(answer::json(StatusCode::OK, &JobsBody { jobs: known.map(|job| job.body).collect() }))
}

/// `GET`: how it goes.
pub(crate) async fn get(
    app: Shared,
    Extension(grant): Extension<Grant>,
    JobAt(id): JobAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    Ok(answer::json(StatusCode::OK, &find(&app, &grant, &id).await?.body))
}

/// `DELETE`: it stops; what it has done stays, and so does what it is just doing.
pub(crate) async fn stop(
    app: Shared,
    Extension(grant): Extension<Grant>,
    JobAt(id): JobAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    no_query(&query)?;
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
