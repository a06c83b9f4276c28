//! Work that goes on after its call was answered, and after a restart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::{JobBody, JobState, Problem, TaskFilter};
use tickwheel_queue::{Cancel, Get, GetError, Put, PutError, PutMode, Queue, Unavailable};
use tokio::sync::Notify;

use crate::access::producer::Producer;
use crate::access::refusal::Refusal;
use crate::base::stopping::Stopping;
use crate::events;
use crate::service::bulk::{Bulk, PAGE};
use crate::service::job::{self, Job};
use crate::service::limits::Limits;
use crate::service::turns::Turns;
use crate::translate;

/// Jobs that work at one time, a page at a turn; the others wait for theirs.
const WORKING_MAX: usize = 4;
/// Jobs that are over and can still be looked at.
const OVER_MAX: usize = 100;

/// The time between two tries to keep the end of a job on a full disk.
const ROOM_ASKED: Duration = Duration::from_secs(1);

/// A job, held while it is changed and until the change is kept.
type Held = Arc<tokio::sync::Mutex<Job>>;

/// Starts jobs and knows those that are under way; those that are over stand in the queue `$jobs` alone.
#[derive(Clone)]
pub(crate) struct Jobs {
    queue: Queue,
    stopping: Stopping,
    /// Jobs under way.
    max: usize,
    /// Those of one caller.
    share_max: usize,
    running: Arc<Mutex<BTreeMap<u64, Running>>>,
    turns: Turns,
}

/// A job under way.
struct Running {
    held: Held,
    /// Told when it is stopped, so that it does not wait for its turn then.
    stopped: Arc<Notify>,
    /// `None`: an earlier life of the server started it. Whose it was is not kept, because the hash of a short token gives it away.
    caller: Option<Producer>,
}

/// The place of a job under way; free again when it is dropped.
struct Place {
    jobs: Jobs,
    id: u64,
    held: Held,
    stopped: Arc<Notify>,
    caller: Option<Producer>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.running().remove(&self.id);
    }
}

impl Jobs {
    pub(crate) fn new(queue: Queue, stopping: Stopping, limits: &Limits) -> Self {
        let turns = Turns::new(WORKING_MAX);
        let Limits { jobs: max, jobs_per_caller: share_max, .. } = *limits;
        Self { queue, stopping, max, share_max, running: Arc::default(), turns }
    }

    /// Goes on with the jobs that the last end of the server left, which have one turn together among the callers. Those that it cannot read are told of and left alone.
    ///
    /// # Errors
    /// 503 if the queue cannot be looked at.
    pub(crate) async fn resume(&self) -> Result<(), Problem> {
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
                self.go(self.place(&mut self.running(), job, None));
            }
        }
        Ok(())
    }

    /// A new job of this caller, kept before this returns; it is started even if nobody waits for that any more. A full disk does not hinder it,
    /// for it makes room: then it is kept as soon as it can be.
    ///
    /// # Errors
    /// 429: too many are under way; the problem names the limit. 503: it cannot be kept.
    pub(crate) async fn start(&self, caller: Producer, bulk: Bulk, of: u64) -> Result<JobBody, Problem> {
        let jobs = self.clone();
        let begun = tokio::spawn(async move { jobs.begin(caller, bulk, of).await }).await;
        match begun {
            Ok(begun) => begun,
            Err(_) => Err(Problem::internal("a part of the server failed")),
        }
    }

    async fn begin(&self, caller: Producer, bulk: Bulk, of: u64) -> Result<JobBody, Problem> {
        // A call that is refused makes the server forget no job.
        self.check_room(&self.running(), caller)?;
        let last = self.forget_oldest().await?;
        // By the clock, so that the number of a job of an emptied server is not another's now.
        let id = self.queue.now().as_tick().max(last.map_or(0, |last| last + 1));
        let mut job = Job::new(id, bulk, of);
        loop {
            let place = self.enter(caller, &mut job)?;
            let put = Put { mode: PutMode::Create, ..job.put() };
            match self.queue.put(put).await {
                Ok(_) => {}
                Err(PutError::Unavailable(Unavailable::Full { .. })) => {
                    tracing::warn!(
                        event = events::JOB_NOT_KEPT,
                        id = job.body.id,
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
            let JobBody { id, queue, action, of, .. } = &job.body;
            tracing::info!(
                event = events::JOB_BEGUN,
                id,
                queue,
                action = action.name(),
                total = of,
                "a job begins"
            );
            self.go(place);
            return Ok(job.body);
        }
    }

    /// Takes one of the places, under a number that no job under way has.
    ///
    /// # Errors
    /// 429: there is none for this caller.
    fn enter(&self, caller: Producer, job: &mut Job) -> Result<Place, Refusal> {
        let mut running = self.running();
        self.check_room(&running, caller)?;
        while running.contains_key(&job.body.id) {
            job.body.id += 1;
        }
        Ok(self.place(&mut running, job.clone(), Some(caller)))
    }

    fn check_room(&self, running: &BTreeMap<u64, Running>, caller: Producer) -> Result<(), Refusal> {
        let Self { max, share_max, .. } = *self;
        let of_caller = || running.values().filter(|one| one.caller == Some(caller)).count();
        let what = if caller.has_share() && of_caller() >= share_max {
            format!("the caller has the {share_max} jobs under way that one may have (--max-jobs-per-caller)")
        } else if running.len() >= max {
            format!("the server has the {max} jobs under way that it may have (--max-jobs)")
        } else {
            return Ok(());
        };
        let hint = "try again when one of them is over; GET /v1/jobs shows how they go, and DELETE /v1/jobs/{id} stops one";
        Err(Problem::busy(what, 5).with_hint(hint).into())
    }

    fn place(&self, running: &mut BTreeMap<u64, Running>, job: Job, caller: Option<Producer>) -> Place {
        let (id, held) = (job.body.id, Arc::new(tokio::sync::Mutex::new(job)));
        let stopped = Arc::<Notify>::default();
        running.insert(id, Running { held: Arc::clone(&held), stopped: Arc::clone(&stopped), caller });
        Place { jobs: self.clone(), id, held, stopped, caller }
    }

    fn go(&self, place: Place) {
        let jobs = self.clone();
        tokio::spawn(async move { jobs.run(&place).await });
    }

    /// Page by page to the end, or until it is stopped. Where the server ends meanwhile, the next start goes on behind the last page that was
    /// kept: what was done after it is not counted, and not done again.
    ///
    /// Each page is a turn, so that a job of a million tasks does not hold up a small one that came later.
    async fn run(&self, place: &Place) {
        loop {
            let turn = tokio::select! {
                biased;
                () = place.stopped.notified() => None,
                turn = self.turns.take(place.caller) => Some(turn),
            };
            let page = {
                let job = place.held.lock().await;
                job.is_running().then(|| (job.bulk.clone(), job.at))
            };
            let Some((mut bulk, at)) = page else {
                // It was stopped while it waited for its turn.
                drop(turn);
                self.keep_on(&place.held).await;
                return;
            };
            if self.stopping.is_given() {
                return;
            }
            let page = async {
                let step = bulk.look(&self.queue, at).await?;
                let tally = bulk.act(&self.queue, &step.found).await?;
                Ok::<_, Problem>((step, tally))
            };
            let page = page.await;
            drop(turn);
            {
                let mut job = place.held.lock().await;
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
                    Err(problem) => job.fail(problem),
                }
            }
            if !self.keep_on(&place.held).await || self.stopping.is_given() {
                return;
            }
        }
    }

    /// Keeps how far a job is; where it is over, this waits for room on the disk. False: it does not go on.
    async fn keep_on(&self, held: &Held) -> bool {
        let mut job = held.lock().await;
        loop {
            match self.keep(&job).await {
                Ok(true) => break,
                // A later page is kept, and it makes room.
                Ok(false) if job.is_running() => break,
                // A look at it does not have to wait for that.
                Ok(false) if !self.stopping.is_given() => {
                    drop(job);
                    tokio::time::sleep(ROOM_ASKED).await;
                    job = held.lock().await;
                }
                Err(error) if !self.stopping.is_given() => {
                    // What was kept last says that it is under way, so the next start goes on with it.
                    let (id, queue) = (job.body.id, &job.body.queue);
                    tracing::warn!(event = events::JOB_NOT_KEPT, id, queue, %error, "a job stops, because its progress cannot be stored; it continues after the next start");
                    return false;
                }
                Ok(false) | Err(_) => return false,
            }
        }
        if !job.is_running() {
            let JobBody { id, queue, action, state, matched, done, .. } = &job.body;
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

    /// Writes down how far a job is; false: the disk is full.
    async fn keep(&self, job: &Job) -> Result<bool, PutError> {
        match self.queue.put(job.put()).await {
            Ok(_) => Ok(true),
            Err(PutError::Unavailable(Unavailable::Full { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The job of this number.
    pub(crate) async fn get(&self, id: u64) -> Result<Option<Job>, Problem> {
        let held = self.running().get(&id).map(|one| Arc::clone(&one.held));
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
    pub(crate) async fn stop(&self, id: u64) -> Result<(), Problem> {
        let running = self.running().get(&id).map(|one| (Arc::clone(&one.held), Arc::clone(&one.stopped)));
        let stopped = |job: &Job| {
            let mut stopped = job.clone();
            stopped.body.state = JobState::Stopped;
            stopped
        };
        if let Some((held, told)) = running {
            let mut job = held.lock().await;
            if job.is_running() {
                let stopped = stopped(&job);
                // Where there is no room it is kept as soon as there is.
                self.keep(&stopped).await.map_err(|error| not_kept(&error))?;
                *job = stopped;
                told.notify_one();
            }
        } else if let Some(job) = self.get(id).await?.filter(Job::is_running) {
            // It could go no further, and the next start would go on with it.
            self.queue.put(stopped(&job).put()).await.map_err(|error| not_kept(&error))?;
        }
        Ok(())
    }

    /// All jobs that are kept, the oldest first.
    pub(crate) async fn kept(&self) -> Result<Vec<Job>, Problem> {
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
                        event = events::JOB_UNREADABLE,
                        id = task.id,
                        "a task is no job, though it stands in the queue of jobs"
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

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_kept(error: &PutError) -> Problem {
    match error {
        PutError::Unavailable(error) => translate::unavailable(error),
        error => Problem::internal(format!("the job cannot be kept: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tickwheel_api::{BULK_MAX, BulkCancelBody, JobBody, Levels};
    use tickwheel_queue::{Key, QueueName};
    use tokio::time::timeout;
    use tower_service::Service;

    use super::*;
    use crate::access::tokens::Tokens;
    use crate::base::stopping::{self, Stop};
    use crate::doors::http::routes::routes;
    use crate::service::app::App;
    use crate::service::turns::Turn;
    use crate::service::work::Work;

    const A: Producer = Producer::Token([1; 32]);
    const B: Producer = Producer::Token([2; 32]);

    /// Jobs that all wait until the turns are dropped, over a queue with one task.
    async fn all_waiting(limits: Limits) -> (Jobs, Vec<Turn>, Stop) {
        let (stop, stopping) = stopping::signal();
        let queue = Queue::options().open_memory().expect("a queue");
        let put = Put::new(&name(), Key::new("a").expect("a key"));
        queue.put(put).await.expect("stored");
        let jobs = Jobs::new(queue, stopping, &limits);
        let mut turns = Vec::new();
        for _ in 0..WORKING_MAX {
            turns.push(jobs.turns.take(None).await);
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

    /// The story: four jobs of one caller kept the jobs of all others out until one of them was over.
    #[tokio::test]
    async fn one_caller_has_its_share_of_jobs_and_others_the_rest() {
        let (jobs, turns, _stop) =
            all_waiting(Limits { jobs: 3, jobs_per_caller: 2, ..Limits::default() }).await;
        let ids = [started(&jobs, A).await, started(&jobs, A).await];
        let detail = refused(&jobs, A).await;
        assert!(detail.contains("2 jobs under way that one may have (--max-jobs-per-caller)"), "{detail}");
        let other = started(&jobs, B).await;
        let detail = refused(&jobs, B).await;
        assert!(detail.contains("3 jobs under way that it may have (--max-jobs)"), "{detail}");
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
        let app = Arc::new(App::new(queue, stopping, Levels::default(), None, &limits));
        let mut turns = Vec::new();
        for _ in 0..WORKING_MAX {
            turns.push(app.jobs.turns.take(None).await);
        }
        let tokens = Tokens::parse("one\ntwo").expect("tokens");
        let mut routes = routes(Arc::clone(&app));
        let mut statuses = Vec::new();
        for token in ["one", "one", "two"] {
            let grant = tokens.grant(token.as_bytes()).expect("it is known");
            let request = Request::post("/v1/queues/q/cancel").extension(grant);
            let request = request.body(Body::from(r#"{"filter":{},"dry_run":true}"#)).expect("a request");
            let answer = routes.call(request).await.unwrap_or_else(|never| match never {});
            statuses.push(answer.status().as_u16());
        }
        assert_eq!(statuses, [202, 429, 202]);
    }

    /// All clients of a proxy on this machine have one address.
    #[tokio::test]
    async fn callers_of_this_machine_share_all_jobs() {
        let (jobs, _turns, _stop) =
            all_waiting(Limits { jobs: 3, jobs_per_caller: 1, ..Limits::default() }).await;
        for _ in 0..3 {
            started(&jobs, Producer::Local).await;
        }
        assert!(refused(&jobs, Producer::Local).await.contains("(--max-jobs)"));
    }

    /// The story: a stopped job kept its place until its turn, and the hint of the refusal, to stop one, led nowhere.
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

    /// A server that stops does not begin a page of each job that waits.
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
        let next = Jobs::new(jobs.queue.clone(), stopping, &Limits::default());
        next.resume().await.expect("it goes on");
        let job = over(&next, id).await;
        assert_eq!((job.state, job.matched), (JobState::Done, 1));
    }
}
