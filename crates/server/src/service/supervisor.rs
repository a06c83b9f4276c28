//! Restarts the background tasks that end, and reports those that do not run.
//!
//! ```text
//! kept:   ends or panics -> a log line, a count, degraded in /readyz -> a pause -> a restart
//! single: panics         -> a log line, a count, no restart
//! door:   ends too early -> a log line, a count, not ready in /readyz: no client can connect there
//! ```

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use crate::base::stopping::Stopping;
use crate::events;

/// The pause before the first restart of a task. It doubles with each end, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// A task that ran for this time counts as healthy: its next pause is short again.
const STEADY: Duration = Duration::from_secs(60);

/// The background tasks of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Supervisor {
    stopping: Stopping,
    tasks: Arc<Mutex<BTreeMap<&'static str, Task>>>,
}

#[derive(Clone, Debug, Default)]
struct Task {
    failures: u64,
    down: Option<Down>,
}

/// A task that does not run now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Down {
    /// The name of the task and how it ended, for an operator.
    pub(crate) why: String,
    /// Whether clients cannot work without the task.
    pub(crate) is_fatal: bool,
}

/// A task as metrics show it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TaskFigures {
    pub(crate) name: &'static str,
    pub(crate) is_up: bool,
    pub(crate) failures: u64,
}

impl Supervisor {
    pub(crate) fn new(stopping: Stopping) -> Self {
        Self { stopping, tasks: Arc::default() }
    }

    /// Runs a task until the server stops, and restarts it each time it ends. Dropping the future ends the task.
    pub(crate) async fn keep<F>(&self, name: &'static str, task: impl Fn() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut pause = PAUSE_MIN;
        loop {
            let begun = Instant::now();
            self.change(name, |task| task.down = None);
            let ended = run(task()).await;
            if self.stopping.is_given() {
                return;
            }
            if begun.elapsed() >= STEADY {
                pause = PAUSE_MIN;
            }
            self.failed(name, &how(ended), Some(pause), false);
            sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// Runs a task that ends by itself, and reports a panic.
    pub(crate) async fn once(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        if let Err(error) = run(task).await {
            self.failed(name, &how(Err(error)), None, false);
            self.change(name, |task| task.down = None);
        }
    }

    /// Runs a listener until the server stops. If the listener ends earlier, the server is no longer ready.
    pub(crate) async fn door(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.change(name, |task| task.down = None);
        let ended = run(task).await;
        if !self.stopping.is_given() {
            self.failed(name, &how(ended), None, true);
        }
    }

    /// The tasks that do not run now; those without which clients cannot work come first.
    pub(crate) fn down(&self) -> Vec<Down> {
        let mut down: Vec<Down> = self.tasks().values().filter_map(|task| task.down.clone()).collect();
        down.sort_by_key(|down| !down.is_fatal);
        down
    }

    pub(crate) fn figures(&self) -> Vec<TaskFigures> {
        let figures = |(name, task): (&&'static str, &Task)| TaskFigures {
            name,
            is_up: task.down.is_none(),
            failures: task.failures,
        };
        self.tasks().iter().map(figures).collect()
    }

    fn failed(&self, name: &'static str, how: &str, pause: Option<Duration>, is_fatal: bool) {
        let begins_again_in_ms = pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        tracing::error!(
            event = events::BACKGROUND_ENDED,
            task = name,
            how,
            begins_again_in_ms,
            "a background task ended that should not end"
        );
        self.change(name, |task| {
            task.failures += 1;
            task.down = Some(Down { why: format!("the background task `{name}` {how}"), is_fatal });
        });
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<&'static str, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, name: &'static str, change: impl FnOnce(&mut Task)) {
        change(self.tasks().entry(name).or_default());
    }
}

/// All tasks have this one type, so the runtime's code for a task is compiled once, and not for each of them.
pub(crate) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a task to its end, which may be a panic. Dropping the future ends the task.
async fn run(task: impl Future<Output = ()> + Send + 'static) -> Result<(), JoinError> {
    let mut running = JoinSet::new();
    let task: Running = Box::pin(task);
    running.spawn(task);
    running.join_next().await.unwrap_or(Ok(()))
}

/// How a task ended, as the second half of a sentence.
fn how(ended: Result<(), JoinError>) -> String {
    let Err(error) = ended else { return "ended".to_owned() };
    let Ok(panic) = error.try_into_panic() else { return "was cancelled".to_owned() };
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str));
    text.map_or("panicked".to_owned(), |text| format!("panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::base::stopping;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_or_panics_begins_again_after_a_growing_pause() {
        let (stop, stopping) = stopping::signal();
        let supervisor = Supervisor::new(stopping);
        let runs = Arc::new(AtomicU64::new(0));
        let (kept, count) = (supervisor.clone(), Arc::clone(&runs));
        let begun = Instant::now();
        let keeping = tokio::spawn(async move {
            kept.keep("tokens", || {
                let run = count.fetch_add(1, Ordering::Relaxed);
                async move {
                    match run {
                        0 => {}
                        1 => panic!("no such thing"),
                        2 => sleep(2 * STEADY).await,
                        _ => std::future::pending().await,
                    }
                }
            })
            .await;
        });
        sleep(Duration::from_millis(500)).await;
        let why = "the background task `tokens` ended".to_owned();
        assert_eq!(supervisor.down(), [Down { why, is_fatal: false }]);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(supervisor.down()[0].why, "the background task `tokens` panicked: no such thing");
        sleep(Duration::from_secs(2)).await;
        assert_eq!(supervisor.down(), [], "it runs again, {:?} after its begin", begun.elapsed());
        sleep(2 * STEADY + PAUSE_MIN).await;
        let figures = TaskFigures { name: "tokens", is_up: true, failures: 3 };
        assert_eq!(supervisor.figures(), [figures], "after a steady run the pause is short again");
        assert_eq!(runs.load(Ordering::Relaxed), 4);
        stop.give();
        keeping.abort();
    }

    #[tokio::test]
    async fn a_door_that_closes_before_the_stop_is_fatal_and_an_end_with_the_stop_is_none() {
        let (stop, stopping) = stopping::signal();
        let supervisor = Supervisor::new(stopping);
        supervisor.door("http", async { panic!("out of luck") }).await;
        assert!(supervisor.down()[0].is_fatal);
        supervisor.once("job", async { panic!("a job's own fault") }).await;
        let figures = supervisor.figures();
        assert_eq!(
            figures.iter().map(|task| (task.name, task.is_up, task.failures)).collect::<Vec<_>>(),
            [("http", false, 1), ("job", true, 1)]
        );
        stop.give();
        supervisor.door("beanstalk", async {}).await;
        supervisor.keep("backups", || async {}).await;
        assert_eq!(supervisor.figures().iter().map(|task| task.failures).sum::<u64>(), 2);
    }
}
