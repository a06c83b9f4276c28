//! Who calls, and what the log says of it: acts of administrators, refusals by token, and on request each call.
//!
//! Nothing here has a payload, a key, a token or a query string.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{Method, Uri};
use tickwheel_api::ProblemKind;
use tickwheel_api::openapi::{Needs, Operation, operations};

use crate::events;
use crate::path::decode;
use crate::refusals::word;

/// A call, as the log names it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) method: Method,
    /// The route, with `{q}` and the like where names stand.
    pub(crate) route: &'static str,
    uri: Uri,
    from: Option<IpAddr>,
    /// What the log calls the token; `None` where the server has none.
    pub(crate) token: Option<Arc<str>>,
}

/// The calls of which it is written down who made them: all that need `admin`, what changes many tasks at once, and changes of schedules.
pub(crate) struct Acts(BTreeSet<(&'static str, &'static str)>);

impl Acts {
    pub(crate) fn new() -> Self {
        let is_act = |operation: &Operation| {
            let needs_admin = matches!(
                operation.needs,
                Needs::In("admin") | Needs::Somewhere("admin") | Needs::Everywhere("admin")
            );
            operation.method != "GET" && (needs_admin || OF_MANY.contains(&operation.path))
        };
        let acts = operations().into_iter().filter(is_act);
        Self(acts.map(|operation| (operation.path, operation.method)).collect())
    }

    fn has(&self, method: &str, route: &'static str) -> bool {
        self.0.contains(&(route, method))
    }
}

/// Routes that need no `admin`, and change many tasks with one call.
const OF_MANY: [&str; 5] = [
    "/v1/queues/{q}/cancel",
    "/v1/queues/{q}/move",
    "/v1/queues/{q}/purge",
    "/v1/queues/{q}/schedules/{name}",
    "/v1/jobs/{id}",
];

/// Whether the caller was refused for the token it has, or for having none. `is_limited`: the token has limits of its own.
fn is_refusal(kind: ProblemKind, is_limited: bool) -> bool {
    match kind {
        ProblemKind::Unauthorized | ProblemKind::Forbidden | ProblemKind::OutOfScope => true,
        ProblemKind::Busy => is_limited,
        _ => false,
    }
}

impl Subject {
    pub(crate) fn new(method: Method, route: &'static str, uri: Uri, from: Option<IpAddr>) -> Self {
        Self { method, route, uri, from, token: None }
    }

    /// The queue of its path.
    pub(crate) fn queue(&self) -> Option<String> {
        if self.route.contains("{q}") { decode(self.segment(3)?).ok() } else { None }
    }

    /// The name of a schedule, or the number of a job. Never the key of a task.
    fn name(&self) -> Option<String> {
        let segment = match self.route {
            "/v1/jobs/{id}" => self.segment(3),
            route if route.starts_with("/v1/queues/{q}/schedules/{name}") => self.segment(5),
            _ => None,
        };
        decode(segment?).ok()
    }

    fn segment(&self, index: usize) -> Option<&str> {
        self.uri.path().split('/').nth(index)
    }

    /// Where it comes from.
    pub(crate) fn address(&self) -> impl fmt::Display + use<> {
        let from = self.from;
        from.map_or(Cow::Borrowed("unix"), |from| Cow::Owned(from.to_canonical().to_string()))
    }

    /// What the log calls the token, where there are tokens.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// It was answered: writes down what has to be known of it.
    pub(crate) fn audit(&self, status: u16, kind: Option<ProblemKind>, acts: &Acts, is_limited: bool) {
        let refused = kind.filter(|kind| is_refusal(*kind, is_limited));
        if refused.is_none() && !acts.has(self.method.as_str(), self.route) {
            return;
        }
        let (method, route, queue, name) = (self.method.as_str(), self.route, self.queue(), self.name());
        let (token, address, result) = (self.token(), self.address(), kind.map_or("ok", word));
        if refused.is_some() {
            // The names in it are the caller's choice, and may be many.
            tracing::info!(target: events::AUDIT, event = events::REFUSED, kind = result, token, %address, method, route, status, "refused");
        } else {
            tracing::info!(
                target: events::AUDIT,
                event = events::ADMIN_ACT,
                method,
                route,
                queue,
                name,
                status,
                result,
                token,
                %address,
                "an administrator's call"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(method: &str, route: &'static str, path: &str) -> Subject {
        let from = Some("::ffff:192.0.2.7".parse().expect("an address"));
        Subject::new(method.parse().expect("a method"), route, path.parse().expect("a URI"), from)
    }

    #[test]
    fn a_call_is_named_by_its_queue_and_never_by_a_key() {
        let put =
            subject("PUT", "/v1/queues/{q}/tasks/{key}", "/v1/queues/shop%2Fa/tasks/card:4111?mode=create");
        assert_eq!((put.queue().as_deref(), put.name()), (Some("shop/a"), None));
        assert_eq!(put.address().to_string(), "192.0.2.7");
        let schedule = subject("DELETE", "/v1/queues/{q}/schedules/{name}", "/v1/queues/q/schedules/hourly");
        assert_eq!(schedule.name().as_deref(), Some("hourly"));
        let job = subject("DELETE", "/v1/jobs/{id}", "/v1/jobs/17");
        assert_eq!((job.queue(), job.name().as_deref()), (None, Some("17")));
        assert_eq!(subject("GET", "unmatched", "/v1/queues/secret").queue(), None);
    }

    #[test]
    fn acts_are_what_needs_admin_and_what_changes_many() {
        let acts = Acts::new();
        for (method, route) in [
            ("PUT", "/v1/queues/{q}"),
            ("DELETE", "/v1/queues/{q}"),
            ("POST", "/v1/queues/{q}/pause"),
            ("POST", "/v1/queues/{q}/dead/redrive"),
            ("POST", "/v1/clock/advance"),
            ("POST", "/v1/drain"),
            ("POST", "/v1/backups"),
            ("POST", "/v1/import"),
            ("POST", "/v1/queues/{q}/purge"),
            ("PUT", "/v1/queues/{q}/schedules/{name}"),
            ("DELETE", "/v1/jobs/{id}"),
        ] {
            assert!(acts.has(method, route), "{method} {route}");
        }
        for (method, route) in [
            ("GET", "/v1/queues/{q}"),
            ("GET", "/v1/jobs/{id}"),
            ("PUT", "/v1/queues/{q}/tasks/{key}"),
            ("POST", "/v1/queues/{q}/batch"),
            ("POST", "/v1/queues/{q}/lease"),
        ] {
            assert!(!acts.has(method, route), "{method} {route}");
        }
        let known: BTreeSet<&str> = operations().into_iter().map(|operation| operation.path).collect();
        assert!(OF_MANY.iter().all(|route| known.contains(route)), "a route has another name");
    }
}
