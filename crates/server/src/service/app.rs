//! The state that all handlers share.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tickwheel_api::{ConsoleMode, Levels};
use tickwheel_queue::Queue;

use crate::access::authorizer::Authorizer;
use crate::base::stopping::Stopping;
use crate::service::backups::{Backups, NoBackups};
use crate::service::drain::Drain;
use crate::service::jobs::keeper::Jobs;
use crate::service::permits::limits::Limits;
use crate::service::permits::slots::Slots;
use crate::service::subscriptions::Subscriptions;
use crate::service::supervisor::Supervisor;
use crate::targets::{Outside, Targets};
use crate::telemetry::deliveries::Deliveries;
use crate::telemetry::metrics::Figures;
use crate::telemetry::metrics::Scrapes;
use crate::telemetry::refusals::Refusals;
use crate::telemetry::requests::{Requests, routes};
use crate::telemetry::span::SpanSink;

/// All state of the service, except that of single requests.
pub(crate) struct App {
    pub(crate) queue: Queue,
    /// Ends all waits when the server stops.
    pub(crate) stopping: Stopping,
    pub(crate) slots: Slots,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Jobs,
    pub(crate) backups: Backups,
    /// The queues whose tasks the server sends by itself.
    pub(crate) targets: Targets,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) requests: Arc<Requests>,
    /// The queues that have labels in the metrics. The lock is held during a scrape.
    pub(crate) scrapes: tokio::sync::Mutex<Scrapes>,
    /// The metrics of the doors.
    pub(crate) figures: Vec<Arc<dyn Figures>>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) supervisor: Supervisor,
    /// The readers of events.
    pub(crate) subscriptions: Subscriptions,
    /// The lock is held while the settings of a queue change.
    pub(crate) settings: tokio::sync::Mutex<()>,
    /// The lock is held while a forecast is made.
    pub(crate) forecasts: Arc<tokio::sync::Mutex<()>>,
    /// The lock is held while dead tasks are grouped.
    pub(crate) dead_groups: tokio::sync::Mutex<()>,
    /// The delay of each delay level.
    pub(crate) levels: Levels,
    /// Whether payloads are taken that some JSON readers reject.
    pub(crate) lax_json: bool,
    /// The receiver of spans, if there is one.
    pub(crate) spans: Option<SpanSink>,
    /// Whether the server refuses new tasks.
    pub(crate) draining: Drain,
    /// The pages for browsers.
    pub(crate) console: ConsoleMode,
    /// A text that no other start of a server has, but by a rare accident.
    pub(crate) instance: String,
}

impl App {
    pub(crate) fn new(
        queue: Queue,
        stopping: Stopping,
        levels: Levels,
        spans: Option<SpanSink>,
        limits: &Limits,
    ) -> Self {
        let supervisor = Supervisor::new(stopping.clone());
        Self {
            jobs: Jobs::new(queue.clone(), stopping.clone(), supervisor.clone(), limits),
            backups: Backups::new(queue.clone(), stopping.clone(), Err(NoBackups::NoDirectory), None),
            targets: Targets::new(&queue, Outside::default()),
            queue,
            slots: Slots::new(limits),
            deliveries: Arc::default(),
            refusals: Arc::new(Refusals::new()),
            requests: Arc::new(Requests::of(routes())),
            scrapes: tokio::sync::Mutex::default(),
            figures: Vec::new(),
            authorizer: Arc::default(),
            supervisor,
            subscriptions: Subscriptions::default(),
            stopping,
            settings: tokio::sync::Mutex::new(()),
            forecasts: Arc::default(),
            dead_groups: tokio::sync::Mutex::default(),
            levels,
            lax_json: false,
            spans,
            draining: Drain::default(),
            console: ConsoleMode::default(),
            // The state of the hasher comes from the random numbers of the system.
            instance: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
        }
    }

    /// A state with a queue in memory and a stop signal that is never given.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        let (stop, stopping) = crate::base::stopping::signal();
        std::mem::forget(stop);
        Self::of_test(stopping)
    }

    /// A state with a queue in memory.
    #[cfg(test)]
    pub(crate) fn of_test(stopping: Stopping) -> Self {
        let queue = Queue::options().open_memory().expect("a queue");
        Self::new(queue, stopping, Levels::default(), None, &Limits::default())
    }

    /// Reads a body and checks its payloads with `check`, unless the server takes any JSON.
    pub(crate) fn portable<T, E>(
        &self,
        read: impl FnOnce(&[u8]) -> Result<T, E> + Send + 'static,
        check: impl FnOnce(&T) -> Result<(), E> + Send + 'static,
    ) -> impl FnOnce(&[u8]) -> Result<T, E> + Send + 'static {
        let lax = self.lax_json;
        move |bytes: &[u8]| {
            let found = read(bytes)?;
            if !lax {
                check(&found)?;
            }
            Ok(found)
        }
    }
}
