//! What every handler shares.

use std::sync::Arc;

use tickwheel_api::Levels;
use tickwheel_queue::Queue;

use crate::deliveries::Deliveries;
use crate::jobs::Jobs;
use crate::limits::Limits;
use crate::refusals::Refusals;
use crate::span::SpanSink;
use crate::stopping::Stopping;

/// All the state there is beside a request's own.
pub(crate) struct App {
    pub(crate) queue: Queue,
    /// Ends every wait.
    pub(crate) stopping: Stopping,
    pub(crate) limits: Limits,
    pub(crate) deliveries: Deliveries,
    pub(crate) jobs: Jobs,
    pub(crate) refusals: Arc<Refusals>,
    /// Whoever changes the settings of a queue holds it.
    pub(crate) settings: tokio::sync::Mutex<()>,
    /// Whoever asks for a forecast holds it.
    pub(crate) forecasts: Arc<tokio::sync::Mutex<()>>,
    /// What a delay level stands for.
    pub(crate) levels: Levels,
    /// Where spans go, if anywhere.
    pub(crate) spans: Option<SpanSink>,
}

impl App {
    pub(crate) fn new(queue: Queue, stopping: Stopping, levels: Levels, spans: Option<SpanSink>) -> Self {
        Self {
            jobs: Jobs::new(queue.clone(), stopping.clone()),
            queue,
            stopping,
            limits: Limits::new(),
            deliveries: Deliveries::default(),
            refusals: Arc::new(Refusals::new()),
            settings: tokio::sync::Mutex::new(()),
            forecasts: Arc::default(),
            levels,
            spans,
        }
    }
}

/// As the handlers get it.
pub(crate) type Shared = axum::extract::State<Arc<App>>;
