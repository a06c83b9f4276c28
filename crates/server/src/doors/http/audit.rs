//! The identity of a call in the log, and the audit: acts of administrators and refusals by token.
//!
//! Nothing here contains a payload, a key, a token or a query string.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::LOCATION;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use tickwheel_api::ProblemKind;
use tickwheel_api::openapi::{Needs, Operation, operations};
use tickwheel_queue::{QueueName, ScheduleName};

use crate::doors::http::path::decode;
use crate::doors::http::problem::TokenLimit;
use crate::events;
use crate::telemetry::refusals::word;

/// A call as the log describes it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) method: Method,
    /// The route, with `{q}` and the like where names stand.
    pub(crate) route: &'static str,
    uri: Uri,
    from: Option<IpAddr>,
    /// The name of the token in the log; `None` if the server has no tokens.
    pub(crate) token: Option<Arc<str>>,
}

/// The calls that the audit records with their caller: those that need `admin`, those that change many tasks at once,
/// and those that change schedules.
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

/// Routes that need no `admin` but change many tasks with one call.
const OF_MANY: [&str; 5] = [
    "/v1/queues/{q}/cancel",
    "/v1/queues/{q}/move",
    "/v1/queues/{q}/purge",
    "/v1/queues/{q}/schedules/{name}",
    "/v1/jobs/{id}",
];

/// Whether the reason of a refusal is the caller's token, or that it has none. `is_token_limit`: the token has used
/// up its quota.
fn is_refusal(kind: ProblemKind, is_token_limit: bool) -> bool {
    match kind {
        ProblemKind::Unauthorized | ProblemKind::Forbidden | ProblemKind::OutOfScope => true,
        ProblemKind::Busy => is_token_limit,
        _ => false,
    }
}

/// A call under way. If it is dropped without an answer, its client has left. The call may have been carried out, so
/// an act is recorded all the same.
pub(crate) struct Act<'a> {
    subject: &'a Subject,
    acts: &'a Acts,
    is_answered: bool,
}

impl<'a> Act<'a> {
    /// Begins a call.
    pub(crate) fn begin(subject: &'a Subject, acts: &'a Acts) -> Self {
        Self { subject, acts, is_answered: false }
    }

    /// Ends the call with this answer, and records what the audit needs.
    pub(crate) fn answered(mut self, answer: &Response) {
        self.is_answered = true;
        let (subject, extensions) = (self.subject, answer.extensions());
        let kind: Option<ProblemKind> = extensions.get().copied();
        let is_token_limit = extensions.get::<TokenLimit>().is_some();
        let status = answer.status();
        match kind {
            Some(kind) if is_refusal(kind, is_token_limit) => {
                subject.log_refusal(word(kind), status.as_u16())
            }
            _ if self.is_act() => {
                let done = if status == StatusCode::ACCEPTED { "begun" } else { "ok" };
                let name = subject.name().or_else(|| begun(answer));
                subject.log_act(name, Some(status.as_u16()), kind.map_or(done, word));
            }
            _ => {}
        }
    }

    fn is_act(&self) -> bool {
        self.acts.has(self.subject.method.as_str(), self.subject.route)
    }
}

impl Drop for Act<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.is_act() {
            self.subject.log_act(self.subject.name(), None, "left");
        }
    }
}

/// The number of the job or the backup that a call has begun.
fn begun(answer: &Response) -> Option<String> {
    if answer.status() != StatusCode::ACCEPTED {
        return None;
    }
    number(answer.headers().get(LOCATION)?.to_str().ok()?.rsplit('/').next()?)
}

/// The number of a job or a backup, if the text is a number.
fn number(text: &str) -> Option<String> {
    text.parse::<u64>().ok().map(|number| number.to_string())
}

impl Subject {
    pub(crate) fn new(method: Method, route: &'static str, uri: Uri, from: Option<IpAddr>) -> Self {
        Self { method, route, uri, from, token: None }
    }

    /// The queue in the path, if the name is valid: a caller without a token can choose any text here.
    pub(crate) fn queue(&self) -> Option<String> {
        let name = self.decoded(3).filter(|_| self.route.contains("{q}"))?;
        QueueName::new(&name).ok().map(|name| name.as_str().to_owned())
    }

    /// The name of a schedule, or the number of a job or a backup, but never the key of a task.
    fn name(&self) -> Option<String> {
        match self.route {
            "/v1/jobs/{id}" | "/v1/backups/{id}" => number(&self.decoded(3)?),
            route if route.starts_with("/v1/queues/{q}/schedules/{name}") => {
                ScheduleName::new(&self.decoded(5)?).ok().map(|name| name.as_str().to_owned())
            }
            _ => None,
        }
    }

    fn decoded(&self, index: usize) -> Option<String> {
        decode(self.segment(index)?).ok()
    }

    fn segment(&self, index: usize) -> Option<&str> {
        self.uri.path().split('/').nth(index)
    }

    /// The address of the caller.
    pub(crate) fn address(&self) -> impl fmt::Display + use<> {
        let from = self.from;
        from.map_or(Cow::Borrowed("unix"), |from| Cow::Owned(from.to_canonical().to_string()))
    }

    /// The name of the token in the log, if the server has tokens.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The names in the path are left out, because the refused caller chooses them and they may be many.
    fn log_refusal(&self, kind: &'static str, status: u16) {
        let (method, route, token, address) =
            (self.method.as_str(), self.route, self.token(), self.address());
        tracing::info!(target: events::AUDIT, event = events::REFUSED, kind, token, %address, method, route, status, "refused");
    }

    fn log_act(&self, name: Option<String>, status: Option<u16>, result: &'static str) {
        tracing::info!(
            target: events::AUDIT,
            event = events::ADMIN_ACT,
            method = self.method.as_str(),
            route = self.route,
            queue = self.queue(),
            name,
            status,
            result,
            token = self.token(),
            address = %self.address(),
            "administrative call"
        );
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
        let backup = subject("DELETE", "/v1/backups/{id}", "/v1/backups/18");
        assert_eq!(backup.name().as_deref(), Some("18"));
        assert_eq!(subject("GET", "unmatched", "/v1/queues/secret").queue(), None);
    }

    /// A bug that was found: a caller without a token wrote 8 KiB of its own text into each line.
    #[test]
    fn invalid_names_are_in_no_line() {
        let long = "q".repeat(201);
        let lease = subject("POST", "/v1/queues/{q}/lease", &format!("/v1/queues/{long}/lease"));
        assert_eq!(lease.queue(), None);
        let schedule = "/v1/queues/{q}/schedules/{name}";
        let path = format!("/v1/queues/q/schedules/{}", "n".repeat(8_000));
        assert_eq!(subject("PUT", schedule, &path).name(), None);
        assert_eq!(subject("DELETE", "/v1/jobs/{id}", "/v1/jobs/no-number").name(), None);
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
