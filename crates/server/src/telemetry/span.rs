//! What is told of requests and deliveries to programs that trace work through several others.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwheel_api::TraceContext;
use tickwheel_queue::{Leased, Timestamp};

/// A piece of work, as traces have it. Names follow the conventions of OpenTelemetry. No key and no payload is ever in one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// `PUT /v1/queues/{q}/tasks/{key}`, or `deliver` and the queue.
    pub name: String,
    /// Which end of what this is.
    pub kind: SpanKind,
    /// When it began, by the wall clock: of a delivery `due_at`, so that its length is how late it was, a wait for a worker included.
    pub begun: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What it is a part of: the request's own `traceparent`.
    pub parent: Option<TraceContext>,
    /// What it comes from: the put that scheduled the task, which may be long ago.
    pub link: Option<TraceContext>,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The server failed: a status of 500 and above.
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

/// A value that is known of a span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

/// Where spans go. It is called on the threads that serve, so it hands them on and does not wait.
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
    /// The way of a task from its instant into a worker's hands.
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
