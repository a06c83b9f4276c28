//! The identity of a call in the log, and the audit: acts of administrators and refusals by token.
//!
//! Nothing here contains a payload, a key, a token or a query string.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use axum::http::header::LOCATION;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use tickwheel_api::ProblemKind;
use tickwheel_api::openapi::Operation;
use tickwheel_queue::{QueueName, ScheduleName};

use crate::doors::http::path::decode;
use crate::doors::http::problem::TokenLimit;
use crate::doors::http::routes::Found;
use crate::events;
use crate::telemetry::refusals::word;

/// A call as the log describes it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) method: Method,
    /// The route, with placeholders such as `{q}` instead of names.
    pub(crate) route: &'static str,
    /// Whether the audit records the call with its caller.
    is_act: bool,
    /// The queue in the path. Only a valid name is kept, because a caller without a token can send any text as a
    /// name.
    queue: Option<QueueName>,
    /// The name of a schedule or the number of a job or a backup in the path, but never the key of a task.
    name: Option<String>,
    from: Option<IpAddr>,
    /// The name of the token in the log; `None` if the server has no tokens.
    pub(crate) token: Option<Arc<str>>,
}

/// Whether a call was refused because of its caller's token, or because it has no token. `is_token_limit`: the token
/// has used up its quota.
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
    is_answered: bool,
}

impl<'a> Act<'a> {
    /// Begins a call.
    pub(crate) fn begin(subject: &'a Subject) -> Self {
        Self { subject, is_answered: false }
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
            _ if subject.is_act => {
                let done = if status == StatusCode::ACCEPTED { "begun" } else { "ok" };
                let name = subject.name.clone().or_else(|| begun(answer));
                subject.log_act(name, Some(status.as_u16()), kind.map_or(done, word));
            }
            _ => {}
        }
    }
}

impl Drop for Act<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.subject.is_act {
            self.subject.log_act(self.subject.name.clone(), None, "left");
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
    /// The call of a request that has this place in the table.
    pub(crate) fn new(found: &Found<'_>, method: Method, path: &str, from: Option<IpAddr>) -> Self {
        let named = |at: &Range<usize>| decode(&path[at.clone()]).ok();
        let name = match &found.name {
            Some(("id", at)) => named(at).and_then(|text| number(&text)),
            Some(("name", at)) => named(at).filter(|text| ScheduleName::new(text).is_ok()),
            _ => None,
        };
        let is_act = found.operation.is_some_and(Operation::is_act);
        let queue = found.queue.as_ref().and_then(|queue| queue.as_ref().ok()).cloned();
        Self { method, route: found.route(), is_act, queue, name, from, token: None }
    }

    /// The queue in the path, if the name is valid.
    pub(crate) fn queue(&self) -> Option<&QueueName> {
        self.queue.as_ref()
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

    /// The names in the path are left out, because the refused caller chooses them and there may be many.
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
            queue = self.queue().map(QueueName::as_str),
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
    use crate::doors::http::routes::Routes;

    fn subject(method: &str, path: &str) -> Subject {
        let method = method.parse().expect("a method");
        let from = Some("::ffff:192.0.2.7".parse().expect("an address"));
        Subject::new(&Routes::new().find(path, &method), method, path, from)
    }

    #[test]
    fn a_call_is_named_by_its_queue_and_never_by_a_key() {
        let put = subject("PUT", "/v1/queues/shop%2Fa/tasks/card:4111");
        assert_eq!((put.queue().map(QueueName::as_str), put.name.as_deref()), (Some("shop/a"), None));
        assert_eq!(put.address().to_string(), "192.0.2.7");
        let schedule = subject("DELETE", "/v1/queues/q/schedules/hourly");
        assert_eq!(schedule.name.as_deref(), Some("hourly"));
        let job = subject("DELETE", "/v1/jobs/17");
        assert_eq!((job.queue(), job.name.as_deref()), (None, Some("17")));
        assert_eq!(subject("DELETE", "/v1/backups/18").name.as_deref(), Some("18"));
        assert_eq!(subject("GET", "/v2/queues/secret").queue(), None);
    }

    /// A bug that was found: a caller without a token wrote 8 KiB of its own text into each line.
    #[test]
    fn invalid_names_are_in_no_line() {
        assert_eq!(subject("POST", &format!("/v1/queues/{}/lease", "q".repeat(201))).queue(), None);
        assert_eq!(subject("PUT", &format!("/v1/queues/q/schedules/{}", "n".repeat(8_000))).name, None);
        assert_eq!(subject("DELETE", "/v1/jobs/no-number").name, None);
    }

    #[test]
    fn acts_are_what_needs_admin_and_what_changes_many() {
        for (method, path) in [
            ("PUT", "/v1/queues/q"),
            ("DELETE", "/v1/queues/q"),
            ("POST", "/v1/queues/q/pause"),
            ("POST", "/v1/queues/q/dead/redrive"),
            ("POST", "/v1/clock/advance"),
            ("POST", "/v1/drain"),
            ("POST", "/v1/backups"),
            ("POST", "/v1/import"),
            ("POST", "/v1/queues/q/cancel"),
            ("POST", "/v1/queues/q/move"),
            ("POST", "/v1/queues/q/purge"),
            ("PUT", "/v1/queues/q/schedules/name"),
            ("DELETE", "/v1/queues/q/schedules/name"),
            ("DELETE", "/v1/jobs/1"),
        ] {
            assert!(subject(method, path).is_act, "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/v1/queues/q"),
            ("GET", "/v1/jobs/1"),
            ("GET", "/v1/backups"),
            ("PUT", "/v1/queues/q/tasks/key"),
            ("POST", "/v1/queues/q/batch"),
            ("POST", "/v1/queues/q/lease"),
        ] {
            assert!(!subject(method, path).is_act, "{method} {path}");
        }
    }
}
