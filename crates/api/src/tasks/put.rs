//! The bodies of a put and of a patch.

use crate::declare::{
    Body, RawMembers, Rule, Schema, body, duration, flat, may, members_of, unless, unless_made,
};
use crate::tasks::queries::PutMode;
use crate::tasks::terms::{Terms, TermsPatch};
use crate::text::bad_request::BadRequest;
use crate::values::due::Due;
use crate::values::payload::{PayloadBody, payload};
use crate::values::timeline::{self, MomentBody, timeline};

/// Members that callers often look for in the body, with their right places.
const ELSEWHERE: &[(&str, &str)] = &[
    ("mode", "it is a query parameter: `?mode=create`"),
    ("revoke", "it is a query parameter: `?revoke=true`"),
    ("if_match", "it is a header: `If-Match: \"41\"`"),
    ("key", "it stands in the path: PUT /v1/queues/{q}/tasks/{key}"),
    ("queue", "it stands in the path: /v1/queues/{q}/"),
    ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
];

/// Rules about the members of a put: at most one due time, and at most one payload.
pub(crate) const OF_TASK: &[Rule] = &[ONE_TIME, ONE_PAYLOAD, Rule::With("content_type", "payload_base64")];
const OF_PATCH: &[Rule] =
    &[ONE_TIME, ONE_PAYLOAD, Rule::With("content_type", "payload_base64"), Rule::NotEmpty];
const ONE_TIME: Rule = Rule::OneOrNone(&["delay", "at", "at_ms", "level", "timeline"]);
const ONE_PAYLOAD: Rule = Rule::OneOrNone(&["payload", "payload_base64", "timeline"]);

body! {
    /// A task: its due time, its payload and its terms. With an empty body the task is due now and has the payload `null`.
    ///
    /// The body of `PUT /v1/queues/{q}/tasks/{key}` and of `POST /v1/queues/{q}/tasks`:
    /// `{"delay": "30m" | "at": "2017-10-02T11:26:33Z" | "at_ms": 1506943593000 | "level": 3, "payload": any JSON, "tags": ["vip"],
    /// "priority": 1024, "group": "user:7", "retry": {...}, "expire_after": "1h"}`, every member optional.
    #[derive(Default)]
    pub struct PutBody: request "Put" {
        /// The due time of the task.
        due: Due = unless(Due::Now, members_of());
        /// A timeline: instants in the order of time, each with its payload. A timeline replaces due time and payload.
        timeline: Vec<MomentBody> = unless(Vec::new(), timeline());
        /// The payload that the worker gets. In a timeline each instant has its own.
        payload: PayloadBody = unless_made(PayloadBody::default, payload());
        /// The terms: tags, priority, group, retry policy and expiry.
        terms: Terms = flat();
        /// With the mode `debounce`: the task becomes due at the latest this long after the first of the puts that are debounced together. The limit holds for the first put, too. A redrive of the task, or a run before its time, ends the row of puts.
        max_wait_ms as "max_wait": Option<u64> = may(duration());
    }
    elsewhere: ELSEWHERE;
    rules: OF_TASK;
    check: |_: &Self, raw| timeline_alone(raw);
}

/// The schema of a put whose key the server chooses.
pub(crate) fn post() -> Schema {
    let what = "A task whose key the server chooses: its due time, its payload and its terms. With an empty body the task is due now and has the payload `null`.";
    PutBody::schema().named("Post", what).without(&["max_wait"])
}

/// Refuses a timeline together with a due time or a payload. The raw members are those of a put or a patch.
fn timeline_alone(raw: RawMembers<'_, '_>) -> Result<(), BadRequest> {
    let has = |name| PutBody::find(name).is_some_and(|at| raw[at].is_some());
    if !has("timeline") {
        return Ok(());
    }
    let what = match () {
        () if ["delay", "at", "at_ms", "level"].into_iter().any(has) => "a second time",
        () if ["payload", "payload_base64"].into_iter().any(has) => "a second payload",
        () => return Ok(()),
    };
    let hint = "each instant of a timeline has its own time and payload: leave the others out";
    Err(BadRequest::member("timeline", format!("stands beside {what}"), hint))
}

impl PutBody {
    /// Refuses a payload that some JSON readers cannot read. See [`PayloadBody::check_portable`].
    ///
    /// # Errors
    ///
    /// The error names the first such place.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        self.payload.check_portable()?;
        timeline::check_portable(&self.timeline)
    }

    /// Refuses members that are not allowed in a put of this mode.
    ///
    /// # Errors
    ///
    /// A `max_wait` beside a timeline, or in a put whose mode is not `debounce`.
    pub fn check(&self, mode: PutMode) -> Result<(), BadRequest> {
        if !self.timeline.is_empty() && self.max_wait_ms.is_some() {
            let hint = "leave it out: the timeline says when the task is due";
            return Err(BadRequest::member("max_wait", "means nothing beside a `timeline`", hint));
        }
        if self.max_wait_ms.is_none() || mode == PutMode::Debounce {
            return Ok(());
        }
        let what = format!("means nothing to a put of the mode `{}`", mode.name());
        Err(BadRequest::member("max_wait", what, "leave it out, or put with the mode `debounce`"))
    }
}

body! {
    /// The members of a task that change. Members that are left out keep their values.
    ///
    /// The body of `PATCH /v1/queues/{q}/tasks/{key}`: the members of [`PutBody`]. An empty patch is refused, because it would raise the version of the
    /// task and change nothing.
    #[derive(Default)]
    pub struct PatchBody: request "Patch" {
        /// The new due time. `delay` counts from the receipt of the patch.
        due: Option<Due> = may(members_of());
        /// A timeline: instants in the order of time, each with its payload. A timeline replaces due time and payload.
        timeline: Option<Vec<MomentBody>> = may(timeline());
        /// The new payload.
        payload: Option<PayloadBody> = may(payload());
        /// The new terms: tags, priority, group, retry policy and expiry.
        terms: TermsPatch = flat();
    }
    elsewhere: ELSEWHERE;
    rules: OF_PATCH;
    check: |patch: &Self, raw| patch.changes_something().and_then(|()| timeline_alone(raw));
}

impl PatchBody {
    /// Refuses a payload that some JSON readers cannot read. See [`PayloadBody::check_portable`].
    ///
    /// # Errors
    ///
    /// The error names the first such place.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        self.payload.as_ref().map_or(Ok(()), PayloadBody::check_portable)?;
        timeline::check_portable(self.timeline.as_deref().unwrap_or(&[]))
    }

    fn changes_something(&self) -> Result<(), BadRequest> {
        if *self != Self::default() {
            return Ok(());
        }
        Err(BadRequest::body(
            "changes nothing",
            "name a time (`delay`, `at`, `at_ms` or `level`; `\"delay\": \"0s\"` for now), a `payload`, a `timeline`, `tags`, a `priority`, a `group`, `retry` or `expire_after`",
        ))
    }
}
