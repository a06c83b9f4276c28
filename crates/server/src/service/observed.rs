//! The counts of the service, and the text that tells this start of the server from others.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tickwheel_api::{ConsoleMode, TraceContext};
use tickwheel_queue::{Leased, Timestamp};
use tokio::sync::Mutex;

use crate::service::part::part;
use crate::telemetry::deliveries::Deliveries;
use crate::telemetry::metrics::{Figures, Scrapes};
use crate::telemetry::refusals::Refusals;
use crate::telemetry::requests::{Requests, routes};
use crate::telemetry::span::{Span, SpanSink};

part! {
    /// The counts of all doors.
    Observed {
        pub(crate) deliveries: Deliveries,
        pub(crate) refusals: Refusals,
        pub(crate) requests: Requests,
        /// The queues that have labels in the metrics. The lock is held during a scrape.
        pub(crate) scrapes: Mutex<Scrapes>,
        /// The metrics of the doors.
        pub(crate) figures: Vec<Arc<dyn Figures>>,
        /// The receiver of spans, if there is one.
        pub(crate) spans: Option<SpanSink>,
        /// The pages for browsers.
        pub(crate) console: ConsoleMode,
        /// A text that no other start of a server has, but by a rare accident.
        pub(crate) instance: String,
    }
}

impl Observed {
    pub(crate) fn new(figures: Vec<Arc<dyn Figures>>, spans: Option<SpanSink>, console: ConsoleMode) -> Self {
        Self {
            deliveries: Deliveries::default(),
            refusals: Refusals::new(),
            requests: Requests::of(routes()),
            scrapes: Mutex::default(),
            figures,
            spans,
            console,
            // The state of the hasher comes from the random numbers of the system.
            instance: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
        }
    }

    /// Counts the lateness of tasks that a call got, and makes a span for each. `asked`: when the call began.
    pub(super) fn delivered(&self, leased: &[Leased], asked: Timestamp, now: Timestamp, trace: Option<&str>) {
        self.deliveries.count(leased, asked, now);
        if let Some(spans) = &self.spans {
            let parent = trace.and_then(TraceContext::read);
            leased.iter().for_each(|task| spans.take(Span::of_delivery(task, now, parent.clone())));
        }
    }
}
