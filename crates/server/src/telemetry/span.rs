//! Spans of requests and deliveries, for programs that trace work across several systems.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwheel_api::TraceContext;
use tickwheel_queue::{Leased, Timestamp};

/// One piece of work in a trace. Names follow the conventions of OpenTelemetry. A span never contains a key or a
/// payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// `PUT /v1/queues/{q}/tasks/{key}`, or `deliver` and the queue.
    pub name: String,
    /// The side of the work: server or consumer.
    pub kind: SpanKind,
    /// The beginning by the wall clock. For a delivery this is `due_at`, so the length of the span is the
    /// lateness of the delivery, with any wait for a worker.
    pub begun: SystemTime,
    /// The end by the wall clock.
    pub ended: SystemTime,
    /// The parent span: the request's own `traceparent`.
    pub parent: Option<TraceContext>,
    /// The linked span: the put that scheduled the task, perhaps long ago.
    pub link: Option<TraceContext>,
    /// Further facts about the work.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Whether the server failed, with a status of at least 500.
    pub failed: bool,
}

/// The kinds of spans that a server makes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// A request and its answer.
    Server,
    /// A task on its way to a worker.
    Consumer,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

/// Takes spans. It is called on the threads that serve calls, so it must pass the span on without waiting.
#[derive(Clone)]
pub struct SpanSink(Arc<dyn Fn(Span) + Send + Sync>);

impl SpanSink {
    /// Calls `take` with each span.
    pub fn new(take: impl Fn(Span) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn take(&self, span: Span) {
        (self.0)(span);
    }
}

impl PartialEq for SpanSink {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SpanSink {}

impl fmt::Debug for SpanSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpanSink")
    }
}

impl Span {
    /// The delivery of a task, from its due time to its worker.
    pub(crate) fn of_delivery(task: &Leased, now: Timestamp, parent: Option<TraceContext>) -> Self {
        let at = |instant: Timestamp| UNIX_EPOCH + Duration::from_millis(instant.as_tick());
        Self {
            name: format!("deliver {}", task.queue.as_str()),
            kind: SpanKind::Consumer,
            begun: at(task.due_at.min(now)),
            ended: at(now),
            parent,
            link: task.trace.as_deref().and_then(TraceContext::read),
            attributes: vec![
                ("messaging.system", Attribute::Text("tickwheel".to_owned())),
                ("messaging.operation.name", Attribute::Text("deliver".to_owned())),
                ("messaging.operation.type", Attribute::Text("receive".to_owned())),
                ("messaging.destination.name", Attribute::Text(task.queue.as_str().to_owned())),
                ("messaging.message.id", Attribute::Text(task.id.to_string())),
                ("tickwheel.attempt", Attribute::Number(task.attempt.into())),
            ],
            failed: false,
        }
    }
}
