//! What every handler shares.

use std::sync::Arc;

use tickwheel_api::Levels;
use tickwheel_queue::Queue;

use crate::access::authorizer::Authorizer;
use crate::base::stopping::Stopping;
use crate::service::backups::{Backups, NO_DIR};
use crate::service::drain::Drain;
use crate::service::export_places::ExportPlaces;
use crate::service::jobs::Jobs;
use crate::service::limits::{Limits, Slots};
use crate::service::supervisor::Supervisor;
use crate::telemetry::deliveries::Deliveries;
use crate::telemetry::metrics::Figures;
use crate::telemetry::metrics::queue_labels::QueueLabels;
use crate::telemetry::refusals::Refusals;
use crate::telemetry::requests::{Requests, routes};
use crate::telemetry::span::SpanSink;

/// All the state there is beside a request's own.
pub(crate) struct App {
    pub(crate) queue: Queue,
    /// Ends every wait.
    pub(crate) stopping: Stopping,
    pub(crate) slots: Slots,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Jobs,
    pub(crate) backups: Backups,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) requests: Arc<Requests>,
    /// Which queues have labels in the figures; held while a scrape looks at them.
    pub(crate) queue_labels: tokio::sync::Mutex<QueueLabels>,
    /// The metrics of the doors.
    pub(crate) figures: Vec<Arc<dyn Figures>>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) supervisor: Supervisor,
    /// Held while the settings of a queue are changed.
    pub(crate) settings: tokio::sync::Mutex<()>,
    /// Held while a forecast is made.
    pub(crate) forecasts: Arc<tokio::sync::Mutex<()>>,
    /// A place for each export that is under way.
    pub(crate) exports: ExportPlaces,
    /// What a delay level stands for.
    pub(crate) levels: Levels,
    /// Payloads are taken that not all readers of JSON take.
    pub(crate) lax_json: bool,
    /// Where spans go, if anywhere.
    pub(crate) spans: Option<SpanSink>,
    /// No new tasks are taken.
    pub(crate) draining: Drain,
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
            backups: Backups::new(queue.clone(), stopping.clone(), Err(NO_DIR), None),
            queue,
            slots: Slots::new(limits),
            deliveries: Arc::default(),
            refusals: Arc::new(Refusals::new()),
            requests: Arc::new(Requests::of(routes())),
            queue_labels: tokio::sync::Mutex::default(),
            figures: Vec::new(),
            authorizer: Arc::default(),
            supervisor,
            stopping,
            settings: tokio::sync::Mutex::new(()),
            forecasts: Arc::default(),
            exports: ExportPlaces::default(),
            levels,
            lax_json: false,
            spans,
            draining: Drain::default(),
        }
    }

    /// With a queue in memory, and a signal to stop that is never given.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        let (stop, stopping) = crate::base::stopping::signal();
        std::mem::forget(stop);
        Self::of_test(stopping)
    }

    /// With a queue in memory.
    #[cfg(test)]
    pub(crate) fn of_test(stopping: Stopping) -> Self {
        let queue = Queue::options().open_memory().expect("a queue");
        Self::new(queue, stopping, Levels::default(), None, &Limits::default())
    }

    /// What `check` says of the payloads in what `read` has read, unless the server takes any JSON.
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
