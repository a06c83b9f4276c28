//! Jobs: work that goes on after its call was answered, and after a restart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::{JobBody, JobState, Problem, ProblemKind};
use tickwheel_queue::{JobError, Queue, QueueName, Unavailable};
use tokio::sync::Notify;

use crate::access::producer::Producer;
use crate::base::stopping::Stopping;
use crate::events;
use crate::service::jobs::bulk::Bulk;
use crate::service::jobs::job::Job;
use crate::service::jobs::work::Tally;
use crate::service::permits::limits::Limits;
use crate::service::permits::shares::{Full, Permit, Rules, Shares};
use crate::service::supervisor::Supervisor;
use crate::translate;

/// The number of jobs that work at one time, one page in each turn; the others wait for their turn.
const WORKING_MAX: usize = 4;
/// The number of ended jobs that can still be read.
const OVER_MAX: usize = 100;
/// The time between two looks at the shard that keeps the jobs.
const LOOK: Duration = Duration::from_millis(500);
/// The pause before a job asks again for a shard that is not served at present.
const AGAIN: Duration = Duration::from_secs(1);

/// Starts jobs and knows the running ones; ended jobs are in the store only.
#[derive(Clone)]
pub(crate) struct Jobs {
    queue: Queue,
    stopping: Stopping,
    supervisor: Supervisor,
    running: Arc<Mutex<BTreeMap<u64, Arc<Running>>>>,
    /// The lock is held while a job begins, so that a job that is stored is also among the running ones.
    beginning: Arc<tokio::sync::Mutex<()>>,
    /// How often the shard had been acquired when its jobs were continued last.
    resumed: Arc<AtomicU64>,
    /// The permits of running jobs.
    permits: Shares,
    /// The permits of jobs that work on a page.
    turns: Shares,
}

/// A running job.
struct Running {
    /// The lock is held while the job is changed and until the change is stored.
    job: tokio::sync::Mutex<Job>,
    /// Notified when the job is stopped or replaced, so that it does not wait for its turn.
    stopped: Notify,
    /// How often the shard of the jobs had been acquired when the job was read from the store or begun. Another number: another server may
    /// have changed the job.
    acquired: u64,
    /// Set, under the lock of the job, before the jobs are read from the store again.
    is_replaced: AtomicBool,
    /// Notified when the job does no more work.
    ended: Notify,
}

impl Running {
    fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Relaxed)
    }
}

/// The entry of a running job, and its permit. Dropping this frees both.
struct JobPermit {
    jobs: Jobs,
    id: u64,
    running: Arc<Running>,
    of_caller: Permit,
}

impl Drop for JobPermit {
    fn drop(&mut self) {
        let mut running = self.jobs.running();
        if running.get(&self.id).is_some_and(|entry| Arc::ptr_eq(entry, &self.running)) {
            running.remove(&self.id);
        }
        self.running.ended.notify_one();
    }
}

impl Jobs {
    pub(crate) fn new(queue: Queue, stopping: Stopping, supervisor: Supervisor, limits: &Limits) -> Self {
        let rules = Rules {
            max: limits.jobs,
            share_max: limits.jobs_per_caller,
            waiting_max: 0,
            wait_max: Duration::ZERO,
            refusal,
        };
        // A job waits for its turn as long as it takes, so that no turn is refused.
        let turn_rules = Rules { max: WORKING_MAX, share_max: usize::MAX, ..rules };
        let (permits, turns) = (Shares::new(rules), Shares::new(turn_rules));
        let (running, beginning, resumed) = Default::default();
        Self { queue, stopping, supervisor, running, beginning, resumed, permits, turns }
    }

    /// Continues the stored jobs each time this process has acquired the shard that keeps them: at the start, and after another process had
    /// the shard.
    pub(crate) async fn keep_up(self) {
        let mut told = 0;
        loop {
            if let Err(problem) = self.look().await {
                let acquired = self.queue.health_of_jobs().acquired;
                if told != acquired {
                    told = acquired;
                    tracing::warn!(event = events::JOBS_STAND_STILL, %problem, "failed to read the jobs of the store; the server tries again");
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Continues the stored jobs, if this process has acquired their shard since it last did that.
    ///
    /// # Errors
    /// 503 if the queue cannot be read.
    pub(crate) async fn look(&self) -> Result<(), Problem> {
        let health = self.queue.health_of_jobs();
        if health.ready && health.acquired != self.resumed.load(Ordering::Relaxed) {
            self.resume().await?;
            self.resumed.store(health.acquired, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Continues the jobs that are stored as running. Together they have one turn among the callers. Jobs that cannot be read are logged and
    /// left alone. A job that runs already goes on from what is stored.
    ///
    /// # Errors
    /// 503 if the queue cannot be read.
    async fn resume(&self) -> Result<(), Problem> {
        let _none_begins = self.beginning.lock().await;
        // An entry from before writes nothing any more when the jobs are read: its job may have been stopped elsewhere.
        let before: Vec<_> = std::mem::take(&mut *self.running()).into_values().collect();
        for entry in &before {
            let _not_while_it_is_stored = entry.job.lock().await;
            entry.is_replaced.store(true, Ordering::Relaxed);
            entry.stopped.notify_one();
        }
        for entry in &before {
            entry.ended.notified().await;
        }
        for job in self.kept().await? {
            if job.is_running() {
                let JobBody { id, queue, looked_at, of, .. } = &job.body;
                tracing::info!(
                    event = events::JOB_RESUMED,
                    id,
                    queue,
                    looked_at,
                    total = of,
                    "a job goes on"
                );
                self.go(job, self.permits.take_anyway(Producer::Earlier));
            }
        }
        Ok(())
    }

    /// Starts a new job of this caller, and returns when it is stored. The job starts even if the call is dropped. A
    /// full disk does not prevent it, because a job frees space.
    ///
    /// # Errors
    /// 429: too many jobs are running; the problem names the limit. 503: the job cannot be stored.
    pub(crate) async fn start(&self, caller: Producer, bulk: Bulk, of: u64) -> Result<JobBody, Problem> {
        let jobs = self.clone();
        let begun = tokio::spawn(async move { jobs.begin(caller, bulk, of).await }).await;
        match begun {
            Ok(begun) => begun,
            Err(_) => Err(Problem::internal("a part of the server failed")),
        }
    }

    async fn begin(&self, caller: Producer, bulk: Bulk, of: u64) -> Result<JobBody, Problem> {
        let _alone = self.beginning.lock().await;
        // A refused call must not make the server forget an ended job.
        let permit = self.permits.enter(caller).await?;
        self.forget_oldest().await?;
        let mut job = Job::new(bulk, of);
        let begun = self.queue.begin_job(job.value()).await;
        if let Err(JobError::Unavailable(Unavailable::Indeterminate { .. })) = begun {
            // The job may be stored later. Then the next look begins it.
            self.resumed.store(0, Ordering::Relaxed);
        }
        job.body.id = begun.map_err(|error| not_kept(&error))?;
        let body = job.body.clone();
        let JobBody { id, queue, action, of, .. } = &body;
        tracing::info!(
            event = events::JOB_BEGUN,
            id,
            queue,
            action = action.name(),
            total = of,
            "a job begins"
        );
        self.go(job, permit);
        Ok(body)
    }

    /// Runs a job in the background.
    fn go(&self, job: Job, permit: Permit) {
        let id = job.body.id;
        let running = Arc::new(Running {
            job: job.into(),
            stopped: Notify::new(),
            acquired: self.queue.health_of_jobs().acquired,
            is_replaced: AtomicBool::new(false),
            ended: Notify::new(),
        });
        self.running().insert(id, Arc::clone(&running));
        let permit = JobPermit { jobs: self.clone(), id, running: Arc::clone(&running), of_caller: permit };
        let run = async move { permit.jobs.run(&running, permit.of_caller.producer()).await };
        let supervisor = self.supervisor.clone();
        tokio::spawn(async move { supervisor.once("job", run).await });
    }

    /// Runs page by page to the end, or until the job is stopped. After a crash the next start goes on after the last
    /// stored page. Changes of later pages are then missing in the counts, and are not made again.
    ///
    /// Each page is a turn, so that a job of a million tasks does not delay a small job that came later.
    async fn run(&self, running: &Running, caller: Producer) {
        loop {
            let turn = tokio::select! {
                biased;
                () = running.stopped.notified() => None,
                turn = self.turns.take(caller) => Some(turn),
            };
            let page = {
                let job = running.job.lock().await;
                job.is_running().then(|| (job.bulk.clone(), job.at))
            };
            let Some((mut bulk, at)) = page else {
                // The job was stopped while it waited for its turn.
                drop(turn);
                self.keep_on(running).await;
                return;
            };
            if self.stopping.is_given() || running.is_replaced() {
                return;
            }
            let health = self.queue.health_of_jobs();
            let is_served = health.ready || health.read_only.is_some();
            if !is_served || health.ready && health.acquired != running.acquired {
                // The job may have been stopped elsewhere in between, and the shard of its queue may be back before the shard of the jobs. The next look
                // reads the job, and replaces this entry.
                drop(turn);
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            let queue = bulk.queue.clone();
            let mut tally = Tally::default();
            let page = async {
                let step = bulk.look(&self.queue, at).await?;
                bulk.act_on(&self.queue, &step.found, &mut tally).await?;
                Ok::<_, Problem>(step)
            };
            let page = page.await;
            drop(turn);
            {
                let mut job = running.job.lock().await;
                job.body.done += tally.done;
                match page {
                    Ok(step) => {
                        job.body.looked_at = (job.body.looked_at + step.looked_at as u64).min(job.body.of);
                        job.body.matched += step.found.len() as u64;
                        job.body.skipped.add(tally.skipped);
                        job.at = step.next.unwrap_or_default();
                        if job.is_running() && step.next.is_none() {
                            (job.body.state, job.body.looked_at) = (JobState::Done, job.body.of);
                        }
                    }
                    // The queue closed because the server stops, which is no failure of the job.
                    Err(_) if self.stopping.is_given() => return,
                    // The page is repeated. Tasks that are changed already are skipped.
                    Err(problem) if self.is_unserved(&problem, &queue) => {
                        job.body.matched += tally.done;
                        drop(job);
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                    Err(problem) => job.fail(problem),
                }
            }
            if !self.keep_on(running).await || self.stopping.is_given() {
                return;
            }
        }
    }

    /// Stores the progress of a job. Returns whether the job goes on.
    async fn keep_on(&self, running: &Running) -> bool {
        let job = loop {
            let job = running.job.lock().await;
            if running.is_replaced() || self.stopping.is_given() {
                return false;
            }
            let health = self.queue.health_of_jobs();
            if health.acquired == running.acquired {
                let Err(error) = self.keep(&job).await else { break job };
                let is_unserved = matches!(&error, JobError::Unavailable(why) if why.is_of_database());
                if (!is_unserved || health.read_only.is_some()) && !self.stopping.is_given() {
                    // The last stored value says that the job is running, so the next start continues it.
                    let JobBody { id, queue, .. } = &job.body;
                    tracing::warn!(event = events::JOB_NOT_KEPT, id, queue, %error, "a job stops, because its progress cannot be stored; it continues after the next start");
                    return false;
                }
            }
            // The shard is not served, or it was lost and acquired again. Then the jobs are read from the store, and this entry is replaced.
            drop(job);
            tokio::time::sleep(AGAIN).await;
        };
        let JobBody { id, queue, action, state, matched, done, .. } = &job.body;
        if !job.is_running() {
            tracing::info!(
                event = events::JOB_OVER,
                id,
                queue,
                action = action.name(),
                state = state.name(),
                matched,
                done,
                "a job is over"
            );
        }
        job.is_running()
    }

    /// Whether a page failed because its shard is not served at present, although its store has not failed.
    fn is_unserved(&self, problem: &Problem, queue: &QueueName) -> bool {
        let is_of_store = matches!(problem.kind(), Some(ProblemKind::Starting | ProblemKind::Indeterminate));
        is_of_store && self.queue.health_of(queue).read_only.is_none()
    }

    /// The entry of a running job, if no other server can have changed the job since it was read.
    fn current(&self, id: u64) -> Option<Arc<Running>> {
        let entry = self.running().get(&id).cloned()?;
        let health = self.queue.health_of_jobs();
        (health.ready && health.acquired == entry.acquired).then_some(entry)
    }

    /// Stores the progress of a job.
    async fn keep(&self, job: &Job) -> Result<(), JobError> {
        self.queue.keep_job(job.body.id, job.value()).await.map(drop)
    }

    /// The job with this number.
    pub(crate) async fn get(&self, id: u64) -> Result<Option<Job>, Problem> {
        if let Some(running) = self.current(id) {
            let job = running.job.lock().await.clone();
            // A process that was frozen may not have noticed yet that another one has the shard. A call of the shard does.
            match self.queue.jobs().await {
                Err(why) if why.is_of_database() => return Err(translate::unavailable(&why)),
                _ => return Ok(Some(job)),
            }
        }
        Ok(self.kept().await?.into_iter().find(|job| job.body.id == id))
    }

    /// Stops the job if it is running. A page that has begun is finished.
    pub(crate) async fn stop(&self, id: u64) -> Result<(), Problem> {
        // A job that was kept a moment ago is among the running jobs when this lock is taken.
        let _none_begins = self.beginning.lock().await;
        let running = self.current(id);
        let stopped = |job: &Job| {
            let mut stopped = job.clone();
            stopped.body.state = JobState::Stopped;
            stopped
        };
        if let Some(running) = running {
            let mut job = running.job.lock().await;
            if job.is_running() {
                let stopped = stopped(&job);
                self.keep(&stopped).await.map_err(|error| not_kept(&error))?;
                *job = stopped;
                running.stopped.notify_one();
            }
        } else if let Some(job) = self.get(id).await?.filter(Job::is_running) {
            // Nothing runs the job here: it could not be stored, or it was just read from the store. It would be continued.
            self.keep(&stopped(&job)).await.map_err(|error| not_kept(&error))?;
        }
        Ok(())
    }

    /// All stored jobs, the oldest first. Jobs that cannot be read are logged.
    pub(crate) async fn kept(&self) -> Result<Vec<Job>, Problem> {
        let kept = self.queue.jobs().await.map_err(|error| translate::unavailable(&error))?;
        let read = |(id, value): (u64, Arc<[u8]>)| {
            let job = Job::read(id, &value);
            if job.is_none() {
                tracing::warn!(event = events::JOB_UNREADABLE, id, "the record of a job cannot be read");
            }
            job
        };
        Ok(kept.into_iter().filter_map(read).collect())
    }

    /// Removes ended jobs until one more job fits.
    async fn forget_oldest(&self) -> Result<(), Problem> {
        let kept = self.kept().await?;
        let over: Vec<_> = kept.iter().filter(|job| !job.is_running()).collect();
        for job in over.iter().take((over.len() + 1).saturating_sub(OVER_MAX)) {
            // A job that cannot be removed now is removed when the next job begins.
            let _gone = self.queue.forget_job(job.body.id).await;
        }
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(full: Full) -> Problem {
    let hint = "try again when one of them is over; GET /v1/jobs shows how they go, and DELETE /v1/jobs/{id} stops one";
    Problem::busy(full.limit_of("jobs under way", "jobs"), 5).with_hint(hint)
}

fn not_kept(error: &JobError) -> Problem {
    match error {
        JobError::Unavailable(error) => translate::unavailable(error),
        JobError::TooMany { .. } => Problem::busy(error.to_string(), 5),
        error => Problem::internal(format!("the job cannot be kept: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::Request;
    use tickwheel_api::{BULK_MAX, BulkCancelBody, JobBody};
    use tickwheel_queue::{Key, Put, QueueName};
    use tokio::time::timeout;

    use super::*;
    use crate::access::tokens::Tokens;
    use crate::base::stopping::{self, Stop};
    use crate::doors::http::call::tests::answered;
    use crate::service::app::App;
    use crate::service::jobs::bulk::PAGE;
    use crate::service::jobs::work::Work;

    const A: Producer = Producer::Token([1; 32]);
    const B: Producer = Producer::Token([2; 32]);

    /// Jobs that wait for a turn until the turns are dropped, over a queue with one task.
    async fn all_waiting(limits: Limits) -> (Jobs, Vec<Permit>, Stop) {
        let (stop, stopping) = stopping::signal();
        let queue = Queue::options().open_memory().expect("a queue");
        let put = Put::new(&name(), Key::new("a").expect("a key"));
        queue.put(put).await.expect("stored");
        let jobs = Jobs::new(queue, stopping.clone(), Supervisor::new(stopping), &limits);
        let mut turns = Vec::new();
        for _ in 0..WORKING_MAX {
            turns.push(jobs.turns.take(Producer::Earlier).await);
        }
        (jobs, turns, stop)
    }

    fn name() -> QueueName {
        QueueName::new("q").expect("a name")
    }

    async fn start(jobs: &Jobs, caller: Producer) -> Result<JobBody, Problem> {
        let work = Work::Cancel(BulkCancelBody { dry_run: true, ..BulkCancelBody::default() });
        jobs.start(caller, Bulk { queue: name(), work, as_of: None }, 1).await
    }

    async fn started(jobs: &Jobs, caller: Producer) -> u64 {
        start(jobs, caller).await.expect("there is room").id
    }

    async fn refused(jobs: &Jobs, caller: Producer) -> String {
        let problem = start(jobs, caller).await.expect_err("there is no room");
        assert_eq!((problem.status, problem.retry_after_s), (429, Some(5)));
        problem.detail.to_string()
    }

    async fn over(jobs: &Jobs, id: u64) -> JobBody {
        loop {
            let job = jobs.get(id).await.expect("it answers").expect("it is known").body;
            if job.state != JobState::Running && !jobs.running().contains_key(&id) {
                return job;
            }
            tokio::task::yield_now().await;
        }
    }

    /// A bug that was found: four jobs of one caller blocked the jobs of all others until one of them ended.
    #[tokio::test]
    async fn one_caller_has_its_share_of_jobs_and_others_the_rest() {
        let (jobs, turns, _stop) =
            all_waiting(Limits { jobs: 3, jobs_per_caller: 2, ..Limits::default() }).await;
        let ids = [started(&jobs, A).await, started(&jobs, A).await];
        let detail = refused(&jobs, A).await;
        assert!(detail.contains("2 jobs under way, which is its limit (--max-jobs-per-caller)"), "{detail}");
        let other = started(&jobs, B).await;
        let detail = refused(&jobs, B).await;
        assert!(detail.contains("3 jobs under way, which is its limit (--max-jobs)"), "{detail}");
        drop(turns);
        for id in [ids[0], ids[1], other] {
            let job = over(&jobs, id).await;
            assert_eq!((job.state, job.matched), (JobState::Done, 1));
        }
        over(&jobs, started(&jobs, A).await).await;
    }

    #[tokio::test]
    async fn a_job_takes_a_place_of_its_sender() {
        let (_stop, stopping) = stopping::signal();
        let queue = Queue::options().open_memory().expect("a queue");
        let keys: Vec<_> = (0..=BULK_MAX as u64).map(Key::from_id).collect();
        for keys in keys.chunks(PAGE) {
            let puts: Vec<_> = keys.iter().map(|key| queue.put(Put::new(&name(), key.clone()))).collect();
            for put in puts {
                put.await.expect("stored");
            }
        }
        let limits = Limits { jobs_per_caller: 1, ..Limits::default() };
        let app = Arc::new(App::with_queue(queue, stopping, &limits));
        let mut turns = Vec::new();
        for _ in 0..WORKING_MAX {
            turns.push(app.background.jobs().turns.take(Producer::Earlier).await);
        }
        let tokens = Tokens::parse("one\ntwo").expect("tokens");
        let mut statuses = Vec::new();
        for token in ["one", "one", "two"] {
            let grant = tokens.grant(token.as_bytes()).expect("it is known");
            let request = Request::post("/v1/queues/q/cancel");
            let request = request.body(Body::from(r#"{"filter":{},"dry_run":true}"#)).expect("a request");
            statuses.push(answered(&app, grant, request).await.status().as_u16());
        }
        assert_eq!(statuses, [202, 429, 202]);
    }

    /// All clients of a proxy on this computer have one address.
    #[tokio::test]
    async fn callers_of_this_machine_share_all_jobs() {
        let (jobs, _turns, _stop) =
            all_waiting(Limits { jobs: 3, jobs_per_caller: 1, ..Limits::default() }).await;
        for _ in 0..3 {
            started(&jobs, Producer::Local).await;
        }
        assert!(refused(&jobs, Producer::Local).await.contains("(--max-jobs)"));
    }

    /// A bug that was found: a stopped job kept its permit until its turn. So the hint of the refusal, to stop a job,
    /// did not help.
    #[tokio::test]
    async fn a_job_that_is_stopped_while_it_waits_does_nothing_and_gives_its_place_back() {
        let limits = Limits { jobs_per_caller: 1, ..Limits::default() };
        let (jobs, turns, _stop) = all_waiting(limits).await;
        let id = started(&jobs, A).await;
        refused(&jobs, A).await;
        jobs.stop(id).await.expect("stopped");
        let job = timeout(Duration::from_secs(10), over(&jobs, id)).await.expect("it waits for no turn");
        assert_eq!((job.state, job.looked_at, job.matched), (JobState::Stopped, 0, 0));
        let next = started(&jobs, A).await;
        drop(turns);
        assert_eq!(over(&jobs, next).await.state, JobState::Done);
    }

    /// A server that stops begins no page of a waiting job.
    #[tokio::test]
    async fn a_job_that_waits_when_the_server_stops_goes_on_at_the_next_start() {
        let (jobs, turns, stop) = all_waiting(Limits::default()).await;
        let id = started(&jobs, A).await;
        stop.give();
        drop(turns);
        while !jobs.running().is_empty() {
            tokio::task::yield_now().await;
        }
        let kept = jobs.get(id).await.expect("it answers").expect("it is kept").body;
        assert_eq!((kept.state, kept.looked_at), (JobState::Running, 0), "it had no turn");
        let (_stop, stopping) = stopping::signal();
        let next =
            Jobs::new(jobs.queue.clone(), stopping.clone(), Supervisor::new(stopping), &Limits::default());
        next.resume().await.expect("it goes on");
        let job = over(&next, id).await;
        assert_eq!((job.state, job.matched), (JobState::Done, 1));
    }
}
