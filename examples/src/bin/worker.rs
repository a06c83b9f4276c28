//! Takes the due tasks of a queue, several at once, until SIGTERM. `handle` is yours; the rest can stay as it is.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt;
use std::hash::BuildHasher;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, fs, io, mem, process};

use anyhow::{Context, Result};
use serde::Deserialize;
use tickwheel_api::{ExtendBody, LeaseBody, LeasedTask, NackBody, TokenResult};
use tickwheel_client::{Client, ClientError, SERVER_URL_DEFAULT};
use tokio::select;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

/// A lease call waits this long for a task.
const WAIT: Duration = Duration::from_secs(20);
/// Each call may take this long in addition.
const CALL: Duration = Duration::from_secs(10);
/// After this time a task counts as hung, and its work is stopped.
const WORK: Duration = Duration::from_secs(3_600);
/// The first and the longest pause before a call is repeated.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

#[derive(Deserialize)]
struct Payload {
    order: u64,
    /// Seconds; it makes the work slow, for the tutorial only.
    #[serde(default)]
    takes: f64,
}

/// Closes an order unless it is paid. Done twice, this has the effect of once.
async fn handle(task: LeasedTask) -> Result<()> {
    let Payload { order, takes } = serde_json::from_slice(&task.payload.bytes)?;
    sleep(Duration::from_secs_f64(takes)).await; // a lost lease ends the work here: at an `await`
    let close = move || {
        let order = Path::new("orders").join(order.to_string());
        if fs::read_to_string(&order)? == "unpaid\n" {
            fs::write(&order, "closed\n")?;
        }
        Ok(())
    };
    spawn_blocking(close).await? // files block their thread, and the runtime has other threads for that
}

/// A leased task.
struct Job {
    task: LeasedTask,
    /// The token of the task, or a later one: see `begin`.
    token: Mutex<String>,
}

impl Job {
    fn token(&self) -> String {
        lock(&self.token).clone()
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (attempt {})", self.task.key, self.task.attempt)
    }
}

struct Worker {
    client: Client,
    queue: String,
    lease: Duration,
    /// One permit for each free hand.
    hands: Arc<Semaphore>,
    /// All that are leased and not settled.
    jobs: Mutex<Vec<Arc<Job>>>,
    /// The server refused a call, and repeating it does not help.
    refused: Notify,
}

impl Worker {
    /// Leases as many tasks as hands are free, again and again. Returns if a call is refused.
    async fn lease(self: &Arc<Self>, running: &mut JoinSet<()>) {
        loop {
            drop(self.hands.acquire().await); // waits for a free hand
            while running.try_join_next().is_some() {} // forgets the jobs that have ended
            let max = self.hands.available_permits();
            let body =
                LeaseBody { max, lease_ms: Some(ms(self.lease)), wait_ms: ms(WAIT), ..LeaseBody::default() };
            let lease = || self.client.lease(&self.queue, &body);
            let Some(tasks) = self.call("lease", WAIT + CALL, lease).await else { return };
            for task in tasks {
                self.begin(task, running);
            }
        }
    }

    /// Begins the work on a task. A crash of the server makes leased tasks ready: if one that is in hand comes again, its work goes on.
    fn begin(self: &Arc<Self>, task: LeasedTask, running: &mut JoinSet<()>) {
        let mut jobs = lock(&self.jobs);
        let same = |job: &&Arc<Job>| {
            let old = &job.task;
            (old.id, old.due_at_ms, &old.payload) == (task.id, task.due_at_ms, &task.payload)
        };
        if let Some(job) = jobs.iter().find(same) {
            *lock(&job.token) = task.token;
            return;
        }
        let hand = Arc::clone(&self.hands).try_acquire_owned().expect("no more tasks than free hands");
        let job = Arc::new(Job { token: Mutex::new(task.token.clone()), task });
        jobs.push(Arc::clone(&job));
        running.spawn(Arc::clone(self).run(job, hand));
    }

    async fn run(self: Arc<Self>, job: Arc<Job>, _hand: OwnedSemaphorePermit) {
        info!("{job}: begins");
        // The first one that ends drops the others: a lost lease ends the work.
        let result = select! {
            result = self.work(&job) => result.map_or("not settled", TokenResult::name),
            () = self.heartbeat(&job) => "lost",
            () = sleep(WORK) => "hung",
        };
        info!("{job}: {result}");
        lock(&self.jobs).retain(|other| !Arc::ptr_eq(other, &job));
    }

    async fn work(&self, job: &Job) -> Option<TokenResult> {
        let Err(error) = unless_it_panics(job.task.clone()).await else {
            return self.report("ack", job, |tokens| self.client.ack(&self.queue, tokens)).await;
        };
        warn!("{job}: failed: {error:#}");
        let reason: String = format!("{error:#}").chars().take(250).collect();
        let nack = |tokens| {
            let body = NackBody { tokens, delay_ms: None, reason: Some(reason.clone()) };
            async move { self.client.nack(&self.queue, &body).await }
        };
        self.report("nack", job, nack).await
    }

    /// Extends the lease each time a third of it has passed. Returns when it is lost.
    async fn heartbeat(&self, job: &Job) {
        let extend = |tokens| {
            let body = ExtendBody { tokens, lease_ms: Some(ms(self.lease)) };
            async move { self.client.extend(&self.queue, &body).await }
        };
        loop {
            sleep(self.lease / 3).await;
            if self.report("extend", job, extend).await != Some(TokenResult::Extended) {
                return;
            }
        }
    }

    /// Extends, acks or nacks. If the job has got another token meanwhile (see `begin`), the answer was about the old one.
    async fn report<F>(&self, verb: &str, job: &Job, send: impl Fn(Vec<String>) -> F) -> Option<TokenResult>
    where
        F: Future<Output = Result<Vec<TokenResult>, ClientError>>,
    {
        let mut token = job.token();
        loop {
            let results = self.call(verb, CALL, || send(vec![token.clone()])).await?;
            let result = *results.first()?;
            if !matches!(result, TokenResult::Expired | TokenResult::Revoked) {
                return Some(result);
            }
            sleep(self.lease / 6).await; // our own lease call may be bringing the other token
            if token == job.token() {
                return Some(result);
            }
            token = job.token();
        }
    }

    /// Repeats a call until it is answered: each of our four calls may be sent twice. `None`: it was refused, and the worker ends.
    async fn call<T, F>(&self, verb: &str, limit: Duration, send: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let [mut pause, longest] = PAUSES;
        loop {
            let mut asked = Duration::ZERO;
            match timeout(limit, send()).await {
                Ok(Ok(answer)) => return Some(answer),
                Ok(Err(error)) if may_pass(&error) => {
                    warn!("{verb}: {error}");
                    let retry_after_s = error.problem().and_then(|problem| problem.retry_after_s);
                    asked = Duration::from_secs(retry_after_s.unwrap_or(0).into());
                }
                Ok(Err(error)) => {
                    error!("{verb}: {error}");
                    self.refused.notify_one();
                    return None;
                }
                Err(_) => warn!("{verb}: no answer within {limit:?}"),
            }
            let random = RandomState::new().hash_one(verb) as f64 / u64::MAX as f64; // from 0 to 1
            sleep(asked.max(pause).mul_f64(1.0 + random / 2.0)).await;
            pause = longest.min(pause * 2);
        }
    }

    /// Makes the tasks ready that are still in hand. If the server is away, their leases end by themselves.
    async fn give_back(&self) {
        let jobs = mem::take(&mut *lock(&self.jobs));
        if jobs.is_empty() {
            return;
        }
        let tokens = jobs.iter().map(|job| job.token()).collect();
        let body = NackBody { tokens, delay_ms: Some(0), reason: Some("the worker stops".to_owned()) };
        let nack = || self.client.nack(&self.queue, &body);
        let results = timeout(CALL, self.call("nack", CALL, nack)).await.ok().flatten().unwrap_or_default();
        for (job, result) in jobs.iter().zip(results) {
            info!("{job}: given back: {}", result.name());
        }
    }
}

/// Runs `handle` as a task of its own, so that a panic ends this task only. When the set is dropped, the task is stopped.
async fn unless_it_panics(task: LeasedTask) -> Result<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(handle(task));
    tasks.join_next().await.context("it is in the set")??
}

/// Whether the same call may succeed later. A wrong token or a wrong address stays wrong.
fn may_pass(error: &ClientError) -> bool {
    let status = match error {
        ClientError::Unreachable { .. } | ClientError::NoAnswer { .. } => return true,
        ClientError::NoSocket { lasting, .. } => return !lasting,
        ClientError::Problem(problem) => problem.status,
        ClientError::BadAnswer { status: Some(status), .. } => *status, // of a proxy
        _ => return false,
    };
    status >= 500 || status == 429 || status == 408
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

/// Each change under a lock is one step, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A setting from the environment.
fn setting<T: FromStr<Err: Error + Send + Sync + 'static>>(name: &str, default: T) -> Result<T> {
    let Ok(text) = env::var(name) else { return Ok(default) };
    text.parse().with_context(|| format!("failed to read {name}={text}"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false);
    log.without_time().with_level(false).with_target(false).init(); // the supervisor adds the time
    let hands = setting("HANDS", 3)?; // tasks at once, at most 1,000
    let grace = Duration::from_secs(setting("GRACE", 20)?); // for the running tasks after SIGTERM
    let mut client = Client::new(&setting("TICKWHEEL_SERVER", SERVER_URL_DEFAULT.to_owned())?)?;
    if let Ok(token) = env::var("TICKWHEEL_TOKEN") {
        client = client.with_token(&token);
    }
    let worker = Arc::new(Worker {
        client,
        queue: setting("QUEUE", "close".to_owned())?,
        lease: Duration::from_secs(setting("LEASE", 30)?),
        hands: Arc::new(Semaphore::new(hands)),
        jobs: Mutex::default(),
        refused: Notify::new(),
    });

    let (mut terminate, mut running) = (signal(SignalKind::terminate())?, JoinSet::new());
    let is_refused = select! {
        biased; // tasks that are here already are begun
        () = worker.lease(&mut running) => true,
        () = worker.refused.notified() => true,
        _ = terminate.recv() => false,
        _ = ctrl_c() => false,
    };
    // The lease call that waited is dropped, and the server gives back what it was about to hand out.
    info!("stops");
    if timeout(grace, async { while running.join_next().await.is_some() {} }).await.is_err() {
        running.abort_all(); // extended no more
        worker.give_back().await;
    }
    process::exit(is_refused.into()) // does not wait for work that blocks
}
