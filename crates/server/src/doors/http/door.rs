//! The middleware around the handlers: it runs before and after each request.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use axum::body::{Body, HttpBody};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request};
use axum::response::{IntoResponse, Response};
use tickwheel::{Clock, SystemClock};
use tickwheel_api::openapi::Needs;
use tickwheel_api::{Problem, ProblemKind, TraceContext, no_query};

use crate::access::host::Hosts;
use crate::access::refusal::Refusal;
use crate::doors::http::access_log;
use crate::doors::http::audit::{Act, Subject};
use crate::doors::http::call::Call;
use crate::doors::http::console::Console;
use crate::doors::http::header;
use crate::doors::http::pages;
use crate::doors::http::problem;
use crate::doors::http::routes::{Answering, Found, Routes};
use crate::doors::http::wire::{self, Timeouts, Turn};
use crate::events;
use crate::listen::door::{Connection, Door, Idle, Serving};
use crate::listen::standing::Standing;
use crate::listen::stream::Stream;
use crate::service::app::App;
use crate::service::caller::Caller;
use crate::telemetry::requests::Waited;
use crate::telemetry::span::{Attribute, Span, SpanKind};

/// The time limits of a connection. They are in real time, also with a virtual clock.
const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(5),
    idle: Duration::from_secs(60),
    write: Duration::from_secs(30),
    linger: Duration::from_secs(2),
};

/// The HTTP door: checks callers, catches panics, and writes the log.
pub(crate) struct HttpDoor {
    routes: Routes,
    app: Arc<App>,
    hosts: Hosts,
    clock: SystemClock,
    /// Whether each call has a line in the log.
    access_log: bool,
    console: Console,
}

impl HttpDoor {
    pub(crate) fn new(
        routes: Routes,
        app: Arc<App>,
        hosts: Hosts,
        access_log: bool,
        console: Console,
    ) -> Self {
        Self { routes, app, hosts, clock: SystemClock::new(), access_log, console }
    }

    /// Answers one request. Dropping the future ends its waits.
    pub(crate) async fn answer(&self, request: Request<Body>, standing: &Standing, turn: Turn) -> Response {
        let begun = self.clock.now();
        let (parts, body) = request.into_parts();
        let found = self.routes.find(parts.uri.path(), &parts.method);
        let (method, route) = (parts.method.clone(), found.route());
        let trace = header::trace(&parts.headers);
        let mut subject = Subject::new(&found, method.clone(), parts.uri.path(), standing.from());
        let admitted = self.hosts.check(&parts).and_then(|()| self.admit(&parts, standing));
        let mut answer = match admitted {
            // Pages come before the authorization: a browser has no token, and the pages contain no secrets.
            Ok(()) => match pages::page(&parts, &self.console).await {
                Some(page) => page,
                None => self.granted(found, parts, body, turn, &mut subject, standing).await,
            },
            Err(refusal) => refusal.into_response(),
        };
        // An answer of the API is true only at this moment, so it is not cached. A browser must not guess another type.
        answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(kind) = answer.extensions().get::<ProblemKind>() {
            self.app.observed.refusals().count(*kind);
        }
        let took = self.clock.now().saturating_since(begun);
        let status = answer.status().as_u16();
        let waited = answer.extensions().get::<Waited>().map_or(Duration::ZERO, |waited| waited.0);
        self.app.observed.requests().count(route, status, took.saturating_sub(waited));
        log(&method, route, status, took, trace.as_ref());
        if let Some(spans) = self.app.observed.spans() {
            spans.take(span(&method, route, status, took, trace));
        }
        if self.access_log { access_log::log(answer, subject, self.clock, begun) } else { answer }
    }

    /// Refuses a call on a connection with a reserved permit, unless the permit is meant for such calls, or another
    /// permit is free now.
    fn admit(&self, parts: &Parts, standing: &Standing) -> Result<(), Refusal> {
        let looks_after =
            matches!(parts.uri.path(), "/healthz" | "/readyz" | "/metrics") && parts.method.is_safe();
        if !standing.seat().is_reserved()
            || looks_after
            || self.app.admission.authorizer().is_admin(header::token(&parts.headers))
        {
            return Ok(());
        }
        Ok(standing.admit()?)
    }

    /// Carries the request out, if its sender has the right.
    async fn granted(
        &self,
        found: Found<'_>,
        parts: Parts,
        body: Body,
        turn: Turn,
        subject: &mut Subject,
        standing: &Standing,
    ) -> Response {
        let (token, changes) = (header::token(&parts.headers), !parts.method.is_safe());
        let (queue, needs) = (subject.queue(), found.needs());
        match Caller::begin(&self.app, token, needs, queue, changes, standing.from()) {
            Ok(caller) => {
                subject.token = caller.grant().name().cloned();
                let act = Act::begin(subject);
                let is_head = parts.method == Method::HEAD;
                let mut answer = self.called(found, caller, parts, body, turn).await;
                if is_head {
                    let bytes = answer.body().size_hint().exact();
                    if let Some(bytes) = bytes {
                        answer.headers_mut().insert(CONTENT_LENGTH, bytes.into());
                    }
                    *answer.body_mut() = Body::empty();
                }
                act.answered(&answer);
                answer
            }
            Err(refusal) => {
                subject.token = self.app.admission.authorizer().name(token);
                let answer = refusal.into_response();
                Act::begin(subject).answered(&answer);
                answer
            }
        }
    }

    /// Calls the handler of an operation, if there is one.
    async fn called(
        &self,
        found: Found<'_>,
        caller: Caller,
        parts: Parts,
        body: Body,
        turn: Turn,
    ) -> Response {
        let Some(operation) = found.operation else {
            return found.nothing_here(&parts.method, parts.uri.path());
        };
        let queue = match found.queue.transpose() {
            Ok(queue) => queue,
            Err(refusal) => return refusal.into_response(),
        };
        // A parameter that is ignored would have no effect, against the wish of its caller. Health is answered all
        // the same.
        if operation.query.is_empty()
            && operation.needs != Needs::Nothing
            && let Err(refusal) = no_query(parts.uri.query().unwrap_or_default())
        {
            return Refusal::from(refusal).into_response();
        }
        let name = found.name.map_or(0..0, |(_, at)| at);
        let call = Call { caller, parts, body, turn, queue, name, permit: None };
        Self::caught(self.routes.handler(operation.id)(call)).await
    }

    /// Waits for the answer of a handler. A panic in it is a mistake of the server, and ends only this call.
    async fn caught(mut answering: Answering) -> Response {
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(answer.unwrap_or_else(IntoResponse::into_response)),
            Err(_) => {
                tracing::error!(event = events::PANICKED, "a handler panicked");
                Poll::Ready(problem::response(&Problem::internal("a part of the server failed")))
            }
        })
        .await
    }

    /// Counts a refusal of bytes that never became a request.
    pub(crate) fn refused(&self, problem: &Problem) {
        if let Some(kind) = problem.kind() {
            self.app.observed.refusals().count(kind);
        }
    }
}

impl Door for HttpDoor {
    fn name(&self) -> &'static str {
        "http"
    }

    fn idle(&self) -> Idle {
        Idle::MakesWay
    }

    fn serve(self: Arc<Self>, connection: Connection) -> Serving {
        let Connection { stream, standing } = connection;
        let stopping = self.app.background.stopping().clone();
        Box::pin(wire::serve(stream, self, TIMEOUTS, stopping, standing))
    }

    fn turn_away(self: Arc<Self>, why: Problem, stream: Option<Stream>) -> Option<Serving> {
        self.refused(&why);
        let stream = stream?;
        Some(Box::pin(wire::refuse(stream, why, TIMEOUTS)))
    }
}

fn log(method: &Method, route: &str, status: u16, took: Duration, trace: Option<&TraceContext>) {
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let trace_id = trace.map(TraceContext::trace_id);
    // A failed store was logged when it failed. The calls that it refuses later are not logged again at this level.
    if status == 500 {
        tracing::warn!(event = events::CALL_FAILED, %method, route = route, status, took_us, trace_id, "answered");
    } else {
        tracing::debug!(%method, route = route, status, took_us, trace_id, "answered");
    }
}

/// The span of a request that was just answered.
fn span(method: &Method, route: &str, status: u16, took: Duration, parent: Option<TraceContext>) -> Span {
    let ended = SystemTime::now();
    Span {
        name: format!("{method} {route}"),
        kind: SpanKind::Server,
        begun: ended.checked_sub(took).unwrap_or(ended),
        ended,
        parent,
        link: None,
        attributes: vec![
            ("http.request.method", Attribute::Text(method.to_string())),
            ("http.route", Attribute::Text(route.to_owned())),
            ("http.response.status_code", Attribute::Number(status.into())),
        ],
        failed: status >= 500,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::io;
    use std::pin::pin;
    use std::sync::Mutex;

    use tickwheel_api::openapi::OperationId;

    use super::*;
    use crate::doors::http::routes::Handler;
    use crate::listen::addresses::Addresses;
    use crate::listen::permits::Permits;

    /// A door with another handler for one operation.
    fn door(id: OperationId, handler: Handler) -> HttpDoor {
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 8463));
        let hosts = Hosts::of(&listen.into(), false, &[]);
        HttpDoor::new(Routes::new().with(id, handler), Arc::new(App::in_memory()), hosts, false, Console::Off)
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
        let door = door(OperationId::ListQueues, |_| {
            let mut answer = Response::new(Body::empty());
            answer.extensions_mut().insert(Waited(Duration::from_secs(3_600)));
            Box::pin(ready(Ok(answer)))
        });
        let standing =
            Standing::find(&Permits::new(1, 0), &Addresses::new(1), None, Idle::MakesWay).expect("a place");
        let request = Request::get("/v1/queues").header("host", "127.0.0.1:8463").body(Body::empty());
        assert_eq!(door.answer(request.expect("a request"), &standing, Turn::default()).await.status(), 200);
        let seen = door.app.observed.requests().seen();
        let called: Vec<_> = seen.iter().filter(|of| of.times.counts != [0; 8]).collect();
        assert_eq!(called.len(), 1, "{seen:?}");
        assert_eq!((called[0].route, called[0].class, called[0].times.sum_us), ("/v1/queues", "2xx", 0));
        assert_eq!(called[0].times.counts[0], 1);
    }

    /// A bug that was found: a client left, and the future of its call was dropped. The queue carried out the act,
    /// and no line of the log said so.
    #[tokio::test]
    async fn an_act_whose_client_left_has_a_line() {
        let door = door(OperationId::PauseQueue, |_| Box::pin(pending()));
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
            let mut call = pin!(door.answer(request.expect("a request"), &standing, Turn::default()));
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
}
