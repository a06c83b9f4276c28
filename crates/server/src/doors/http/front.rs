//! The middleware around the handlers: it runs before and after each request.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request};
use axum::response::{IntoResponse, Response};
use tickwheel::{Clock, SystemClock};
use tickwheel_api::openapi::operations;
use tickwheel_api::{Problem, ProblemKind, TraceContext};
use tower_service::Service;

use crate::access::host::Hosts;
use crate::access::refusal::Refusal;
use crate::doors::http::access_log;
use crate::doors::http::audit::{Act, Acts, Subject};
use crate::doors::http::authorize;
use crate::doors::http::header;
use crate::doors::http::pages;
use crate::doors::http::problem;
use crate::doors::http::routes;
use crate::doors::http::wire::{self, Timeouts};
use crate::events;
use crate::listen::door::{Connection, Door, Idle, Serving};
use crate::listen::standing::Standing;
use crate::listen::stream::Stream;
use crate::service::app::App;
use crate::service::caller::Caller;
use crate::telemetry::requests::{UNMATCHED, Waited};
use crate::telemetry::span::{Attribute, Span, SpanKind};

/// The time limits of a connection. They are in real time, also with a virtual clock.
const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(5),
    idle: Duration::from_secs(60),
    write: Duration::from_secs(30),
    linger: Duration::from_secs(2),
};

/// The HTTP door: checks callers, catches panics, and writes the log.
pub(crate) struct Front {
    routes: Router,
    app: Arc<App>,
    hosts: Hosts,
    clock: SystemClock,
    shapes: Shapes,
    /// Whether each call has a line in the log.
    access_log: bool,
    acts: Acts,
}

impl Front {
    pub(crate) fn new(app: Arc<App>, hosts: Hosts, access_log: bool) -> Self {
        Self::with_routes(routes::routes(Arc::clone(&app)), app, hosts, access_log)
    }

    /// A door with routes other than its own.
    pub(crate) fn with_routes(routes: Router, app: Arc<App>, hosts: Hosts, access_log: bool) -> Self {
        let (clock, shapes, acts) = (SystemClock::new(), Shapes::new(), Acts::new());
        Self { routes, app, hosts, clock, shapes, access_log, acts }
    }

    /// Answers one request. Dropping the future ends its waits.
    pub(crate) async fn answer(&self, request: Request<Body>, standing: &Standing) -> Response {
        let begun = self.clock.now();
        let method = request.method().clone();
        let shape = self.shapes.of(request.uri().path());
        let trace = header::trace(request.headers());
        let mut subject = Subject::new(method.clone(), shape, request.uri().clone(), standing.from());
        let (parts, body) = request.into_parts();
        let admitted = self.hosts.check(&parts).and_then(|()| self.admit(&parts, standing));
        let mut answer = match admitted {
            // Pages come before the authorization: a browser has no token, and the pages contain no secrets.
            Ok(()) => match pages::page(&parts) {
                Some(page) => page,
                None => self.granted(parts, body, &mut subject).await,
            },
            Err(refusal) => refusal.into_response(),
        };
        // Answers are true only now, and are JSON whatever type a browser guesses.
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(kind) = answer.extensions().get::<ProblemKind>() {
            self.app.refusals.count(*kind);
        }
        let took = self.clock.now().saturating_since(begun);
        let status = answer.status().as_u16();
        let waited = answer.extensions().get::<Waited>().map_or(Duration::ZERO, |waited| waited.0);
        self.app.requests.count(shape, status, took.saturating_sub(waited));
        log(&method, shape, status, took, trace.as_ref());
        if let Some(spans) = &self.app.spans {
            spans.take(span(&method, shape, status, took, trace));
        }
        if self.access_log { access_log::log(answer, subject, self.clock, begun) } else { answer }
    }

    /// Refuses a call on a connection with a reserved permit, unless the permit is meant for such calls, or another
    /// permit is free by now.
    fn admit(&self, parts: &Parts, standing: &Standing) -> Result<(), Refusal> {
        let looks_after =
            matches!(parts.uri.path(), "/healthz" | "/readyz" | "/metrics") && parts.method.is_safe();
        if !standing.seat().is_reserved()
            || looks_after
            || self.app.authorizer.is_admin(authorize::token(&parts.headers))
        {
            return Ok(());
        }
        Ok(standing.admit()?)
    }

    /// Carries the request out, if its sender has the right.
    async fn granted(&self, mut parts: Parts, body: Body, subject: &mut Subject) -> Response {
        let (need, changes) = (authorize::need(&parts.method, parts.uri.path()), !parts.method.is_safe());
        let token = authorize::token(&parts.headers);
        match Caller::begin(&self.app, token, &need, changes, None) {
            Ok(caller) => {
                subject.token = caller.grant().name().cloned();
                parts.extensions.insert(caller.grant().clone());
                let act = Act::begin(subject, &self.acts);
                let answer = self.call(Request::from_parts(parts, body)).await;
                act.answered(&answer);
                answer
            }
            Err(refusal) => {
                subject.token = self.app.authorizer.name(token);
                let answer = refusal.into_response();
                Act::begin(subject, &self.acts).answered(&answer);
                answer
            }
        }
    }

    /// Counts a refusal of something that never became a request.
    pub(crate) fn refused(&self, problem: &Problem) {
        if let Some(kind) = problem.kind() {
            self.app.refusals.count(kind);
        }
    }

    /// Calls the handler. A panic in it is a mistake of the server, and ends only this call.
    async fn call(&self, request: Request<Body>) -> Response {
        let mut routes = self.routes.clone();
        let mut handler = pin!(routes.call(request));
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(answer))) => Poll::Ready(answer),
            Ok(Poll::Ready(Err(never))) => match never {},
            Err(_) => {
                tracing::error!(event = events::PANICKED, "a handler panicked");
                Poll::Ready(problem::response(&Problem::internal("a part of the server failed")))
            }
        })
        .await
    }
}

impl Door for Front {
    fn name(&self) -> &'static str {
        "http"
    }

    fn idle(&self) -> Idle {
        Idle::MakesWay
    }

    fn serve(self: Arc<Self>, connection: Connection) -> Serving {
        let Connection { stream, standing } = connection;
        let stopping = self.app.stopping.clone();
        Box::pin(wire::serve(stream, self, TIMEOUTS, stopping, standing))
    }

    fn turn_away(self: Arc<Self>, why: Problem, stream: Option<Stream>) -> Option<Serving> {
        self.refused(&why);
        let stream = stream?;
        Some(Box::pin(wire::refuse(stream, why, TIMEOUTS)))
    }
}

fn log(method: &Method, shape: &str, status: u16, took: Duration, trace: Option<&TraceContext>) {
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let trace_id = trace.map(TraceContext::trace_id);
    // A failed store was logged when it failed; the calls that it refuses later are not logged again at this level.
    if status == 500 {
        tracing::warn!(event = events::CALL_FAILED, %method, route = shape, status, took_us, trace_id, "answered");
    } else {
        tracing::debug!(%method, route = shape, status, took_us, trace_id, "answered");
    }
}

/// The span of a request that was just answered.
fn span(method: &Method, shape: &str, status: u16, took: Duration, parent: Option<TraceContext>) -> Span {
    let ended = SystemTime::now();
    Span {
        name: format!("{method} {shape}"),
        kind: SpanKind::Server,
        begun: ended.checked_sub(took).unwrap_or(ended),
        ended,
        parent,
        link: None,
        attributes: vec![
            ("http.request.method", Attribute::Text(method.to_string())),
            ("http.route", Attribute::Text(shape.to_owned())),
            ("http.response.status_code", Attribute::Number(status.into())),
        ],
        failed: status >= 500,
    }
}

/// The patterns of the routes, with `{q}` and the like for names. Logs and spans must not contain keys, so they use
/// these instead of the path.
struct Shapes(BTreeSet<&'static str>);

impl Shapes {
    fn new() -> Self {
        Self(operations().into_iter().map(|operation| operation.path).collect())
    }

    fn of(&self, path: &str) -> &'static str {
        let is_it = |shape: &&str| {
            let (mut ours, mut theirs) = (shape.split('/'), path.split('/'));
            loop {
                match (ours.next(), theirs.next()) {
                    (None, None) => return true,
                    (Some(ours), Some(theirs)) if ours == theirs || ours.starts_with('{') => {}
                    _ => return false,
                }
            }
        };
        self.0.iter().copied().find(is_it).unwrap_or(UNMATCHED)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use axum::routing::{get, post};

    use super::*;
    use crate::listen::addresses::Addresses;
    use crate::listen::permits::Permits;

    fn front(routes: Router) -> Front {
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 8463));
        let hosts = Hosts::of(&listen.into(), false, &[]);
        Front::with_routes(routes, Arc::new(App::in_memory()), hosts, false)
    }

    /// A buffer that collects the lines of a log.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Lines {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
        }
    }

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A worker that waits an hour for tasks must not count as a slow call.
    #[tokio::test]
    async fn the_wait_of_a_lease_is_not_in_the_time_of_its_call() {
        let waits = || async {
            let mut answer = Response::new(Body::empty());
            answer.extensions_mut().insert(Waited(Duration::from_secs(3_600)));
            answer
        };
        let front = front(Router::new().route("/v1/queues", get(waits)));
        let standing =
            Standing::find(&Permits::new(1, 0), &Addresses::new(1), None, Idle::MakesWay).expect("a place");
        let request = Request::get("/v1/queues").header("host", "127.0.0.1:8463").body(Body::empty());
        assert_eq!(front.answer(request.expect("a request"), &standing).await.status(), 200);
        let seen = front.app.requests.seen();
        let called: Vec<_> = seen.iter().filter(|of| of.times.counts != [0; 8]).collect();
        assert_eq!(called.len(), 1, "{seen:?}");
        assert_eq!((called[0].route, called[0].class, called[0].times.sum_us), ("/v1/queues", "2xx", 0));
        assert_eq!(called[0].times.counts[0], 1);
    }

    /// A bug that was found: a client left, the future of its call was dropped, and the act that the queue carried
    /// out was in no line.
    #[tokio::test]
    async fn an_act_whose_client_left_has_a_line() {
        let stalls = || async {
            std::future::pending::<()>().await;
            Response::new(Body::empty())
        };
        let stalled = Router::new().route("/v1/queues/{q}/pause", post(stalls));
        let front = front(stalled);
        let standing =
            Standing::find(&Permits::new(1, 0), &Addresses::new(1), None, Idle::MakesWay).expect("a place");
        let request =
            Request::post("/v1/queues/q/pause").header("host", "127.0.0.1:8463").body(Body::empty());
        let lines = Lines::default();
        let seen = lines.clone();
        let _log = tracing::subscriber::set_default(
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || seen.clone()).finish(),
        );
        {
            let mut call = pin!(front.answer(request.expect("a request"), &standing));
            assert!(poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
            assert_eq!(lines.text(), "", "it is under way");
        }
        let text = lines.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in ["event=\"admin_act\"", "method=\"POST\"", "queue=\"q\"", "result=\"left\""] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("status"), "there was no answer: {text}");
    }

    #[test]
    fn logs_hold_no_names() {
        let shapes = Shapes::new();
        for (path, shape) in [
            ("/v1/queues/close/tasks/order:1", "/v1/queues/{q}/tasks/{key}"),
            ("/v1/queues/close/lease", "/v1/queues/{q}/lease"),
            ("/v1/queues/close", "/v1/queues/{q}"),
            ("/v1/jobs/1795389349929", "/v1/jobs/{id}"),
            ("/healthz", "/healthz"),
            ("/v1/queues/close/tasks/a/b", UNMATCHED),
            ("/queues/close/tasks/order:1", UNMATCHED),
            ("/v1/queues/close/order:1", UNMATCHED),
            ("", UNMATCHED),
        ] {
            assert_eq!(shapes.of(path), shape, "{path}");
        }
    }
}
